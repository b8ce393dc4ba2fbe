// @ts-check
// A pooler's pools without sockets: as many users as are asked for, a ready connection for each of them, and what it takes to
// find a user's pool and take its connection, and to give it back. Answers each order with nanoseconds.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Waiter } from '../../dist/core/waiters.js';
import { loadConfig } from '../../dist/pooler/config/load-config.js';
import { databaseFor } from '../../dist/pooler/config/pooler-config.js';
import { PoolerState } from '../../dist/pooler/process/pooler-state.js';

/**
 * @typedef {import('../../dist/pooler/servers/backend.js').Backend} Backend
 * @typedef {import('../../dist/pooler/servers/backend-pool.js').BackendPool} BackendPool
 * @typedef {import('../../dist/core/pooled-connection.js').PooledConnection<Backend>} Pooled
 */

const [count = ''] = process.argv.slice(2);
const users = Array.from({ length: Number(count) }, (_, index) => `user_${index}`);
const database = 'app';
/** So many are taken before they are given back: the clock is read between the two. */
const mostAtOnce = 1_000;

/**
 * @typedef {object} LookupOrders
 * @property {number} ms
 * @property {number} among so many users in turn, of all that there are
 */

/** @typedef {{ takeNs: number, giveBackNs: number }} LookupFigures */

/** @extends {Waiter<Backend>} */
class FirstCaller extends Waiter {
  /** @param {(pooled: Pooled) => void} served */
  constructor(served) {
    super();
    this.granted = served;
    this.failed = (/** @type {Error} */ error) => process.send?.({ failed: error.message });
  }
}

function makePooler() {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  try {
    const configFile = join(folder, 'headgate.json');
    const config = {
      auth: { type: 'trust' },
      databases: { [database]: { host: '127.0.0.1', password: 'none' } },
      fairShares: { capacity: 2 * users.length },
      pooling: { poolSize: 2, serverIdleTimeout: 0, serverLifetime: 0 },
    };
    writeFileSync(configFile, JSON.stringify(config));
    return new PoolerState(loadConfig({ configFile }).config, {});
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As much of a server's connection as a pool looks at while nothing happens. */
function idleBackend() {
  return /** @type {Backend} */ (
    /** @type {unknown} */ ({ parameters: new Map(), isGone: false, isSettled: true, home: undefined })
  );
}

/** @param {BackendPool} pool */
function fill(pool) {
  pool.change({ ...pool.plan, open: () => Promise.resolve(idleBackend()) }, false);
  return new Promise((resolve) => {
    const served = (/** @type {Pooled} */ pooled) =>
      // Not from the middle of the decision.
      setImmediate(() => {
        pool.release(pooled.connection, pooled.generation);
        resolve(undefined);
      });
    pool.enqueue(new FirstCaller(served), 60_000);
  });
}

const pooler = makePooler();
const where = /** @type {NonNullable<ReturnType<typeof databaseFor>>} */ (
  databaseFor(pooler.config, database)
);
let next = 0;

/**
 * @param {string[]} among
 * @param {LookupFigures} spent
 */
function takeAndGiveBack(among, spent) {
  const count = Math.min(among.length, mostAtOnce);
  const taken = [];
  const beganAt = process.hrtime.bigint();
  for (let i = 0; i < count; i++) {
    const { pool } = pooler.pools.get(where, /** @type {string} */ (among[next]));
    next = next + 1 === among.length ? 0 : next + 1;
    taken.push(pool.tryTake());
  }
  const takenAt = process.hrtime.bigint();
  for (const pooled of taken) {
    if (pooled === undefined) throw new Error('No connection was ready.');
    const { connection, generation } = pooled;
    connection.home?.release(pooled, generation);
  }
  spent.takeNs += Number(takenAt - beganAt);
  spent.giveBackNs += Number(process.hrtime.bigint() - takenAt);
  return count;
}

/**
 * @param {LookupOrders} orders
 * @returns {Promise<LookupFigures>}
 */
async function measure({ ms, among }) {
  const chosen = users.slice(-among);
  const spent = { takeNs: 0, giveBackNs: 0 };
  next = 0;
  let done = 0;
  while (spent.takeNs + spent.giveBackNs < ms * 1e6) {
    for (let round = 0; round < mostAtOnce; round += chosen.length) done += takeAndGiveBack(chosen, spent);
    // A turn of the event loop, as in a process that has sockets.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { takeNs: spent.takeNs / done, giveBackNs: spent.giveBackNs / done };
}

async function main() {
  await Promise.all(users.map((user) => fill(pooler.pools.get(where, user).pool)));
  await measure({ ms: 300, among: users.length });
  process.on('message', async (/** @type {LookupOrders} */ orders) => process.send?.(await measure(orders)));
  process.send?.({ isReady: true });
}

main().catch((error) => process.send?.({ failed: error instanceof Error ? error.stack : String(error) }));
process.on('disconnect', () => process.exit());
