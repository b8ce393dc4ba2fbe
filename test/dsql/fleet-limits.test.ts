// Limits that the environment asks for: in DynamoDB, one for a process and a cluster.
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { hasJava, startDynamo } from '../../scripts/lib/dynamodb-local.mjs';
import { joinFleet } from '../../src/dsql/fleet-limits.js';
import { DsqlPool } from '../../src/dsql.js';
import { DynamoLeases, DynamoRateLimiter } from '../../src/dynamodb.js';
import { PromisePool } from '../../src/engine.js';
import { localLeases, tokenBucket } from '../../src/index.js';
import { exposeLeases, exposePool } from '../../src/prometheus.js';

const endpoint = { host: 'x.dsql.us-east-1.on.aws', clusterId: 'x', region: 'us-east-1' };
const plan = {
  leases: {
    ...{ table: 'connections', limit: 3, service: 'history' },
    ...{ onCoordinatorLoss: 'hold' as const, localShare: undefined },
  },
  rate: { table: 'connections', rate: 100, maxWaitMs: 30_000, localShare: undefined },
};
const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';
const env = {
  DSQL_DISTRIBUTED_CONN_LEASE_ENABLED: 'true',
  DSQL_DISTRIBUTED_CONN_LEASE_TABLE: 'connections',
  DSQL_DISTRIBUTED_CONN_LIMIT: '500',
  DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED: 'true',
  DSQL_DISTRIBUTED_RATE_LIMITER_TABLE: 'connections',
};
/** Opens nothing by itself. */
const quiet = { host, warmup: false, keeper: false, tokenProvider: () => 'no token' } as const;
const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };

test('pools of the same cluster have the same limits, and those of others have not', async () => {
  const [one, other] = [
    joinFleet(endpoint, plan, credentials, () => {}),
    joinFleet(endpoint, plan, credentials, () => {}),
  ];
  const elsewhere = joinFleet({ ...endpoint, clusterId: 'y' }, plan, credentials, () => {});
  expect(one.limits.leases).toBe(other.limits.leases);
  expect(one.limits.rateLimiter).toBe(other.limits.rateLimiter);
  expect(elsewhere.limits.leases).not.toBe(one.limits.leases);
  await Promise.all([one, other, elsewhere].map(({ leave }) => leave()));
});

test('where nothing is asked for, there is nothing', () => {
  expect(joinFleet(endpoint, { leases: undefined, rate: undefined }, credentials, () => {}).limits).toEqual(
    {},
  );
});

test('a pool has the limits that the environment asks for, the same as other pools of the process', async () => {
  await using one = new DsqlPool({ ...quiet, env });
  await using other = new DsqlPool({ ...quiet, env });
  expect(one.leases).toBeInstanceOf(DynamoLeases);
  expect(one.rateLimiter).toBeInstanceOf(DynamoRateLimiter);
  expect([other.leases, other.rateLimiter]).toEqual([one.leases, one.rateLimiter]);
  expect((one.leases as DynamoLeases).stats().limit).toBe(500);
});

test('a pool has the limits that it was given, and without any the rate limiter of the process', async () => {
  const [leases, rateLimiter] = [localLeases({ limit: 5 }), tokenBucket({ rate: 1, burst: 1 })];
  await using given = new DsqlPool({ ...quiet, leases, rateLimiter, env });
  expect(given.leases).toBe(leases);
  expect(given.rateLimiter).toBe(rateLimiter);
  await using plain = new DsqlPool({ ...quiet, env: {} });
  expect(plain.leases).toBeUndefined();
  expect(plain.rateLimiter?.rate).toBe(10);
});

test('a pool is exposed together with its limits, once for all pools that share them', async () => {
  const registry = new Registry();
  await using one = new DsqlPool({ ...quiet, env, name: 'one' });
  await using other = new DsqlPool({ ...quiet, env, name: 'other' });
  const limits = async (): Promise<string[]> =>
    (await registry.metrics()).match(/^(?:dsql_distributed_conn_lease_limit|headgate_rate_in_hand)\{.*$/gm) ??
    [];
  const exposures = [one, other].map((pool) => exposePool(pool, { registry, service: pool.name }));
  const series = (service: string): string[] => [
    `dsql_distributed_conn_lease_limit{service="${service}"} 500`,
    `headgate_rate_in_hand{service="${service}"} 0`,
  ];
  expect(await limits()).toEqual(series('one'));
  exposures[0]?.stop();
  expect(await limits()).toEqual(series('other'));
  // A program that exposes them alone names them.
  const own = exposeLeases(one.leases as DynamoLeases, { registry, service: 'fleet' });
  expect((await limits())[0]).toBe('dsql_distributed_conn_lease_limit{service="fleet"} 500');
  exposures[1]?.stop();
  expect(await limits()).toEqual(['dsql_distributed_conn_lease_limit{service="fleet"} 500']);
  own.stop();
  expect(await registry.metrics()).not.toContain('lease');
});

describe.runIf(hasJava)('with a table', () => {
  let dynamo: Awaited<ReturnType<typeof startDynamo>>;
  beforeAll(async () => {
    dynamo = await startDynamo();
    await dynamo.createTable('connections');
    vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', dynamo.url);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await dynamo?.stop();
  });

  test('two pools have a lease together, which ends with the last of them', async () => {
    const leases = async (): Promise<number[]> => {
      const { Items = [] } = await dynamo
        .client()
        .send(new ScanCommand({ TableName: 'connections', ConsistentRead: true }));
      return Items.filter(
        ({ pk, service_name }) =>
          pk?.S?.startsWith('dsqllease#x.dsql.us-east-1.on.aws#') && service_name?.S === 'history',
      ).map(({ used }) => Number(used?.N));
    };
    const fleets = [0, 1].map(() => joinFleet(endpoint, plan, credentials, () => {}));
    const pools = fleets.map(
      ({ limits }) => new PromisePool({ connect: () => ({}), max: 3, acquireTimeout: '20s', ...limits }),
    );
    const [first, second] = pools as [PromisePool<object>, PromisePool<object>];
    const held = [await first.acquire(), await second.acquire(), await second.acquire()];
    // The limit is reached, whoever asks.
    await expect(first.acquire({ timeout: '200ms' })).rejects.toMatchObject({ code: 'HG_ACQUIRE_TIMEOUT' });
    expect((await leases()).length).toBe(1);
    for (const lease of held) lease.release();
    await first.drain();
    await fleets[0]?.leave();
    expect((await leases()).length).toBe(1);
    await second.drain();
    await fleets[1]?.leave();
    expect(await leases()).toEqual([]);
  });
});
