// @ts-check
// The pools that talk to a real PostgreSQL, each behind the same call: run `select 1` and give the answer.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const connections = 20;
const timeoutMilliseconds = 30_000;
const pipelineDepth = 16;
const text = 'select 1';

/**
 * @typedef {object} DatabaseUnderTest
 * @property {() => Promise<unknown>} query one query on any connection
 * @property {() => Promise<void>} [checkout] takes a connection, runs one query on it, gives it back
 */

/**
 * The calls that both pg.Pool and the drop-in have.
 * @typedef {object} PgShapedPool
 * @property {(text: string) => Promise<unknown>} query
 * @property {() => Promise<{ query(text: string): Promise<unknown>, release(): void }>} connect
 */

/** @type {Record<string, (url: string) => DatabaseUnderTest | Promise<DatabaseUnderTest>>} */
export const postgresPools = {
  'pg.Pool': (url) => {
    const { Pool } = require('pg');
    return pgShaped(new Pool(poolOptions(url)));
  },

  'drop-in': async (url) => {
    const { Pool } = await import('../dist/index.js');
    return pgShaped(new Pool(poolOptions(url)));
  },

  'drop-in, pipelined': async (url) => {
    const { Pool } = await import('../dist/index.js');
    return pgShaped(new Pool({ ...poolOptions(url), pipeline: { depth: pipelineDepth } }));
  },

  'postgres.js': (url) => {
    const postgres = require('postgres');
    const sql = postgres(url, { max: connections });
    return { query: () => sql`select 1` };
  },
};

/** @param {string} url */
function poolOptions(url) {
  return { connectionString: url, max: connections, connectionTimeoutMillis: timeoutMilliseconds };
}

/**
 * @param {PgShapedPool} pool
 * @returns {DatabaseUnderTest}
 */
function pgShaped(pool) {
  return {
    query: () => pool.query(text),
    async checkout() {
      const client = await pool.connect();
      try {
        await client.query(text);
      } finally {
        client.release();
      }
    },
  };
}
