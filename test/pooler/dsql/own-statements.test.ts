// Statements that the pooler itself sends to a server: Aurora DSQL must refuse none of them.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { startDsqlPooler, treeOf } from './dsql-pooler.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run(
    'CREATE TABLE dated (id int PRIMARY KEY, day date)',
    "INSERT INTO dated VALUES (1, '2024-02-01')",
  );
  await dsql.reset();
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

const reasonsOf = (): string[] => dsql.report().refusals.map(({ message }) => message);

test('settings that a server reports follow the client back to a server that another client has used', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const one = await pooler.connect();
  const other = await pooler.connect();
  await one.query("SET timezone = 'Europe/Berlin'");
  await one.query('SET datestyle = german');
  await other.query('SELECT 1');
  expect((await one.query('SHOW timezone')).rows).toEqual([{ TimeZone: 'Europe/Berlin' }]);
  expect((await one.query('SHOW datestyle')).rows).toEqual([{ DateStyle: 'German, DMY' }]);
  expect((await other.query('SHOW timezone')).rows).not.toEqual([{ TimeZone: 'Europe/Berlin' }]);
  expect(reasonsOf()).toEqual([]);
});

test('startup parameters that DSQL has are set on the server, and shown as the server writes them', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const options = '-c search_path=One,"Two,\\ three" -c extra_float_digits=0 -c TimeZone=Asia/Tokyo';
  const client = await pooler.connect({ options });
  const other = await pooler.connect();
  await other.query('SELECT 1');
  expect((await client.query('SHOW search_path')).rows).toEqual([{ search_path: 'one, "Two, three"' }]);
  expect((await client.query('SHOW extra_float_digits')).rows).toEqual([{ extra_float_digits: '0' }]);
  expect((await client.query('SHOW timezone')).rows).toEqual([{ TimeZone: 'Asia/Tokyo' }]);
  expect(reasonsOf()).toEqual([]);
});

test('a startup parameter that DSQL has and whose value it does not know is refused in its words', async () => {
  const pooler = await startDsqlPooler(dsql);
  const refused = await rejectionOf(pooler.connect({ options: '-c timezone=Nowhere/Else' }));
  expect(refused).toMatchObject({
    code: '22023',
    message: 'invalid value for parameter "TimeZone": "Nowhere/Else"',
  });
});

test('with sessionCheck always, clients are not pinned and leave nothing of their settings', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1, sessionCheck: 'always' } });
  const one = await pooler.connect();
  const other = await pooler.connect();
  await one.query("SET search_path = 'elsewhere'");
  await one.query('CREATE TABLE public.made (id int PRIMARY KEY)');
  expect((await other.query('SHOW search_path')).rows).toEqual([{ search_path: '"$user", public' }]);
  expect((await one.query('SHOW search_path')).rows).toEqual([{ search_path: 'elsewhere' }]);
  expect(pooler.pooler.stats().pinned).toBe(0);
  expect(pooler.pooler.stats().pools[0]?.tally.sessionChecks).toBeGreaterThan(3);
  expect(reasonsOf()).toEqual([]);
  await one.query('DROP TABLE public.made');
});

test('after DDL the server is asked what is left, and the client is not pinned', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 1 } });
  const client = await pooler.connect();
  await client.query('CREATE TABLE made (id int PRIMARY KEY)');
  await client.query('DROP TABLE made');
  expect(pooler.pooler.stats()).toMatchObject({ pinned: 0 });
  expect(reasonsOf()).toEqual([]);
});

test('a statement that was prepared under another DateStyle is read on another server as it was then', async () => {
  const pooler = await startDsqlPooler(dsql, { pooling: { poolSize: 2 } });
  const client = await pooler.connect();
  const other = await pooler.connect();
  await client.query("SET datestyle = 'ISO, DMY'");
  const ask = { name: 'dated', text: "SELECT id FROM dated WHERE day = '01/02/2024'" };
  expect((await client.query(ask)).rows).toEqual([{ id: 1 }]);
  await client.query("SET datestyle = 'ISO, MDY'");
  await other.query('BEGIN');
  await other.query('SELECT 1');
  // One of the two servers is the other client's now, in turns.
  expect((await client.query(ask)).rows).toEqual([{ id: 1 }]);
  await other.query('COMMIT');
  await client.query('BEGIN');
  expect((await client.query(ask)).rows).toEqual([{ id: 1 }]);
  await other.query('SELECT 1');
  await client.query('COMMIT');
  expect((await client.query(ask)).rows).toEqual([{ id: 1 }]);
  expect(reasonsOf()).toEqual([]);
});

test.each(['read-write', 'primary', 'any'])(
  'a cluster is good enough for target_session_attrs %s',
  async (wanted) => {
    const { databases } = treeOf(dsql);
    const postgres = { ...(databases?.['postgres'] as object), targetSessionAttrs: wanted };
    const pooler = await startDsqlPooler(dsql, { databases: { postgres } });
    expect((await (await pooler.connect()).query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
    expect(reasonsOf()).toEqual([]);
  },
);

test('checks, cleaning after each transaction and giving up statements are nothing that DSQL refuses', async () => {
  const { databases } = treeOf(dsql);
  const postgres = { ...(databases?.['postgres'] as object), connectQuery: 'SELECT 1' };
  const pooler = await startDsqlPooler(dsql, {
    databases: { postgres },
    pooling: { poolSize: 1, serverCheckDelay: 0, serverResetQueryAlways: true, sessionCheck: 'always' },
    fairShares: { capacity: 'auto' },
  });
  const client = await pooler.connect();
  await client.query({ name: 'one', text: 'SELECT 1' });
  await client.query('DEALLOCATE one');
  await client.query({ name: 'two', text: 'SELECT 2 AS n' });
  await client.query('DEALLOCATE ALL');
  await client.query('RESET ALL');
  await client.query('BEGIN');
  await client.query('SELECT 1');
  // The client leaves in the middle of a transaction.
  await client.end();
  const next = await pooler.connect();
  expect((await next.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  expect(dsql.connectionCounts().accepted).toBe(1);
  expect(reasonsOf()).toEqual([]);
});
