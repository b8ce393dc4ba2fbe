// @ts-check
// The pool and the pooler at work in one process: prints what they answered. Run by test/house/other-nodes.test.ts on other versions of Node.
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Pool } from 'headgate';
import pg from 'pg';
import { nativeHandleOf } from '../../dist/net/native-streams.js';
import { startPoolerFor } from '../../scripts/lib/start-pooler.mjs';

const server = new URL(process.env['DATABASE_URL'] ?? '');
const database = server.pathname.slice(1);
const pooler = await startPoolerFor(
  /** @type {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} */ ({
    host: server.hostname,
    port: Number(server.port),
    user: decodeURIComponent(server.username),
    password: decodeURIComponent(server.password),
    database,
  }),
  undefined,
);

/** @param {string} url */
async function use(url) {
  const pool = new Pool({ connectionString: url, max: 5 });
  const many = await Promise.all(
    Array.from({ length: 200 }, (_, n) => pool.query('select $1::int as n', [n])),
  );
  const client = await pool.connect({ timeout: '20s' });
  await client.query('create temporary table smoke (n int)');
  await client.query('begin');
  await client.query('insert into smoke select generate_series(1, 1000)');
  const { rows } = await client.query({ name: 'sum', text: 'select sum(n)::int as sum from smoke' });
  await client.query('rollback');
  const { rowCount } = await client.query('select * from smoke');
  client.release();
  const failed = await pool.query('select nothing').catch((/** @type {{ code: string }} */ { code }) => code);
  const { rows: large } = await pool.query("select repeat('x', 5000000) as text");
  await pool.end();
  return {
    inOrder: many.every((result, n) => result.rows[0].n === n),
    sum: rows[0].sum,
    afterRollback: rowCount,
    failed,
    large: large[0].text.length,
  };
}

/**
 * Async contexts of 200 requests on 4 connections: what ran in another's, which of their stores a connection keeps alive,
 * and how often keepalive asked.
 * @param {import('headgate').PoolOptions} options
 */
async function contextsWith(options) {
  /** @type {AsyncLocalStorage<{ id: number }>} */
  const current = new AsyncLocalStorage();
  /** @type {string[]} */
  const misplaced = [];
  /** @type {WeakRef<object>[]} */
  const stores = [];
  let checks = 0;
  /** @param {string} what @param {number | undefined} id */
  const expectHere = (what, id) => {
    const found = current.getStore()?.id;
    if (found !== id) misplaced.push(`${what} of ${id} in ${found}`);
  };
  class Client extends pg.Client {
    /** @override @param {any[]} args @returns {any} */
    query(...args) {
      const [, id] = /request (\d+)/.exec(args[0]?.text ?? args[0]) ?? [];
      if (id === undefined) checks++;
      expectHere('query', id === undefined ? undefined : Number(id));
      return super.query(.../** @type {[string]} */ (args));
    }
  }
  const pool = new Pool({ ...options, max: 4, keepaliveMillis: 5, Client });
  /** @param {number} id */
  const request = async (id) => {
    await pool.query(`select 1 -- request ${id}`);
    expectHere('promise', id);
    await new Promise((resolve) => {
      pool.query(`select 2 -- request ${id}`, () => resolve(expectHere('callback', id)));
    });
    const client = await pool.connect();
    client.on('notice', () => expectHere('event', id));
    await client.query(`do $$ begin raise notice 'request ${id}'; end $$`);
    client.removeAllListeners('notice');
    client.release();
  };
  await Promise.all(
    Array.from({ length: 200 }, (_, id) => {
      const store = { id };
      stores.push(new WeakRef(store));
      return current.run(store, request, id);
    }),
  );
  while (checks === 0) await nextTurn();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  for (let round = 0; round < 50 && stores.some((store) => store.deref() !== undefined); round++) {
    await nextTurn();
    collect();
  }
  const kept = stores.filter((store) => store.deref() !== undefined).length;
  await pool.end();
  return { misplaced, kept };
}

const contexts = await contextsWith({ connectionString: server.href });
const contextsOverTls = await contextsWith({
  connectionString: process.env['TLS_DATABASE_URL'],
  ssl: { rejectUnauthorized: false },
});
const pool = await use(server.href);
const throughPooler = await use(pooler.url);
const isRequiredToo = createRequire(import.meta.url)('headgate').Pool === Pool;
const socket = connect(Number(server.port), server.hostname);
await once(socket, 'connect');
const isBelowStreams = nativeHandleOf(socket) !== undefined;
socket.destroy();
await pooler.stop();
console.log(
  JSON.stringify({
    node: process.versions.node.split('.')[0],
    isRequiredToo,
    isBelowStreams,
    contexts,
    contextsOverTls,
    pool,
    throughPooler,
  }),
);
