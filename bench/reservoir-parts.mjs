// @ts-check
// A full reservoir in three forms: the engine alone, the drop-in, and the scanner that looks for what expires. Nothing in
// them opens, closes or expires while it is measured.
import { IdleClient } from './idle-client.mjs';

/**
 * @typedef {import('./in-process-pools.mjs').PoolUnderTest} PoolUnderTest
 * @typedef {PoolUnderTest & { look: () => number }} LookUnderTest `look` answers how many have expired
 */

const lifetimeMs = 660_000;
/** So far away that the time of a benchmark, a second for each look, does not come near it. */
const farAway = 1e14;
const nobody = () => Promise.reject(new Error('This part is measured without callers.'));

/**
 * @param {number} ready
 * @returns {Promise<PoolUnderTest>}
 */
export async function fullEngine(ready) {
  const { ConnectionPool } = await import('../dist/core/connection-pool.js');
  const { readPolicy } = await import('../dist/core/pool-policy.js');
  const { OptionReader } = await import('../dist/kernel/option-reader.js');
  const { systemAlarm, systemClock, systemRandom } = await import('../dist/runtime/system.js');
  const read = new OptionReader({ max: ready, reservoir: { baseLifetime: '1h' }, idleTimeout: 0 });
  const policy = readPolicy(read, false);
  read.throwIfAnyProblem();
  const pool = new ConnectionPool({
    policy,
    clock: systemClock,
    alarm: systemAlarm,
    random: systemRandom,
    dialer: {
      dial: (dial) => queueMicrotask(() => pool.dialed(dial, new IdleClient())),
      abandon() {},
      close: (connection) => queueMicrotask(() => pool.closed(connection)),
      destroy() {},
      check() {},
    },
  });
  pool.start();
  await new Promise((resolve, reject) => {
    const missed = () => reject(new Error('The reservoir was not filled.'));
    pool.whenReady({
      target: ready,
      deadline: Number.POSITIVE_INFINITY,
      reached: () => resolve(undefined),
      missed,
    });
  });
  return {
    acquire: nobody,
    tryAcquire: () => pool.tryTake(),
    release: (
      /** @type {import('../dist/core/pooled-connection.js').PooledConnection<IdleClient>} */ taken,
    ) => pool.release(taken, taken.generation),
  };
}

/**
 * @param {number} ready
 * @returns {Promise<PoolUnderTest>}
 */
export async function fullDropIn(ready) {
  const { Pool } = await import('../dist/index.js');
  const options = { max: ready, Client: IdleClient, reservoir: { baseLifetime: '1h' }, idleTimeoutMillis: 0 };
  const pool = new Pool(/** @type {import('pg').PoolConfig} */ (/** @type {unknown} */ (options)));
  await pool.ready();
  return {
    acquire: () => pool.connect(),
    tryAcquire: () => pool.tryConnect(),
    release: (/** @type {{ release(): void }} */ client) => client.release(),
  };
}

/**
 * The scanner over connections of which none expires.
 * @param {number} count
 * @param {boolean} isVisited a connection comes and goes between two looks
 * @returns {Promise<LookUnderTest>}
 */
export async function scanner(count, isVisited) {
  const { ExpiryScanner } = await import('../dist/core/expiry-scanner.js');
  const { IdleConnections } = await import('../dist/core/idle-connections.js');
  let expired = 0;
  const idle = /** @type {InstanceType<typeof IdleConnections<IdleClient>>} */ (new IdleConnections('fifo'));
  const scanner = /** @type {InstanceType<typeof ExpiryScanner<IdleClient>>} */ (
    new ExpiryScanner(lifetimeMs, idle, () => {
      expired += 1;
    })
  );
  for (const connection of await makeConnections(count)) {
    idle.add(connection, 0);
    scanner.watch(connection, 0);
  }
  const [visitor] = await makeConnections(1);
  // A source of 100 connections a second, with nothing to do.
  const situation = /** @type {Parameters<typeof scanner.scan>[1]} */ (
    /** @type {unknown} */ ({ spareRoom: 0, missing: 0, tolerance: 8, perMs: 0.1 })
  );
  return {
    acquire: nobody,
    release() {},
    look() {
      const now = scanner.nextScanAt;
      if (isVisited && visitor !== undefined) {
        scanner.watch(visitor, now);
        scanner.forget(visitor);
      }
      scanner.scan(now, situation);
      return expired;
    },
  };
}

/**
 * The work of a scanner that looks at every connection, in the form that costs least.
 * @param {number} count
 * @returns {Promise<LookUnderTest>}
 */
export async function fullPass(count) {
  const connections = await makeConnections(count);
  let now = 0;
  return {
    acquire: nobody,
    release() {},
    look() {
      now += 1_000;
      let expired = 0;
      for (let i = 0; i < connections.length; i += 1) {
        if (/** @type {{ lendUntil: number }} */ (connections[i]).lendUntil <= now) expired += 1;
      }
      return expired;
    },
  };
}

/**
 * Connections whose ends are spread over two minutes.
 * @param {number} count
 */
async function makeConnections(count) {
  const { PooledConnection } = await import('../dist/core/pooled-connection.js');
  return Array.from({ length: count }, (_, index) => {
    const end = farAway + (index * 120_000) / count;
    return new PooledConnection(new IdleClient(), index + 1, 0, end, end, undefined);
  });
}
