/** Asks a server which of its processes still exist, over a connection of some pool. */
import type { PortsQuestion, ServerPlace } from '../messages/server-questions.js';
import type { Backend } from '../servers/backend.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { borrow } from '../servers/borrow.js';
import { askServer, type Question } from '../servers/server-question.js';

const timeoutMs = 500;

/** Undefined where no pool has a connection to that server, or can get one for this. */
export function whichAreThere(
  pools: Iterable<BackendPool>,
  place: ServerPlace,
  processIds: readonly number[],
): Promise<number[] | undefined> {
  return numbersFrom(
    poolWith(pools, (backend) => isAt(backend, place)),
    {
      what: 'the processes that are left of a worker',
      text: 'select pid from pg_catalog.pg_stat_activity where pid = any($1::int[])',
      values: [`{${processIds.join(',')}}`],
      mostRows: processIds.length,
    },
  );
}

/**
 * Ports among these that the server shows to their user. Others may exist as well, since a login in progress is not visible.
 * Undefined where no pool of this user has a connection to that server, or can get one for this.
 */
export function whichPortsAreThere(
  pools: Iterable<BackendPool>,
  { user, address, port, from, ports }: PortsQuestion,
): Promise<number[] | undefined> {
  const ofUser = [...pools].filter((pool) => pool.user === user);
  const isAtAddress = ({ isGone, transport: { remoteAddress, remotePort } }: Backend): boolean =>
    !isGone && remoteAddress === address && remotePort === port;
  return numbersFrom(poolWith(ofUser, isAtAddress), {
    what: 'the logins that are left of a worker',
    text: `select client_port from pg_catalog.pg_stat_activity
 where client_port = any($1::int[]) and host(client_addr) = $2`,
    values: [`{${ports.join(',')}}`, from],
    mostRows: ports.length,
  });
}

async function numbersFrom(pool: BackendPool | undefined, question: Question): Promise<number[] | undefined> {
  if (pool === undefined) return undefined;
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const rows = await borrow(pool, { timeoutMs, signal }, (backend) => askServer(backend, question));
    return rows.map(([number]) => Number(number));
  } catch {
    // The connection is busy, or the server does not know the query.
    return undefined;
  }
}

/** A pool with an idle connection is preferred. */
function poolWith(
  pools: Iterable<BackendPool>,
  isWanted: (backend: Backend) => boolean,
): BackendPool | undefined {
  let found: BackendPool | undefined;
  for (const pool of pools) {
    if (found !== undefined && pool.idle === 0) continue;
    for (const backend of pool.backends()) {
      if (!isWanted(backend)) continue;
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
