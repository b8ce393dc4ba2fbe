// Several poolers on one budget above them, as several machines would be.
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { FairHolder } from '../../../src/coordination/fair/fair-holder.js';
import { localLeases } from '../../../src/coordination/local-leases.js';
import type { Leases } from '../../../src/core/leases.js';
import { quotasOf } from '../../../src/pooler/budgets/quotas.js';
import { ServerBudgets } from '../../../src/pooler/budgets/server-budgets.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { SessionWatch } from '../../support/session-watch.js';
import { configWith } from '../config/config-files.js';

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

test('the claim of a pooler in a fleet is in proportion to its users that need something, by weight', () => {
  const claims: (number | undefined)[] = [];
  const source: Leases = {
    acquire: (_, { claimants }) => {
      claims.push(claimants);
      return 'granted';
    },
    release: () => {},
  };
  const config = configWith('users: { heavy: { weight: 3 } }\nfairShares: { capacity: none }\n');
  const budgets = new ServerBudgets(quotasOf(config), () => {}, { leasesOf: () => source });
  onTestFinished(() => budgets.stop());
  for (const user of ['light', 'heavy', 'idle']) {
    const leases = budgets.leasesFor({ user, database: 'app', server: 'db:5432' });
    if (user !== 'idle') leases.acquire(1, wanting(user));
  }
  return expect.poll(() => claims.at(-1)).toBe(4);
});

function wanting(name: string): FairHolder {
  return {
    ...{ name, demand: 1, longestIdleSince: undefined },
    takeDemandPeak: () => 1,
    leasesAvailable: () => {},
    leasesGranted: (count) => count,
    leasesRefused: () => {},
    leasesLost: () => {},
    leasesRecalled: () => {},
  };
}
