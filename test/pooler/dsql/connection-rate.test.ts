// How fast the pooler opens connections to Aurora DSQL, in one process.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { RateLimiter } from '../../../src/core/rate-limiter.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { startDsqlPooler, tokensOf, treeOf } from './dsql-pooler.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

/** Each waits for a server connection of its own. */
async function openTransactions(
  connect: () => Promise<import('pg').Client>,
  count: number,
): Promise<Promise<unknown>[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => connect()));
  for (const client of clients) await client.query('BEGIN');
  return clients.map((client) => client.query('SELECT 1'));
}

test('connections beyond the burst are opened at the rate, whichever pool wants them', async () => {
  const pooler = await startDsqlPooler(dsql, {
    pooling: { poolSize: 10 },
    // As good as none while the test lasts.
    dsql: { connectionRate: 0.001, connectionBurst: 3 },
  });
  const asked = await openTransactions(() => pooler.connect(), 5);
  await Promise.all(asked.slice(0, 3));
  await expect.poll(() => pooler.pooler.stats().pools[0]?.waitingForPermit).toBe(2);
  expect(dsql.connectionCounts()).toMatchObject({ accepted: 3 });
  expect(dsql.logins).toHaveLength(3);
  for (const query of asked.slice(3)) query.catch(() => {});
});

test('without a word about it, 10 a second and 100 at once hold for a cluster, and nothing for other servers', async () => {
  const { pooler } = await startDsqlPooler(dsql);
  expect(pooler.config.dsql).toMatchObject({ connectionRate: 10, connectionBurst: 100 });
});

test('the second dial after a token that has expired takes a permit of its own', async () => {
  const old = dsql.expiredToken('admin', dsql.host);
  let asked = 0;
  const provide = async (request: Parameters<ReturnType<typeof tokensOf>>[0]) => {
    asked += 1;
    if (asked > 1) return tokensOf(dsql)(request);
    return { token: old, expiresAt: new Date(Date.now() + 900_000) };
  };
  // One permit: the first dial has it.
  const poor = await startDsqlPooler(
    dsql,
    {
      dsql: { connectionRate: 0.001, connectionBurst: 1 },
      timeouts: { queryWaitTimeout: '300ms', clientLoginTimeout: '500ms' },
    },
    { provide },
  );
  await rejectionOf(poor.connect());
  expect(dsql.logins.map(({ refusal }) => refusal?.code)).toEqual(['08006']);
  await poor.stop();
  // Two: the second dial has the other one.
  asked = 0;
  dsql.logins.length = 0;
  const rich = await startDsqlPooler(
    dsql,
    { dsql: { connectionRate: 0.001, connectionBurst: 2 } },
    { provide },
  );
  expect((await (await rich.connect()).query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  expect(dsql.logins.map(({ refusal }) => refusal?.code)).toEqual(['08006', undefined]);
});

test('a token that expires again and again is tried twice for each dial, and no more', async () => {
  const provide = async () => ({
    token: dsql.expiredToken('admin', dsql.host),
    expiresAt: new Date(Date.now() + 900_000),
  });
  dsql.setFaults({ expireTokens: true });
  const pooler = await startDsqlPooler(
    dsql,
    {
      pooling: { serverLoginRetry: '1h' },
      timeouts: { queryWaitTimeout: '400ms', clientLoginTimeout: '600ms' },
    },
    { provide },
  );
  await rejectionOf(pooler.connect());
  expect(dsql.logins.map(({ refusal }) => refusal?.code)).toContain('08006');
  // The client may have left between the two logins of a dial.
  await expect.poll(() => dsql.logins.length % 2).toBe(0);
});

test('a client hears at once that its identity may not connect, in the words of DSQL', async () => {
  const pooler = await startDsqlPooler(dsql, {}, { user: 'nobody' });
  const refused = await rejectionOf(pooler.connect());
  expect(refused).toMatchObject({ code: '08006', message: expect.stringMatching(/access denied/) });
});

test('where the whole fleet has a limit, that one is asked and the local one is not', async () => {
  let taken = 0;
  const rateLimiter: RateLimiter = {
    take: () => {
      taken += 1;
      return 0;
    },
  };
  const fleet = {
    leasesOf: () => undefined,
    rateLimiterOf: () => rateLimiter,
    stats: () => [],
    end: async () => {},
  };
  const pooler = await startDsqlPooler(
    dsql,
    { pooling: { poolSize: 10 }, dsql: { connectionRate: 0.001, connectionBurst: 1 } },
    { host: { fleet } },
  );
  await Promise.all(await openTransactions(() => pooler.connect(), 4));
  expect(taken).toBe(4);
});

test('a server that only speaks the dialect of DSQL has the limit, too, and one with iam and another dialect has none', async () => {
  const { databases } = treeOf(dsql);
  const postgres = { ...(databases?.['postgres'] as object), dialect: 'postgresql' };
  const pooler = await startDsqlPooler(dsql, {
    databases: { postgres },
    pooling: { poolSize: 10 },
    dsql: { connectionRate: 0.001, connectionBurst: 1 },
  });
  await Promise.all(await openTransactions(() => pooler.connect(), 3));
  expect(dsql.connectionCounts()).toMatchObject({ accepted: 3 });
});
