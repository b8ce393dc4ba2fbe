// @ts-check
// One pool under load, in a process of its own: fills it, runs the load, and tells what came of it.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { OpenLoop } from './open-loop.mjs';

/**
 * @typedef {object} LoadOrders
 * @property {string} contestant
 * @property {string} url through the gate
 * @property {number} connections
 * @property {number} lifetimeSeconds
 * @property {import('./connection-gate.mjs').GateOptions} gate
 * @property {import('./open-loop.mjs').Load} load
 */

/**
 * @typedef {object} FilledPool
 * @property {import('./open-loop.mjs').PoolUnderLoad} pool
 * @property {() => Record<string, number>} discards why connections were closed, where the pool says so
 */

/** @type {Record<string, (orders: LoadOrders) => Promise<FilledPool>>} */
const contestants = {
  async 'drop-in, reservoir'({ url, connections, lifetimeSeconds, gate }) {
    const { Pool, TokenBucket } = await import('../../dist/index.js');
    const pool = new Pool({
      connectionString: url,
      max: connections,
      reservoir: {
        targetReady: connections,
        baseLifetime: lifetimeSeconds * 1_000,
        lifetimeJitter: '1s',
        // Longer than a connection is held: none is used past its end.
        guardWindow: '250ms',
      },
      // One less than the gate's: what is counted here when it leaves is counted there when it arrives, sometimes closer
      // together, and a refusal would halve the speed for a while.
      rateLimiter: new TokenBucket({ rate: gate.rate, burst: gate.burst - 1 }),
    });
    pool.on('error', () => {});
    await pool.ready();
    return { pool, discards: () => ({ ...pool.stats().totals.discarded }) };
  },

  async 'pg.Pool'({ url, connections, lifetimeSeconds, gate }) {
    const pool = new pg.Pool({
      connectionString: url,
      max: connections,
      maxLifetimeSeconds: lifetimeSeconds,
    });
    pool.on('error', () => {});
    await fill(pool, connections, gate);
    return { pool, discards: () => ({}) };
  },
};

/**
 * Does for pg.Pool what `ready()` does for the reservoir: as fast as the gate allows, and all of them open before the first is given back.
 * @param {pg.Pool} pool
 * @param {number} connections
 * @param {import('./connection-gate.mjs').GateOptions} gate
 */
async function fill(pool, connections, gate) {
  const intervalMs = 1_000 / gate.rate + 1;
  const open = async () => {
    for (;;) {
      try {
        return await pool.connect();
      } catch {
        // A little too early for the gate.
        await sleep(intervalMs);
      }
    }
  };
  const opening = [];
  for (let i = 0; i < connections; i += 1) {
    if (i >= gate.burst) await sleep(intervalMs);
    opening.push(open());
  }
  for (const client of await Promise.all(opening)) client.release();
}

/** @type {LoadOrders} */
const orders = JSON.parse(process.argv[2] ?? '{}');

async function main() {
  const { pool, discards } = (await contestants[orders.contestant]?.(orders)) ?? {};
  if (pool === undefined || discards === undefined)
    throw new Error(`There is no contestant ${orders.contestant}.`);
  globalThis.gc?.();
  const outcome = await new OpenLoop(pool, orders.load).run();
  process.send?.({ ...outcome, discards: discards() }, () => process.exit());
}

main().catch((error) => {
  process.send?.({ failed: error instanceof Error ? error.message : String(error) }, () => process.exit(1));
});
process.on('disconnect', () => process.exit());
