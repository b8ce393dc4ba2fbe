/** Asks a server which of its processes are still there, over a connection that some pool has to it. */
import type { Backend } from '../backend/backend.js';
import type { BackendPool } from '../backend/backend-pool.js';
import { borrow } from '../backend/borrow.js';
import { askServer } from '../backend/server-question.js';
import type { ServerPlace } from './orphan-care.js';

const timeoutMs = 500;

/** Undefined where no pool has a connection to that server, or none for this. */
export async function whichAreThere(
  pools: Iterable<BackendPool>,
  place: ServerPlace,
  processIds: readonly number[],
): Promise<number[] | undefined> {
  const pool = poolAt(pools, place);
  if (pool === undefined) return undefined;
  const question = {
    what: 'the processes that are left of a worker',
    text: 'select pid from pg_catalog.pg_stat_activity where pid = any($1::int[])',
    values: [`{${processIds.join(',')}}`],
    mostRows: processIds.length,
  };
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const rows = await borrow(pool, { timeoutMs, signal }, (backend) => askServer(backend, question));
    return rows.map(([processId]) => Number(processId));
  } catch {
    // It is busy, or the server does not know the question.
    return undefined;
  }
}

/** One with an idle connection comes first. */
function poolAt(pools: Iterable<BackendPool>, place: ServerPlace): BackendPool | undefined {
  let found: BackendPool | undefined;
  for (const pool of pools) {
    if (found !== undefined && pool.idle === 0) continue;
    for (const backend of pool.backends()) {
      if (!isAt(backend, place)) continue;
      if (pool.idle > 0) return pool;
      found = pool;
      break;
    }
  }
  return found;
}

function isAt({ dial, isGone }: Backend, { host, port, path }: ServerPlace): boolean {
  return !isGone && dial.host === host && dial.port === port && dial.path === path;
}
