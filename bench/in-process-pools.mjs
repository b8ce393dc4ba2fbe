// @ts-check
// The pools that hold connections which do nothing, each behind the same two calls: take one, give it back.
import { createRequire } from 'node:module';
import { IdleClient } from './idle-client.mjs';
import { fullDropIn, fullEngine, fullPass, scanner } from './reservoir-parts.mjs';
import { SmallestPool } from './smallest-pool.mjs';

const require = createRequire(import.meta.url);
const connections = 10;
const timeoutMilliseconds = 30_000;

/**
 * One pool under test. The handle is whatever that pool gives out.
 * @typedef {object} PoolUnderTest
 * @property {() => Promise<unknown>} acquire
 * @property {(handle: never) => void} release
 * @property {() => unknown} [tryAcquire] the synchronous form, where there is one
 * @property {() => number} [look] for what has expired, in place of taking and giving back
 */

/** @type {Record<string, () => PoolUnderTest | Promise<PoolUnderTest>>} */
export const inProcessPools = {
  'pg-pool, connection timeout': () => pgPool({ connectionTimeoutMillis: timeoutMilliseconds }),

  'pg-pool, defaults': () => pgPool({}),

  tarn: () => {
    const { Pool } = require('tarn');
    const pool = new Pool({
      create: () => new IdleClient(),
      destroy: () => {},
      min: 0,
      max: connections,
      acquireTimeoutMillis: timeoutMilliseconds,
    });
    return { acquire: () => pool.acquire().promise, release: (client) => pool.release(client) };
  },

  'generic-pool': () => {
    const { createPool } = require('generic-pool');
    const factory = { create: () => Promise.resolve(new IdleClient()), destroy: () => Promise.resolve() };
    const pool = createPool(factory, { max: connections, acquireTimeoutMillis: timeoutMilliseconds });
    return { acquire: () => pool.acquire(), release: (client) => pool.release(client) };
  },

  engine: async () => {
    const { PromisePool } = await import('../dist/engine.js');
    const pool = new PromisePool({
      connect: async () => new IdleClient(),
      max: connections,
      acquireTimeout: timeoutMilliseconds,
    });
    return {
      acquire: () => pool.acquire(),
      release: (/** @type {{ release(): void }} */ lease) => lease.release(),
      tryAcquire: () => pool.tryAcquire(),
    };
  },

  'drop-in': async () => {
    const { Pool } = await import('../dist/index.js');
    const options = { max: connections, connectionTimeoutMillis: timeoutMilliseconds, Client: IdleClient };
    const pool = new Pool(/** @type {import('pg').PoolConfig} */ (/** @type {unknown} */ (options)));
    return {
      acquire: () => pool.connect(),
      release: (/** @type {{ release(): void }} */ client) => client.release(),
    };
  },

  'smallest possible pool': () => {
    const clients = Array.from({ length: connections }, () => new IdleClient());
    const pool = new SmallestPool(clients, timeoutMilliseconds);
    return { acquire: () => pool.acquire(), release: (client) => pool.release(client) };
  },

  'reservoir of 100': () => fullEngine(100),
  'reservoir of 10,000': () => fullEngine(10_000),
  'drop-in with a reservoir of 100': () => fullDropIn(100),
  'drop-in with a reservoir of 10,000': () => fullDropIn(10_000),
  'pass over 10,000': () => fullPass(10_000),
  'scan of 10,000': () => scanner(10_000, false),
  'scan of 10,000, one came and went': () => scanner(10_000, true),
};

/** @param {{ connectionTimeoutMillis?: number }} options */
function pgPool(options) {
  const PgPool = require('pg-pool');
  const Client = /** @type {any} */ (IdleClient);
  const pool = new PgPool({ max: connections, Client, ...options });
  return {
    acquire: () => pool.connect(),
    release: (/** @type {{ release(): void }} */ client) => client.release(),
  };
}
