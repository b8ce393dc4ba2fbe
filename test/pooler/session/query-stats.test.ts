// SHOW QUERY_STATS and SHOW ACTIVE_QUERIES: what statements have cost, and what runs now, on any server.
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { QueryBook, quantileOf } from '../../../src/pooler/servers/query-stats.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { serve } from '../workers/served.js';

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

type Row = Record<string, string | number | null>;

const asAdmin = { user: 'console', database: 'pgbouncer' };
const withConsole = { auth: { type: 'trust' }, admin: { adminUsers: ['console'] } };

async function rowsOf(admin: pg.Client, what: string): Promise<Row[]> {
  return (await admin.query(`SHOW ${what}`)).rows;
}

async function statsOf(pooler: TestPooler): Promise<Map<string, Row>> {
  const rows = await rowsOf(await pooler.connect(asAdmin), 'QUERY_STATS');
  return new Map(rows.map((row) => [String(row['query']), row]));
}

test('SHOW QUERY_STATS counts calls, errors, rows, bytes and times of each statement without its constants', async () => {
  const pooler = await startTestPooler(db, withConsole);
  const client = await pooler.connect();
  for (let n = 1; n <= 5; n++) await client.query(`select generate_series(1, ${n}) as number`);
  for (let n = 1; n <= 3; n++) await client.query('select $1::int + $2::int', [n, 1]);
  for (let n = 1; n <= 4; n++)
    await client.query({ name: 'named', text: 'select $1::text as t', values: [`x${n}`] });
  await expect(client.query('select 1 / 0')).rejects.toThrow('division by zero');
  await client.query('begin');
  await client.query("select pg_sleep(0.02), 'secret'");
  await client.query('commit');
  const stats = await statsOf(pooler);
  const common = { database: db.database, user: db.user };
  expect(stats.get('select generate_series(?, ...) as number')).toMatchObject({
    ...common,
    calls: '5',
    errors: '0',
    rows: '15',
  });
  expect(stats.get('select $1::int + $2::int')).toMatchObject({ ...common, calls: '3', rows: '3' });
  expect(stats.get('select $1::text as t')).toMatchObject({ ...common, calls: '4', rows: '4' });
  expect(stats.get('select ? / ?')).toMatchObject({ calls: '1', errors: '1', rows: '0' });
  const slow = stats.get('select pg_sleep(?), ?');
  expect(slow).toMatchObject({ calls: '1', rows: '1' });
  expect(Number(slow?.['total_time'])).toBeGreaterThanOrEqual(15_000);
  expect(Number(slow?.['p99_time'])).toBe(Number(slow?.['max_time']));
  expect(Number(slow?.['bytes'])).toBeGreaterThan(10);
  expect(stats.get('commit')).toMatchObject({ calls: '1' });
  const sum = [...stats.values()].reduce((calls, row) => calls + Number(row['calls']), 0);
  const [all] = await rowsOf(await pooler.connect(asAdmin), 'STATS_TOTALS');
  expect(sum).toBe(Number(all?.['query_count']));
});

test('Queries that are sent one behind the other count for their own statements, in session mode, too', async () => {
  for (const poolMode of ['transaction', 'session']) {
    const pooler = await startTestPooler(db, { ...withConsole, pooling: { poolMode, poolSize: 3 } });
    const client = await pooler.connect({ pipeline: true } as pg.ClientConfig);
    const answers = Array.from({ length: 20 }, (_, n) =>
      n % 2 === 0
        ? client.query({ name: 'a', text: 'select $1::int as a', values: [n] })
        : client.query('select $1::text as b, generate_series(1, 2)', [n]),
    );
    await Promise.all(answers);
    const stats = await statsOf(pooler);
    expect(stats.get('select $1::int as a')).toMatchObject({ calls: '10', rows: '10' });
    expect(stats.get('select $1::text as b, generate_series(?, ...)')).toMatchObject({
      calls: '10',
      rows: '20',
    });
    await pooler.stop();
  }
});

test('SHOW QUERY_STATS counts statements that share a connection with those of other clients, each for its own text', async () => {
  const pooler = await startTestPooler(db, {
    ...withConsole,
    pooling: { poolSize: 2, multiplexDepth: 8, multiplexLongest: '10s' },
  });
  const clients = await Promise.all(Array.from({ length: 16 }, () => pooler.connect()));
  const times = 40;
  await Promise.all(
    clients.map(async (client, index) => {
      for (let n = 0; n < times; n++)
        if (index % 2 === 0) await client.query('select $1::int as even', [n]);
        else await client.query('select $1::text as odd, generate_series(1, 3)', [n]);
    }),
  );
  const admin = await pooler.connect(asAdmin);
  const [totals] = await rowsOf(admin, 'STATS_TOTALS');
  expect(Number(totals?.['multiplexed_count'])).toBeGreaterThan(0);
  const stats = await statsOf(pooler);
  const calls = 8 * times;
  expect(stats.get('select $1::int as even')).toMatchObject({
    calls: `${calls}`,
    rows: `${calls}`,
    errors: '0',
  });
  expect(stats.get('select $1::text as odd, generate_series(?, ...)')).toMatchObject({
    calls: `${calls}`,
    rows: `${3 * calls}`,
    errors: '0',
  });
});

