// Several poolers on one budget above them, as several machines would be.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { localLeases } from '../../../src/coordination/local-leases.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('two poolers that lease from one budget never have more together, and both serve', async () => {
  const leases = localLeases({ limit: 4 });
  const tree = { fairShares: { capacity: 4 } };
  const fleet = {
    leasesOf: () => leases,
    rateLimiterOf: () => undefined,
    stats: () => [],
    end: async () => {},
  };
  const poolers = await Promise.all([1, 2].map(() => startTestPooler(db, tree, { host: { fleet } })));
  const observer = new pg.Client(db.url);
  await observer.connect();
  let isOver = false;
  let most = 0;
  const watching = (async () => {
    while (!isOver) {
      const { rows } = await observer.query(
        `select count(*)::int as n from pg_stat_activity 
         where backend_type = 'client backend' and datname = current_database() and pid <> pg_backend_pid()`,
      );
      most = Math.max(most, rows[0].n);
    }
  })();
  const clients = await Promise.all(
    poolers.flatMap((pooler) => Array.from({ length: 6 }, () => pooler.connect())),
  );
  const work = clients.map(async (client) => {
    for (let n = 0; n < 20; n++) await client.query('select pg_sleep(0.002)');
  });
  await Promise.all(work);
  isOver = true;
  await watching;
  await observer.end();
  expect(most).toBeLessThanOrEqual(4);
  expect(leases.stats().held).toBeLessThanOrEqual(4);
  await Promise.all(poolers.map(({ stop }) => stop()));
  await expect.poll(() => leases.stats().held).toBe(0);
});
