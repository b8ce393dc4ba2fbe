// A database that is not in the configuration any more, or that nobody has used for long: no command and no metric shows it, but for totals.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { DepartedPools } from '../../src/pooler/process/departed-pools.js';
import type { BackendPool } from '../../src/pooler/servers/backend-pool.js';
import { PoolTally } from '../../src/pooler/servers/pool-tally.js';
import { poolerConfig, startTestPooler, treeFor } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { scrape } from './metrics/scrape.js';

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
  const shown = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const what of ['DATABASES', 'POOLS', 'SERVERS', 'CLIENTS']) {
      const { rows } = await admin.query<Record<string, unknown>>(`SHOW ${what}`);
      if (rows.some((row) => Object.values(row).includes('gone'))) found.push(what);
    }
    const { lines } = await scrape(pooler.pooler.metricsPort as number);
    if (lines.some(({ labels }) => labels.database === 'gone')) found.push('metrics');
    return found;
  };
  await vi.waitFor(async () => expect(await shown()).toEqual([]), soon);
  const { rows } = await admin.query<{ database: string; total_query_count: string }>('SHOW STATS');
  expect(rows.find((row) => row.database === 'gone')).toMatchObject({ total_query_count: '1' });
});

test('totals of more databases than can be told apart are kept as one', () => {
  const departed = new DepartedPools();
  for (let n = 0; n < 1_500; n++) {
    const pool = { database: `database_${n}`, tally: new PoolTally(), totals: () => ({ acquired: 1 }) };
    departed.add(pool as unknown as BackendPool);
  }
  expect(departed.databases.size).toBe(1_001);
  expect(departed.databases.get('(others)')).toMatchObject({ serverAssignments: 500 });
});
