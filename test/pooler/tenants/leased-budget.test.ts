// Several poolers on one budget above them, as several machines would be.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { localLeases } from '../../../src/coordination/local-leases.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { SessionWatch } from '../../support/session-watch.js';

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
  const watch = await SessionWatch.start(db);
  const clients = await Promise.all(
    poolers.flatMap((pooler) => Array.from({ length: 6 }, () => pooler.connect())),
  );
  const work = clients.map(async (client) => {
    for (let n = 0; n < 20; n++) await client.query('select pg_sleep(0.002)');
  });
  await Promise.all(work);
  await watch.stop();
  watch.expectAtMost(4);
  expect(leases.stats().held).toBeLessThanOrEqual(4);
  await Promise.all(poolers.map(({ stop }) => stop()));
  await expect.poll(() => leases.stats().held).toBe(0);
});
