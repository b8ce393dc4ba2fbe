// Settings that Aurora DSQL refuses, through the pooler: swallowed, shown, undone, and kept where they limit something.
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import type { TestPooler } from '../../support/pooler.js';
import { startDsqlPooler, treeOf } from './dsql-pooler.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run('CREATE TABLE notes (id int PRIMARY KEY, note text)');
  await dsql.reset();
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

async function shown(client: pg.Client, name = 'statement_timeout'): Promise<string> {
  const { rows, command } = await client.query(`SHOW ${name}`);
  expect(command).toMatch(/SHOW|SELECT/);
  return (rows[0] as Record<string, string>)[name] as string;
}

let refusedBefore = 0;
beforeEach(() => {
  refusedBefore = dsql.report().refused;
});
/** Statements that the stand-in has refused since the test began. */
const refusedCount = (): number => dsql.report().refused - refusedBefore;

describe.each(['transaction', 'session'])('in %s mode', (poolMode) => {
  const start = (tree = {}): Promise<TestPooler> =>
    startDsqlPooler(dsql, { pooling: { poolMode, poolSize: 2 }, ...tree });

  test('SET, SHOW and RESET of a refused setting are answered, and the next client has nothing of it', async () => {
    const pooler = await start();
    const client = await pooler.connect();
    expect(await shown(client)).toBe('0');
    expect(await client.query('SET statement_timeout = 5000')).toMatchObject({ command: 'SET', rows: [] });
    expect(await shown(client)).toBe('5s');
    await client.query("SET SESSION lock_timeout TO '2min'");
    expect(await shown(client, 'lock_timeout')).toBe('2min');
    expect(await client.query('RESET statement_timeout')).toMatchObject({ command: 'RESET' });
    expect(await shown(client)).toBe('0');
    await client.query('RESET ALL');
    expect(await shown(client, 'lock_timeout')).toBe('0');
    await client.query("SET client_min_messages TO 'warning'");
    expect(await shown(client, 'client_min_messages')).toBe('warning');
    const other = await pooler.connect();
    expect(await shown(other, 'client_min_messages')).toBe('notice');
    expect(refusedCount()).toBe(0);
  });

  test('the same goes through the extended protocol, with names and without', async () => {
    const pooler = await start();
    const client = await pooler.connect();
    expect(
      await client.query({ text: 'SET statement_timeout = 7000', queryMode: 'extended' } as pg.QueryConfig),
    ).toMatchObject({
      command: 'SET',
    });
    expect(
      (await client.query({ text: 'SHOW statement_timeout', queryMode: 'extended' } as pg.QueryConfig)).rows,
    ).toEqual([{ statement_timeout: '7s' }]);
    const config = {
      text: "SELECT set_config('lock_timeout', '3s', false)",
      queryMode: 'extended',
    } as pg.QueryConfig;
    expect((await client.query(config)).rows).toEqual([{ set_config: '3s' }]);
    expect(await shown(client, 'lock_timeout')).toBe('3s');
    if (poolMode === 'transaction') {
      for (let n = 0; n < 2; n++) await client.query({ name: 'named', text: 'SET statement_timeout = 9000' });
      expect(await shown(client)).toBe('9s');
    }
    expect(refusedCount()).toBe(0);
  });

  test('a rollback undoes it, a commit keeps it, and SET LOCAL ends with the transaction', async () => {
    const pooler = await start();
    const client = await pooler.connect();
    await client.query('SET statement_timeout = 1000');
    for (const needsServer of [false, true]) {
      await client.query('BEGIN');
      if (needsServer) await client.query('SELECT 1');
      await client.query('SET statement_timeout = 2000');
      expect(await shown(client)).toBe('2s');
      await client.query('SET LOCAL statement_timeout = 3000');
      expect(await shown(client)).toBe('3s');
      await client.query('ROLLBACK');
      expect(await shown(client)).toBe('1s');
      await client.query('BEGIN');
      if (needsServer) await client.query('SELECT 1');
      await client.query('SET LOCAL lock_timeout = 3000');
      await client.query('SET statement_timeout = 1000');
      expect(await shown(client, 'lock_timeout')).toBe('3s');
      await client.query('COMMIT');
      expect(await shown(client, 'lock_timeout')).toBe('0');
      expect(await shown(client)).toBe('1s');
      // One that fails.
      await client.query('BEGIN');
      if (needsServer) await client.query('SELECT 1');
      await client.query('SET statement_timeout = 4000');
      await rejectionOf(client.query('SELECT 1 / 0'));
      expect(await rejectionOf(client.query('SET statement_timeout = 5000'))).toMatchObject({
        code: '25P02',
      });
      expect((await client.query('COMMIT')).command).toBe('ROLLBACK');
      expect(await shown(client)).toBe('1s');
    }
    // In a failed transaction, it is the server that says so.
    expect(refusedCount()).toBe(2);
  });

  test('a value that the setting can not have is refused as PostgreSQL does it', async () => {
    const pooler = await start();
    const client = await pooler.connect();
    expect(await rejectionOf(client.query("SET statement_timeout = 'soon'"))).toMatchObject({
      code: '22023',
      message: 'invalid value for parameter "statement_timeout": "soon"',
    });
    await client.query('BEGIN');
    await rejectionOf(client.query("SET statement_timeout = 'soon'"));
    expect(await rejectionOf(client.query('SELECT 1'))).toMatchObject({ code: '25P02' });
    await client.query('ROLLBACK');
    expect(await shown(client)).toBe('0');
  });

  test('a setting that changes the meaning of statements is left to DSQL to refuse', async () => {
    const pooler = await start();
    const client = await pooler.connect();
    const texts = [
      'SET standard_conforming_strings = off',
      "SET bytea_output = 'escape'",
      'SET default_transaction_read_only = on',
      "SET default_transaction_isolation = 'serializable'",
      'SET session_replication_role = replica',
      "SET my.own = 'x'",
      'SET ROLE somebody',
      'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
    ];
    for (const text of texts)
      expect(await rejectionOf(client.query(text)), text).toMatchObject({ code: '0A000' });
    expect(await client.query("SET ROLE 'admin'")).toMatchObject({ command: 'SET' });
    expect(await client.query('SET standard_conforming_strings = on')).toMatchObject({ command: 'SET' });
  });

  test('startup parameters and options are kept, and are what RESET goes back to', async () => {
    const pooler = await start();
    const client = await pooler.connect({
      statement_timeout: 6_000,
      lock_timeout: 1_500,
      options: '-c idle_in_transaction_session_timeout=4s -c client_min_messages=error',
    } as pg.ClientConfig);
    expect(await shown(client)).toBe('6s');
    expect(await shown(client, 'lock_timeout')).toBe('1500ms');
    expect(await shown(client, 'idle_in_transaction_session_timeout')).toBe('4s');
    await client.query('SET statement_timeout = 1000');
    await client.query('RESET statement_timeout');
    expect(await shown(client)).toBe('6s');
    expect(await rejectionOf(pooler.connect({ options: '-c statement_timeout=soon' }))).toMatchObject({
      code: '22023',
    });
    expect(refusedCount()).toBe(0);
  });
});

