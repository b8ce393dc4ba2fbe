// The counter of server sessions in tests counts those of clients, and lists them.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { SessionWatch } from '../support/session-watch.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(db.url);
  await client.connect();
  return client;
}

test('clients are counted, processes that the server starts for them are not', async () => {
  const watch = await SessionWatch.start(db);
  const client = await connect();
  const witness = await connect();
  // PostgreSQL runs even this in a process beside the client's own.
  await client.query('set debug_parallel_query = on');
  const sleeping = client.query('select pg_sleep(1)');
  const workers = `select count(*)::int as count from pg_stat_activity
    where datname = current_database() and backend_type = 'parallel worker'`;
  await expect.poll(async () => (await witness.query(workers)).rows[0].count, { interval: 5 }).toBe(1);
  const before = watch.looks;
  await expect.poll(() => watch.looks, { interval: 5 }).toBeGreaterThan(before + 2);
  await sleeping;
  await client.end();
  await witness.end();
  await watch.stop();
  expect(watch.most).toBe(2);
});

test('a session watch lists the sessions at the fullest moment', async () => {
  const watch = await SessionWatch.start(db);
  const client = await connect();
  await client.query("select 'one too many'");
  await expect.poll(() => [...watch.byUser.values()]).toEqual([1]);
  await client.end();
  await watch.stop();
  watch.expectAtMost(1);
  expect(() => watch.expectAtMost(0)).toThrow(`"user":"${db.user}"`);
});
