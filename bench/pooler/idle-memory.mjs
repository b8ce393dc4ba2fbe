// @ts-check
// A pooler's memory with many connected clients that do nothing.
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} EmbeddedPostgres
 * @typedef {import('./poolers.mjs').RunningPooler} RunningPooler
 */

const program = fileURLToPath(new URL('idle-clients-process.mjs', import.meta.url));
/** So long the pooler has to tidy up after the logins. */
const restMs = 3_000;
/** Of the pooler and of the clients' process, besides the clients. */
const otherFiles = 100;

/** How many clients the system lets one process have; all that are asked for, unless files are short. */
export function clientsAllowed(/** @type {number} */ wanted) {
  const limit = execFileSync('sh', ['-c', 'ulimit -H -n'], { encoding: 'utf8' }).trim();
  return limit === 'unlimited' ? wanted : Math.min(wanted, Number(limit) - otherFiles);
}

/**
 * @param {EmbeddedPostgres} database
 * @param {RunningPooler} pooler fresh, so that nothing else has left its trace
 * @param {number} clients
 * @returns {Promise<{ emptyMegabytes: number, megabytes: number }>}
 */
export async function measureIdle({ user, database }, pooler, clients) {
  const emptyMegabytes = pooler.residentMegabytes();
  const child = fork(program, [String(pooler.port), user, database, String(clients)]);
  const gone = once(child, 'exit');
  try {
    const ended = gone.then(() => [{ failed: 'The process of the idle clients ended.' }]);
    const [{ failed }] = await Promise.race([once(child, 'message'), ended]);
    if (failed !== undefined) throw new Error(failed);
    await sleep(restMs);
    return { emptyMegabytes, megabytes: pooler.residentMegabytes() };
  } finally {
    if (child.connected) child.disconnect();
    await gone;
  }
}