test('a text of settings alone is swallowed in part, and answered in order; any other goes to DSQL as it is', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const client = await pooler.connect();
  const text = `SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='utf-8'; SET statement_timeout='3s'; SHOW statement_timeout; SHOW datestyle; SELECT pg_catalog.set_config('search_path', 'a, "B"', false)`;
  const answers = (await client.query(text)) as unknown as pg.QueryResult[];
  expect(answers.map(({ command }) => command)).toEqual([
    'SET',
    'SET',
    'SELECT',
    'SET',
    'SET',
    'SHOW',
    'SHOW',
    'SHOW',
  ]);
  expect(answers.map(({ rows }) => rows)).toEqual([
    [],
    [],
    [{ set_config: 'hex' }],
    [],
    [],
    [{ statement_timeout: '3s' }],
    [{ DateStyle: 'ISO, MDY' }],
    [{ search_path: 'a, "B"' }],
  ]);
  expect(pooler.pooler.stats().pinned).toBe(0);
  const other = await pooler.connect();
  expect(await shown(other, 'search_path')).toBe('"$user", public');
  expect(await shown(client, 'search_path')).toBe('a, "B"');
  // The server's part fails: nothing of it holds.
  expect(
    await rejectionOf(
      client.query("SET statement_timeout='8s'; SET timezone='Nowhere'; SET lock_timeout='8s'"),
    ),
  ).toMatchObject({ code: '22023' });
  expect(await shown(client)).toBe('3s');
  expect(await shown(client, 'lock_timeout')).toBe('0');
  expect(refusedCount()).toBe(0);
  expect(await rejectionOf(client.query('SET statement_timeout=1000; SELECT 1'))).toMatchObject({
    code: '0A000',
  });
  expect(await shown(client)).toBe('3s');
});

