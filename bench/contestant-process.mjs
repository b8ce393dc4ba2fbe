// @ts-check
// One contestant in a process of its own, so that no other's code shapes how the engine compiles its code.
// The parent sends what to run, and gets what that took.
import { inProcessPools } from './in-process-pools.mjs';
import { postgresPools } from './postgres-pools.mjs';
import { bytesPerWaiter, workloads } from './workloads.mjs';

/**
 * @typedef {object} ContestantOrders
 * @property {string} contestant
 * @property {string} workload
 * @property {number} [operations] at a time; as many as fit in a round when it is not given
 * @property {number} milliseconds of a round, at least
 * @property {string} [url] of the real PostgreSQL, where there is one
 */

/**
 * @typedef {object} Measure
 * @property {number} [perSecond] operations
 * @property {number} [nanoseconds] per operation
 * @property {number} [cpuMicroseconds] of this process, per operation
 * @property {number} [bytes] per waiter
 */

/** Long enough for the compiler, whose threads are the first to wait on a busy machine. */
const warmUpMilliseconds = 2_000;

/** @type {ContestantOrders} */
const orders = JSON.parse(process.argv[2] ?? '{}');

/** @param {unknown} message */
const tell = (message) => process.send?.(message);

async function main() {
  const pool = await (orders.url === undefined
    ? inProcessPools[orders.contestant]?.()
    : postgresPools[orders.contestant]?.(orders.url));
  if (pool === undefined) throw new Error(`There is no contestant ${orders.contestant}.`);
  const target = /** @type {Parameters<import('./workloads.mjs').Workload>[0]} */ (pool);

  if (orders.workload === 'memory') {
    serve(async () => ({ bytes: await bytesPerWaiter(target, orders.operations ?? 1) }));
    return;
  }

  const workload = workloads[orders.workload];
  if (workload === undefined) throw new Error(`There is no workload ${orders.workload}.`);
  const operations = await warmUp(workload, target);
  serve(async () => {
    // A little unmeasured work first: this process has slept while the others had their turn.
    if (orders.operations === undefined) await workload(target, Math.ceil(operations / 10));
    return measure(workload, target, operations, orders.operations === undefined ? 0 : orders.milliseconds);
  });
}

/** @param {() => Promise<Measure>} round */
function serve(round) {
  process.on('message', (order) => {
    if (order === 'stop') process.exit();
    round().then(tell, fail);
  });
  process.on('disconnect', () => process.exit());
  tell({ ready: true });
}

/**
 * @param {import('./workloads.mjs').Workload} workload
 * @param {Parameters<import('./workloads.mjs').Workload>[0]} pool
 * @returns {Promise<number>} how many operations a round has
 */
async function warmUp(workload, pool) {
  if (orders.operations !== undefined) {
    for (let i = 0; i < 50; i += 1) await workload(pool, 2_000);
    return orders.operations;
  }
  // The best rate counts: the first ones are from before the code was compiled, others from a busy machine.
  let best = 0;
  let spent = 0;
  for (let operations = 2_000; spent < warmUpMilliseconds; operations *= 2) {
    operations = Math.min(operations, Math.max(2_000, perRound(best)));
    const { perSecond = 0 } = await measure(workload, pool, operations);
    best = Math.max(best, perSecond);
    spent += (operations / perSecond) * 1_000;
  }
  return perRound(best);
}

/** @param {number} perSecond */
function perRound(perSecond) {
  return perSecond === 0 ? Number.POSITIVE_INFINITY : Math.ceil((perSecond * orders.milliseconds) / 1_000);
}

/**
 * @param {import('./workloads.mjs').Workload} workload
 * @param {Parameters<import('./workloads.mjs').Workload>[0]} pool
 * @param {number} operations
 * @param {number} [milliseconds] to go on with as many again
 * @returns {Promise<Measure>}
 */
async function measure(workload, pool, operations, milliseconds = 0) {
  // No forced collection in between: with no waiter alive it would also throw away the code compiled for waiters.
  const cpuBefore = process.cpuUsage();
  const before = process.hrtime.bigint();
  let done = 0;
  let elapsed = 0;
  do {
    await workload(pool, operations);
    done += operations;
    elapsed = Number(process.hrtime.bigint() - before) / 1e3;
  } while (elapsed < milliseconds * 1e3);
  const { user, system } = process.cpuUsage(cpuBefore);
  // Without a server nothing here ever sleeps: what is longer than its processor time is time that others had.
  const microseconds = orders.url === undefined ? Math.min(elapsed, user + system) : elapsed;
  return {
    perSecond: (done / microseconds) * 1e6,
    nanoseconds: (microseconds / done) * 1e3,
    cpuMicroseconds: (user + system) / done,
  };
}

/** @param {unknown} error */
function fail(error) {
  process.send?.({ failed: error instanceof Error ? error.message : String(error) }, () => process.exit(1));
}

main().catch(fail);
