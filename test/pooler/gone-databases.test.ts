// A database that is not in the configuration any more, or that nobody has used for long: no command and no metric shows it, but for totals.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { shows } from '../../src/pooler/console/shows.js';
import { DepartedPools } from '../../src/pooler/process/departed-pools.js';
import type { BackendPool } from '../../src/pooler/servers/backend-pool.js';
import { PoolTally } from '../../src/pooler/servers/pool-tally.js';
import { poolerConfig, startTestPooler, type TestPooler, treeFor } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { scrape } from './metrics/scrape.js';

/** Counts of a database stay in STATS, TOTALS and QUERY_STATS. */
const everyTable = Object.keys(shows).filter((name) => !/stats|totals/.test(name));
/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 50 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('a database that a reload has taken out is in no SHOW and no metric once its clients have left', async () => {
  const { host, port, user, password, database } = db;
  const general = { admin: { adminUsers: [user] }, observability: { metricsListen: '127.0.0.1:0' } };
  const entry = { host, port, user, password };
  const gone = { ...entry, dbname: database };
  const pooler = await startTestPooler(db, { ...general, databases: { [database]: entry, gone } });
  const client = await pooler.connect({ database: 'gone' });
  await client.query('select 1');
  await pooler.pooler.reload(
    poolerConfig(treeFor(db, { ...general, databases: { [database]: entry, gone: undefined } })),
  );
  await client.end();
  const admin = await pooler.connect({ database: 'headgate' });
  await vi.waitFor(async () => expect(await shownOf(pooler, admin, 'gone')).toEqual([]), soon);
  const { rows } = await admin.query<{ database: string; total_query_count: string }>('SHOW STATS');
  expect(rows.find((row) => row.database === 'gone')).toMatchObject({ total_query_count: '1' });
});

test('a database that the server does not have any more is in no SHOW and no metric once a client was refused', async () => {
  const { host, port, user, password, database } = db;
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [user] },
    observability: { metricsListen: '127.0.0.1:0' },
    databases: { [database]: undefined, '*': { host, port, user, password } },
  });
  const other = await withDatabase();
  const client = await pooler.connect({ database: other.database });
  await client.query('select 1');
  const admin = await pooler.connect({ database: 'headgate' });
  expect(await shownOf(pooler, admin, other.database)).toContain('POOLS');
  await client.end();
  await other.drop();
  // The client logs in, since the pool is known, and gets the refusal from the server.
  const late = await pooler.connect({ database: other.database });
  await expect(late.query('select 1')).rejects.toMatchObject({ code: '3D000' });
  await late.end();
  await vi.waitFor(async () => expect(await shownOf(pooler, admin, other.database)).toEqual([]), soon);
});

/** The commands that show this database, and `metrics`. */
async function shownOf({ pooler }: TestPooler, admin: pg.Client, database: string): Promise<string[]> {
  const found: string[] = [];
  for (const what of everyTable) {
    const { rows } = await admin.query<Record<string, unknown>>(`SHOW ${what}`);
    if (rows.some((row) => Object.values(row).includes(database))) found.push(what.toUpperCase());
  }
  const { lines } = await scrape(pooler.metricsPort as number);
  if (lines.some(({ labels }) => labels['database'] === database)) found.push('metrics');
  return found;
}

test('totals of more databases than can be told apart are kept as one', () => {
  const departed = new DepartedPools();
  for (let n = 0; n < 1_500; n++) {
    const pool = { database: `database_${n}`, tally: new PoolTally(), totals: () => ({ acquired: 1 }) };
    departed.add(pool as unknown as BackendPool);
  }
  expect(departed.databases.size).toBe(1_001);
  expect(departed.databases.get('(others)')).toMatchObject({ serverAssignments: 500 });
});