test('a failed batch of the extended protocol takes back what was set in it', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const client = await pooler.connect();
  const { connection } = client as unknown as { connection: Record<string, (...args: unknown[]) => void> };
  const ready = new Promise((resolve) =>
    (client as unknown as { connection: NodeJS.EventEmitter }).connection.once('readyForQuery', resolve),
  );
  (client as unknown as { _activeQuery: unknown; activeQuery: unknown }).activeQuery = null;
  const noop = {
    handleError() {},
    handleReadyForQuery() {},
    handleCommandComplete() {},
    handleEmptyQuery() {},
    handleRowDescription() {},
    handleDataRow() {},
  };
  Object.assign(client, { _activeQuery: noop, activeQuery: noop });
  connection['parse']?.({ text: 'SET statement_timeout = 5000' });
  connection['bind']?.({});
  connection['execute']?.({});
  connection['parse']?.({ text: 'SELECT 1 / 0' });
  connection['bind']?.({});
  connection['execute']?.({});
  connection['sync']?.();
  await ready;
  const next = await pooler.connect();
  expect(await shown(next)).toBe('0');
});

test('a statement that takes too long is cancelled with 57014, and the client goes on', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const client = await pooler.connect();
  await client.query('SET statement_timeout = 600');
  const timeout = { code: '57014', message: 'canceling statement due to statement timeout' };
  expect(await rejectionOf(client.query('SELECT pg_sleep(30)'))).toMatchObject(timeout);
  expect(await rejectionOf(client.query('SELECT pg_sleep($1)', [30]))).toMatchObject(timeout);
  expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  await client.query('BEGIN');
  expect(await rejectionOf(client.query('SELECT pg_sleep(30)'))).toMatchObject(timeout);
  expect(await rejectionOf(client.query('SELECT 1'))).toMatchObject({ code: '25P02' });
  await client.query('ROLLBACK');
  // The statements of a text count together.
  expect(await rejectionOf(client.query('SELECT pg_sleep(0.4); SELECT pg_sleep(30)'))).toMatchObject(timeout);
  await client.query('SET statement_timeout = 0');
  await client.query('SELECT pg_sleep(0.7)');
  expect(dsql.connectionCounts()).toMatchObject({ accepted: 1 });
});

test('a client that is idle in its transaction for too long is disconnected with 25P03, and nothing of it is left', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const client = await pooler.connect({ options: '-c idle_in_transaction_session_timeout=200ms' });
  const error = new Promise<Error>((resolve) => client.once('error', resolve));
  await client.query('BEGIN');
  await client.query("INSERT INTO notes VALUES (1, 'lost')");
  expect(await error).toMatchObject({
    code: '25P03',
    message: 'terminating connection due to idle-in-transaction timeout',
  });
  const next = await pooler.connect({ options: '-c idle_session_timeout=150ms' });
  const idle = new Promise<Error>((resolve) => next.once('error', resolve));
  expect((await next.query('SELECT count(*)::int AS n FROM notes')).rows).toEqual([{ n: 0 }]);
  expect(await idle).toMatchObject({ code: '57P05' });
});

