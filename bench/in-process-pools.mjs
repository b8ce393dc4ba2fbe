// @ts-check
// The pools that hold connections which do nothing, each behind the same two calls: take one, give it back.
import { createRequire } from 'node:module';
import { IdleClient } from './idle-client.mjs';
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
};

/** @param {{ connectionTimeoutMillis?: number }} options */
function pgPool(options) {
  // @ts-expect-error: it comes without types.
  const PgPool = require('pg-pool');
  const pool = new PgPool({ max: connections, Client: IdleClient, ...options });
  return {
    acquire: () => pool.connect(),
    release: (/** @type {{ release(): void }} */ client) => client.release(),
  };
}
