// @ts-check
// The pool and the pooler at work in one process: prints what they answered. Run by test/house/other-nodes.test.ts on other versions of Node.
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { Pool } from 'headgate';
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
    pool,
    throughPooler,
  }),
);