test('SHOW ACTIVE_QUERIES shows the client, the query and the server of each, and clients that wait for one', async () => {
  const pooler = await startTestPooler(db, { ...withConsole, pooling: { poolSize: 1 } });
  const admin = await pooler.connect(asAdmin);
  const [busy, waiting] = [
    await pooler.connect({ application_name: 'busy' }),
    await pooler.connect({ application_name: 'waiting' }),
  ];
  const { rows: pids } = await busy.query('select pg_backend_pid() as pid');
  const slow = busy.query('select pg_sleep(30)').catch(() => {});
  await vi.waitFor(async () => expect(await rowsOf(admin, 'ACTIVE_QUERIES')).toHaveLength(1));
  const next = waiting.query("select 'me' as who");
  await vi.waitFor(async () => expect(await rowsOf(admin, 'ACTIVE_QUERIES')).toHaveLength(2));
  const rows = await rowsOf(admin, 'ACTIVE_QUERIES');
  expect(rows.find(({ application_name }) => application_name === 'busy')).toMatchObject({
    database: db.database,
    user: db.user,
    state: 'active',
    remote_pid: pids[0].pid,
    query: 'select pg_sleep(?)',
  });
  expect(rows.find(({ application_name }) => application_name === 'waiting')).toMatchObject({
    state: 'waiting',
    server: null,
    query: 'select ? as who',
  });
  const killer = new pg.Client({ connectionString: db.url });
  await killer.connect();
  await killer.query('select pg_cancel_backend($1)', [pids[0].pid]);
  await killer.end();
  await Promise.all([slow, next]);
  await vi.waitFor(async () => expect(await rowsOf(admin, 'ACTIVE_QUERIES')).toEqual([]));
});

test('observability.queryStats 0 switches statistics off', async () => {
  const pooler = await startTestPooler(db, { ...withConsole, observability: { queryStats: 0 } });
  await (await pooler.connect()).query('select 1');
  expect(await statsOf(pooler)).toEqual(new Map());
});

test('A book of statements that is full forgets those that are used least', () => {
  const book = new QueryBook(10);
  const often = book.find('db', 'me', 'often');
  for (let n = 0; n < 1_000; n++) {
    often.record(1, 0, false);
    book.find('db', 'me', `text ${n}`).record(1, 0, false);
  }
  expect([...book.entries()]).toHaveLength(10);
  expect(book.find('db', 'me', 'often')).toBe(often);
  expect(often.calls).toBe(1_000);
  expect(quantileOf(often.buckets, 0.99)).toBeGreaterThanOrEqual(1);
  expect(quantileOf(often.buckets, 0.99)).toBeLessThan(1.2);
});

test('A book of statements forgets what was used often once, and is not used any more', () => {
  const book = new QueryBook(10);
  const once = book.find('db', 'me', 'popular');
  for (let n = 0; n < 1_000; n++) once.record(1, 0, false);
  for (let n = 0; n < 1_000; n++) book.find('db', 'me', `text ${n}`).record(1, 0, false);
  expect(once.isForgotten).toBe(true);
  expect(book.forgotten).toBe(991);
});

test('The times of a statement are counted from its first call on, whenever they are looked at', () => {
  for (const looksAfter of [0, 1, 2]) {
    const count = new QueryBook(1).find('db', 'me', 'select ?');
    for (let calls = 0; calls < 3; calls++) {
      if (calls === looksAfter) expect(count.buckets.reduce((sum, n) => sum + n, 0)).toBe(calls);
      count.record(calls === 0 ? 1 : 100, 0, false);
    }
    expect(count.buckets.reduce((sum, n) => sum + n, 0)).toBe(3);
    expect(quantileOf(count.buckets, 0.3)).toBeLessThan(1.2);
    expect(quantileOf(count.buckets, 0.99)).toBeGreaterThanOrEqual(100);
  }
});

test('With two workers, statistics and running queries of both are shown together', async () => {
  const served = await serve(db, { pooling: { poolSize: 4 } });
  const admin = await served.console();
  const clients = [...(await served.clientOfEach(admin)).values()];
  for (const client of clients) for (let n = 0; n < 3; n++) await client.query(`select ${n} as both`);
  const [row] = (await rowsOf(admin, 'QUERY_STATS')).filter(({ query }) => query === 'select ? as both');
  expect(row).toMatchObject({ calls: String(3 * clients.length), rows: String(3 * clients.length) });
  const [first] = clients as [pg.Client];
  const slow = first.query('select pg_sleep(0.5)');
  await vi.waitFor(async () => {
    const running = await rowsOf(admin, 'ACTIVE_QUERIES');
    expect(running.map(({ query }) => query)).toEqual(['select pg_sleep(?)']);
  });
  await slow;
  for (const client of clients) await client.end();
});