test('a timeout that is shorter than the client has been idle already counts from its SET on', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  for (const [begin, name, code] of [
    [[], 'idle_session_timeout', '57P05'],
    [['BEGIN'], 'idle_in_transaction_session_timeout', '25P03'],
    [['BEGIN', 'SELECT 1'], 'idle_in_transaction_session_timeout', '25P03'],
  ] as const) {
    const client = await pooler.connect();
    const error = new Promise<Error>((resolve) => client.once('error', resolve));
    for (const text of begin) await client.query(text);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(await client.query(`SET ${name} = 150`)).toMatchObject({ command: 'SET' });
    expect(await shown(client, name)).toBe('150ms');
    expect(await error).toMatchObject({ code });
  }
});

test('BEGIN, SET TRANSACTION READ ONLY makes a transaction that is read-only on the server', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const client = await pooler.connect();
  await client.query('BEGIN');
  await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
  await client.query('LOCK TABLE notes IN ACCESS SHARE MODE');
  expect((await client.query('SELECT count(*)::int AS n FROM notes')).rows).toEqual([{ n: 0 }]);
  expect(await rejectionOf(client.query("INSERT INTO notes VALUES (2, 'x')"))).toMatchObject({
    code: '25006',
  });
  await client.query('ROLLBACK');
  await client.query('BEGIN');
  expect(await rejectionOf(client.query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE'))).toMatchObject({
    code: '0A000',
  });
  await client.query('ROLLBACK');
  await client.query("INSERT INTO notes VALUES (2, 'x')");
  await client.query('DELETE FROM notes');
});

test('a swallowed statement is counted under one word in the log, in the metrics and on the console', async () => {
  const lines: string[] = [];
  const pooler = await startDsqlPooler(
    dsql,
    { admin: { statsUsers: ['admin'] }, observability: { metricsListen: '127.0.0.1:0' } },
    { host: { log: (_level, message, details) => lines.push(`${message} ${details?.['what'] ?? ''}`) } },
  );
  const client = await pooler.connect({ options: '-c lock_timeout=1s' });
  await client.query('SET statement_timeout = 1000');
  await client.query('SET statement_timeout = 2000');
  await shown(client);
  const swallowed = lines.filter((line) => line.includes('swallowed'));
  expect(swallowed.map((line) => line.split(' ').at(-1))).toEqual(['lock_timeout', 'statement_timeout']);
  const console = await pooler.connect({ database: 'headgate' });
  const { rows } = await console.query('SHOW STATS');
  expect(rows.find(({ database }) => database === 'postgres')).toMatchObject({ total_swallowed_count: '3' });
  const metrics = await (await fetch(`http://127.0.0.1:${pooler.pooler.metricsPort}/metrics`)).text();
  expect(metrics).toMatch(/headgate_pooler_swallowed_total\{[^}]*what="statement_timeout"[^}]*\} 2/);
  // A series begins at 0, so that rates see the first count.
  for (const what of ['role', 'lock table', 'bytea_output'])
    expect(metrics).toMatch(new RegExp(`headgate_pooler_swallowed_total\\{[^}]*what="${what}"[^}]*\\} 0`));
});

test('with keepSettings off, and for a server that is not DSQL, everything goes to the server', async () => {
  const off = await startDsqlPooler(dsql, { dsql: { keepSettings: false } });
  expect(await rejectionOf((await off.connect()).query('SET statement_timeout = 1'))).toMatchObject({
    code: '0A000',
  });
  const { databases } = treeOf(dsql);
  const postgres = { ...(databases?.['postgres'] as object), dialect: 'postgresql' };
  const plain = await startDsqlPooler(dsql, { databases: { postgres } });
  expect(await rejectionOf((await plain.connect()).query('SET statement_timeout = 1'))).toMatchObject({
    code: '0A000',
  });
});
