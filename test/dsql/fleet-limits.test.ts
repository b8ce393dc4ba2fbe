// Limits that the environment asks for: in DynamoDB, one for a process and a cluster.
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { hasJava, startDynamo } from '../../scripts/lib/dynamodb-local.mjs';
import { joinFleet } from '../../src/dsql/fleet-limits.js';
import { PromisePool } from '../../src/engine.js';

const endpoint = { host: 'x.dsql.us-east-1.on.aws', clusterId: 'x', region: 'us-east-1' };
const plan = {
  leases: { table: 'connections', limit: 3 },
  rate: { table: 'connections', rate: 100, maxWaitMs: 30_000 },
};
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
      return Items.filter(({ pk }) => pk?.S?.startsWith('dsqllease#x#')).map(({ used }) => Number(used?.N));
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
