// How a DsqlPool keeps its connections, with a reservoir and without, against the stand-in for Aurora DSQL.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { DsqlConnectError, DsqlPool, type DsqlPoolOptions, type TokenRequest } from '../../src/dsql.js';
import { type PoolStats, ReservoirEmptyError, TokenBucket } from '../../src/index.js';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';
import { signToken } from '../support/dsql-token.js';
import { nextTurn, rejectionOf } from '../support/outcomes.js';

let dsql: TestDsql;
const pools: DsqlPool[] = [];

beforeAll(async () => {
  dsql = await startTestDsql();
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

/** Nothing is held up by another test's use of the limiter, nor by the wait that spreads the starts of processes. */
function openPool(options: DsqlPoolOptions = {}): DsqlPool {
  const { credentials } = dsql;
  const pool = new DsqlPool({
    ...dsql.connection,
    ...(options.tokenProvider === undefined ? { credentials } : {}),
    env: {},
    startJitter: 0,
    backoffBaseMillis: 1,
    rateLimiter: new TokenBucket({ rate: 1_000, burst: 100 }),
    ...options,
  });
  pools.push(pool);
  return pool;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await nextTurn();
}

function discarded(pool: DsqlPool): Partial<PoolStats['totals']['discarded']> {
  const counts = Object.entries(pool.stats().totals.discarded).filter(([, count]) => count > 0);
  return Object.fromEntries(counts);
}

function tokenFor({ host, region }: TokenRequest): string {
  const { credentials } = dsql;
  return signToken({ host, region, action: 'DbConnectAdmin', credentials, signedAt: new Date() });
}

test('a pool with a reservoir is filled as the environment says, and hands out at once what is ready', async () => {
  const pool = openPool({
    max: 4,
    env: {
      DSQL_RESERVOIR_ENABLED: 'true',
      DSQL_RESERVOIR_TARGET_READY: '3',
      DSQL_RESERVOIR_LOW_WATERMARK: '2',
    },
  });
  await pool.ready();
  expect(pool.stats().live).toBeGreaterThanOrEqual(2);
  await until(() => pool.stats().idle === 3);
  expect(pool.stats().reservoir).toMatchObject({ targetReady: 3, lowWatermark: 2, isFilled: true });
  const clients = [pool.tryConnect(), pool.tryConnect(), pool.tryConnect()];
  for (const client of clients) {
    expect((await client?.query('select 1 + 1 as two'))?.rows).toEqual([{ two: 2 }]);
  }
  for (const client of clients) client?.release();
  expect(dsql.connectionCounts().peak).toBeLessThanOrEqual(4);
});

test('a pool with a reservoir opens no connection for a caller who finds it empty, who learns why it is', async () => {
  const pool = openPool({ max: 1, reservoir: { emptyWait: '10ms' } });
  await pool.ready();
  const client = pool.tryConnect();
  expect(client).toBeDefined();
  expect(pool.tryConnect()).toBeUndefined();
  expect(await rejectionOf(pool.connect())).toBeInstanceOf(ReservoirEmptyError);
  client?.release();
  expect(dsql.logins).toHaveLength(1);
  expect(pool.stats().totals.foundEmpty).toBe(2);
});

test('a pool with a reservoir replaces connections near the end of their life before a caller asks', async () => {
  const reservoir = { baseLifetime: '1s', lifetimeJitter: '200ms', guardWindow: '300ms' };
  const pool = openPool({ max: 3, reservoir });
  await pool.ready();
  await until(() => pool.stats().totals.opened >= 6 && pool.stats().idle === 3);
  const byScan = ['expired_on_scan', 'expiring_soon_on_scan'];
  expect(Object.keys(discarded(pool)).filter((reason) => !byScan.includes(reason))).toEqual([]);
  expect(dsql.connectionCounts().peak).toBeLessThanOrEqual(3);
});

test('a pool with a reservoir closes released connections when enough are ready', async () => {
  const pool = openPool({ max: 2, reservoir: { targetReady: 1 } });
  await pool.ready();
  const first = pool.tryConnect();
  await until(() => pool.stats().idle === 1);
  const second = pool.tryConnect();
  first?.release();
  second?.release();
  expect(discarded(pool)).toEqual({ reservoir_full: 1 });
});

test('a pool with a reservoir closes released connections that are too old', async () => {
  const pool = openPool({
    max: 1,
    reservoir: { baseLifetime: '300ms', lifetimeJitter: 0, guardWindow: 0 },
  });
  const client = await pool.connect({ timeout: 0 });
  await until(() => pool.expiredCount === 1);
  client.release();
  expect(discarded(pool)).toMatchObject({ expired_on_return: 1 });
  await until(() => pool.stats().totals.opened > 1);
  expect(dsql.connectionCounts().peak).toBe(1);
});

test('a pool with a reservoir fills up by itself when a token provider that failed works again', async () => {
  let isDown = true;
  const pool = openPool({
    max: 2,
    breakerThreshold: 2,
    backoffCapMillis: 10,
    reservoir: { initialFillTimeout: '10ms' },
    tokenProvider: (request) => {
      if (isDown) throw new Error('no route to the credentials');
      return tokenFor(request);
    },
  });
  await until(() => pool.stats().totals.refillFailures.token_provider >= 4);
  expect(pool.stats().totals.refillFailures).toMatchObject({ connection_open: 0, rate_limit: 0 });
  expect(dsql.logins).toHaveLength(0);
  const error = await rejectionOf(pool.connect());
  expect(error.cause).toBeInstanceOf(DsqlConnectError);
  expect(error.cause).toMatchObject({ reason: 'token_unavailable' });
  isDown = false;
  await until(() => pool.stats().idle === 2);
  expect(dsql.logins).toHaveLength(2);
});

test('a pool with a reservoir counts what the server refuses for being too fast apart from what fails', async () => {
  dsql.setFaults({ refuseConnections: true });
  const pool = openPool({ max: 1, backoffCapMillis: 10, reservoir: true });
  await until(() => pool.stats().totals.refillFailures.rate_limit >= 2);
  expect(pool.stats().totals.refillFailures).toMatchObject({ connection_open: 0, token_provider: 0 });
  dsql.setFaults({});
  await until(() => pool.stats().idle === 1);
});

test('a pool without a reservoir is at its size before a caller asks, and again after the server has cut all connections', async () => {
  const pool = openPool({ max: 3, keeper: { interval: 20, perTick: 3 } });
  await until(() => pool.stats().live === 3);
  expect(pool.stats().totals).toMatchObject({ acquired: 0, opened: 3 });
  dsql.dropConnections();
  await until(() => pool.stats().totals.opened === 6 && pool.stats().live === 3);
  expect(pool.stats().totals.toppedUp).toBe(3);
  expect(dsql.connectionCounts().peak).toBeLessThanOrEqual(3);
});

test('a pool without a reservoir opens nothing by itself where that is turned off', async () => {
  const pool = openPool({ max: 3, warmup: false, keeper: false });
  await pool.query('select 1');
  expect(pool.stats().totals.opened).toBe(1);
  expect(pool.stats()).toMatchObject({ warmup: undefined, keeper: undefined });
});

test('a pool without a reservoir does not keep callers waiting for the sake of a staggered start', async () => {
  const pool = openPool({
    max: 3,
    env: { DSQL_STAGGERED_STARTUP_MAX_DELAY: '100h' },
    startJitter: undefined,
  });
  await pool.query('select 1');
  expect(pool.stats().totals.opened).toBe(1);
});
