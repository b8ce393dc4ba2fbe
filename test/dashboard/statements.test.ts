// The statements of the page: the costliest, without their constants, of all processes together, and the text of what runs now.
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { mergeStatements, shownStatements } from '../../src/pooler/process/page-statements.js';
import { QueryBook } from '../../src/pooler/servers/query-stats.js';
import { serve } from '../pooler/workers/served.js';
import { startTestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { lookAt } from './look-at.js';

const password = 'the-operator-password';
/** Of the costliest, and of the slowest. */
const shownRows = 25;
const observability = { metricsListen: '127.0.0.1:0', pagePassword: password };
/** The machine may be busy. */
const soon = { timeout: 30_000, interval: 50 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('the page has what statements cost, the costliest first, and the text of those that run', async () => {
  const { pooler, connect } = await startTestPooler(db, { observability });
  const base = `http://127.0.0.1:${pooler.metricsPort}`;
  const [holder, waiting, listener] = [await connect(), await connect(), await connect()];
  await listener.query('listen orders');
  for (let n = 1; n <= 3; n++) await holder.query(`select generate_series(1, ${n}) as number`);
  await expect(holder.query('select 1 / 0')).rejects.toThrow('division by zero');
  await holder.query("select pg_sleep(0.05), 'secret'");
  await holder.query('begin; select pg_advisory_xact_lock(4711)');
  const locked = waiting.query('select pg_advisory_xact_lock(4711)');
  await vi.waitFor(async () => {
    const snapshot = await lookAt(base, password);
    const running = snapshot.running.find(({ text }) => text === 'select pg_advisory_xact_lock(?)');
    expect(running).toMatchObject({ user: db.user, database: db.database, isIdle: false });
    // The one that holds the lock has its transaction open; the one that listens does nothing.
    expect(snapshot.running.map(({ isIdle }) => isIdle).sort()).toEqual([false, true]);
    expect(snapshot.pins.byReason).toEqual({ listen: 1 });
    const statements = snapshot.statements ?? [];
    const common = { user: db.user, database: db.database };
    expect(statements).toContainEqual(
      expect.objectContaining({
        ...common,
        text: 'select generate_series(?, ...) as number',
        calls: 3,
        rows: 6,
        errors: 0,
      }),
    );
    expect(statements).toContainEqual(
      expect.objectContaining({ ...common, text: 'select ? / ?', calls: 1, errors: 1 }),
    );
    const totals = statements.map(({ totalMs }) => totalMs);
    expect(totals).toEqual([...totals].sort((one, other) => other - one));
    const slow = statements.find(({ text }) => text === 'select pg_sleep(?), ?');
    expect(slow?.meanMs).toBe(slow?.totalMs);
    expect(slow?.p99Ms).toBe(slow?.totalMs);
    expect(JSON.stringify(snapshot)).not.toContain('secret');
  }, soon);
  await holder.query('commit');
  await locked;
});

test('where statements are not counted, there is no such tile', async () => {
  const { pooler } = await startTestPooler(db, { observability: { ...observability, queryStats: 0 } });
  const snapshot = await lookAt(`http://127.0.0.1:${pooler.metricsPort}`, password);
  expect(snapshot.statements).toBeNull();
});

test('statements of several workers are counted together', async () => {
  const served = await serve(db, { observability });
  onTestFinished(async () => void (await served.end()));
  const clients = await served.clientOfEach(await served.console());
  for (const client of clients.values())
    for (let n = 0; n < 4; n++) await client.query(`select ${n} as counted_together`);
  const port = /127\.0\.0\.1:(\d+)\/?[^\n]*metrics|metrics[^\n]*127\.0\.0\.1:(\d+)/.exec(served.out);
  const base = `http://127.0.0.1:${port?.[1] ?? port?.[2]}`;
  await vi.waitFor(async () => {
    const { statements } = await lookAt(base, password);
    const found = statements?.filter(({ text }) => text === 'select ? as counted_together');
    expect(found).toHaveLength(1);
    expect(found?.[0]).toMatchObject({ calls: 8, rows: 8, errors: 0 });
  }, soon);
});

test('the page has few of thousands of statements, with texts that are cut, and the console has as many as are kept', async () => {
  const kept = 1_000;
  const { pooler, connect } = await startTestPooler(db, {
    observability: { ...observability, queryStats: kept },
    admin: { adminUsers: [db.user] },
  });
  const base = `http://127.0.0.1:${pooler.metricsPort}`;
  const clients = await Promise.all([connect(), connect(), connect(), connect()]);
  const padding = 'x'.repeat(3_000);
  const each = async (client: (typeof clients)[number], first: number): Promise<void> => {
    for (let n = first; n < 3_000; n += clients.length)
      await client.query(`select 1 as c${n}, 2 as ${padding}`);
  };
  await Promise.all(clients.map(each));
  await clients[0]?.query('select pg_sleep(0.5)');
  await vi.waitFor(async () => {
    const snapshot = await lookAt(base, password);
    const statements = snapshot.statements ?? [];
    expect(statements.find(({ text }) => text === 'select pg_sleep(?)')).toMatchObject({ calls: 1 });
    expect(statements.length).toBeGreaterThan(20);
    expect(statements.length).toBeLessThanOrEqual(2 * shownRows);
    expect(Math.max(...statements.map(({ text }) => text.length))).toBeLessThan(510);
    // All that a page is sent again when one number of the tile has changed.
    expect(JSON.stringify(statements).length).toBeLessThan(2 * shownRows * 800);
  }, soon);
  const admin = await connect({ database: 'headgate' });
  expect((await admin.query('show query_stats')).rows).toHaveLength(kept);
});

test('a process tells of a few of its statements, with texts that are cut', () => {
  const book = new QueryBook(2_000);
  for (let n = 1; n <= 1_500; n++)
    book.find('app', 'web', `select ${'x'.repeat(900)}${n}`).record(n, 0, false);
  book.find('app', 'web', 'select short').record(100_000, 2, true);
  book.find('app', 'web', 'never executed');
  const digests = shownStatements(book, 10) ?? [];
  expect(digests).toHaveLength(40);
  expect(Math.max(...digests.map(({ text }) => text.length))).toBeLessThan(510);
  const [first, ...others] = mergeStatements([digests, undefined, digests], 10) ?? [];
  expect(first).toMatchObject({ text: 'select short', calls: 2, errors: 2, totalMs: 200_000, waitMs: 4 });
  expect(first?.p99Ms).toBe(100_000);
  // Texts that begin alike are one row.
  expect(others).toHaveLength(1);
  expect(others[0]).toMatchObject({ calls: 78 });
});

test('the page has the slowest statements, too, though others take more time', () => {
  const book = new QueryBook(1_000);
  for (let n = 0; n < 100; n++) {
    const often = book.find('app', 'web', `select often${n}`);
    for (let call = 0; call < 100; call++) often.record(10, 0, false);
  }
  book.find('app', 'web', 'select seldom').record(900, 0, false);
  const shown = mergeStatements([shownStatements(book, 10)], 10) ?? [];
  expect(shown.slice(0, 10).every(({ totalMs }) => totalMs === 1_000)).toBe(true);
  const seldom = shown.find(({ text }) => text === 'select seldom');
  expect(seldom).toMatchObject({ longestMs: 900, totalMs: 900, calls: 1 });
  expect(shown.length).toBeLessThanOrEqual(20);
});
