// Clients that are given back inside an open transaction, beside pg.Pool.
import { createRequire } from 'node:module';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { DoubleReleaseError, Pool, PoolOptionsError } from '../../src/index.js';
import { nextTurn, rejectionOf } from '../support/outcomes.js';
import { type AnyPool, abandon, usePoolsOf } from './contract/every-pool.js';

type Options = NonNullable<ConstructorParameters<typeof Pool>[0]>;

const oldPg = createRequire(import.meta.url)('pg-8-11') as typeof pg;
const { server, terminate } = usePoolsOf(Pool);
let opened: AnyPool[] = [];

afterEach(() => {
  for (const pool of opened) abandon(pool);
  opened = [];
});

function newPool(options: Options = {}): Pool {
  const pool = new Pool({ ...server(), max: 1, ...options });
  opened.push(pool as unknown as AnyPool);
  return pool;
}

const state = `select pg_current_xact_id_if_assigned() is not null as inside, pg_backend_pid() as pid`;

/** A transaction that has done something, left open. */
async function leaveOpen(pool: Pool | pg.Pool): Promise<number> {
  const client = await pool.connect();
  await client.query('begin');
  const { rows } = await client.query('select pg_backend_pid() as pid, pg_current_xact_id()');
  client.release();
  return (rows[0] as { pid: number }).pid;
}

test('a client that comes back inside an open transaction is handed on as it is by pg.Pool, and by Headgate unless told otherwise', async () => {
  const pgPool = new pg.Pool({ ...server(), max: 1 });
  for (const pool of [pgPool, newPool(), newPool({ onOpenTransaction: 'keep' })]) {
    const pid = await leaveOpen(pool);
    expect((await pool.query(state)).rows).toEqual([{ inside: true, pid }]);
    await pool.query('rollback');
    await pool.end();
  }
});

test('a client that comes back inside an open transaction is warned of once, with the place that took it, unless told to keep it or it is the only one', async () => {
  const warnings: (Error & { code?: string })[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  const quiet = [newPool(), newPool({ max: 2, onOpenTransaction: 'keep' })];
  const loud = newPool({ max: 2, name: 'orders', leakThresholdMillis: 600_000 });
  for (const pool of [...quiet, loud, loud]) await leaveOpen(pool);
  await loud.query('rollback');
  const client = await loud.connect();
  await client.query('begin');
  const committed = client.query('commit');
  client.release();
  await committed;
  await loud.end();
  await nextTurn();
  process.off('warning', note);
  const texts = warnings.filter(({ code }) => code === 'HG_OPEN_TRANSACTION').map(({ message }) => message);
  expect(texts).toHaveLength(1);
  expect(texts[0]).toMatch(
    /^Pool orders: a client came back inside an open transaction \(server process \d+, /,
  );
  expect(texts[0]).toMatch(/\n {2}taken\n {4}at .*leaveOpen/);
});

test('a client that comes back inside an open transaction is known with the oldest version of pg too', async () => {
  const pool = newPool({ onOpenTransaction: 'rollback', Client: oldPg.Client as never });
  const pid = await leaveOpen(pool);
  expect((await pool.query(state)).rows).toEqual([{ inside: false, pid }]);
  await pool.end();
});

test('a client that comes back inside an open transaction is rolled back before another caller gets it, waiting callers included', async () => {
  const pool = newPool({ onOpenTransaction: 'rollback' });
  const client = await pool.connect();
  await client.query('begin');
  const { rows } = await client.query('select pg_backend_pid() as pid, pg_current_xact_id()');
  const waiting = pool.query(state);
  client.release();
  expect(() => client.release()).toThrow(DoubleReleaseError);
  expect((await waiting).rows).toEqual([{ inside: false, pid: rows[0].pid }]);
  expect(pool.stats().totals).toMatchObject({ opened: 1 });
  await pool.end();
});

test('a client that comes back inside an open transaction is rolled back after a statement that failed, and after a lone query that began one', async () => {
  const pool = newPool({ onOpenTransaction: 'rollback' });
  const client = await pool.connect();
  await client.query('begin');
  await rejectionOf(client.query('select 1 / 0'));
  client.release();
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await pool.query('begin');
  await pool.query('select pg_current_xact_id()');
  expect((await pool.query(state)).rows).toMatchObject([{ inside: false }]);
  expect(pool.stats().totals).toMatchObject({ opened: 1 });
  await pool.end();
});

test('a client that comes back inside an open transaction is closed, with discard', async () => {
  const pool = newPool({ onOpenTransaction: 'discard' });
  const pid = await leaveOpen(pool);
  const [row] = (await pool.query(state)).rows;
  expect(row.inside).toBe(false);
  expect(row.pid).not.toBe(pid);
  expect(pool.stats().totals).toMatchObject({ opened: 2, discarded: { released_with_error: 1 } });
  await pool.end();
});

test('a client that comes back inside an open transaction is rolled back with pipelining too, where that is asked for', async () => {
  const pool = newPool({ pipeline: { depth: 4 }, onOpenTransaction: 'rollback' });
  const pid = await leaveOpen(pool);
  expect((await pool.query(state)).rows).toEqual([{ inside: false, pid }]);
  await pool.end();
});

test('a client that comes back inside an open transaction costs no place when its connection is lost while it is rolled back', async () => {
  const pool = newPool({ onOpenTransaction: 'rollback' });
  pool.on('error', () => {});
  const client = await pool.connect();
  client.on('error', () => {});
  await client.query('begin');
  const sleeping = rejectionOf(client.query('select pg_sleep(30)'));
  client.release();
  await terminate(client as pg.PoolClient);
  await sleeping;
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await pool.end();
});

test('a client that comes back inside an open transaction is closed when the server does not answer the ROLLBACK in time', async () => {
  const pool = newPool({ onOpenTransaction: 'rollback', checkTimeoutMillis: 50 });
  const client = await pool.connect();
  client.on('error', () => {});
  await client.query('begin');
  const sleeping = rejectionOf(client.query('select pg_sleep(30)'));
  client.release();
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await sleeping;
  expect(pool.stats().totals).toMatchObject({ discarded: { released_with_error: 1 } });
  await pool.end();
});

test('a client that comes back inside an open transaction is waited for by end()', async () => {
  const pool = newPool({ onOpenTransaction: 'rollback' });
  await leaveOpen(pool);
  await pool.end();
  expect(pool.totalCount).toBe(0);
});

test('What makes no sense for open transactions is refused', () => {
  expect(() => new Pool({ onOpenTransaction: 'commit' as never })).toThrow(PoolOptionsError);
  expect(() => new Pool({ onOpenTransaction: 'keep', pipeline: { depth: 2 } })).toThrow(
    'others would join the transaction',
  );
});
