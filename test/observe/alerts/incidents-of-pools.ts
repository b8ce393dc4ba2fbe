// Incidents of pools in programs, scraped from real pools by a real registry.
import { Registry } from 'prom-client';
import { vi } from 'vitest';
import type { TableLeasesStats } from '../../../src/coordination/dynamodb/table-leases.js';
import type { TableRateLimiterStats } from '../../../src/coordination/dynamodb/table-rate-limiter.js';
import { DsqlPool } from '../../../src/dsql.js';
import { PromisePool, type PromisePoolOptions } from '../../../src/engine.js';
import { exposeLeases, exposePool, exposeRateLimiter } from '../../../src/prometheus.js';
import { TransactionPublisher } from '../../../src/runtime/transaction-channels.js';
import type { Recorded } from './promql.js';
import { recorded } from './recording.js';

/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 5 };
const down = new Error('connection refused');

interface Stage {
  readonly pool: PromisePool<object>;
  readonly registry: Registry;
}

/** Scrapes at the start, after the preparation, and after each of two steps of the incident. */
async function play(
  options: Partial<PromisePoolOptions<object>>,
  prepare: (stage: Stage) => Promise<unknown>,
  step: (stage: Stage, number: number) => Promise<unknown>,
  intervalSeconds?: number,
): Promise<Recorded> {
  const registry = new Registry();
  const pool = new PromisePool<object>({ connect: async () => ({}), max: 10, warnAfter: 0, ...options });
  const exposure = exposePool(pool, { registry, service: 'shop' });
  const texts = [await registry.metrics()];
  await prepare({ pool, registry });
  texts.push(await registry.metrics());
  for (const number of [1, 2]) {
    await step({ pool, registry }, number);
    texts.push(await registry.metrics());
  }
  exposure.stop();
  void pool.drain({ deadline: 1 }).catch(() => {});
  return recorded(texts, intervalSeconds);
}

const reservoir = { reservoir: { targetReady: 8 }, startJitter: 0 };
const filled = ({ pool }: Stage) =>
  vi.waitFor(() => {
    if (pool.stats().reservoir?.isFilled !== true || pool.stats().idle < 8) throw new Error('not filled');
  }, soon);
const nothing = async () => {};

/** Each caller waits in vain. */
async function callersTimeOut(pool: PromisePool<object>, count: number, timeout: number): Promise<void> {
  await Promise.allSettled(Array.from({ length: count }, () => pool.acquire({ timeout })));
}

export async function healthy(): Promise<Recorded> {
  return play(reservoir, filled, async ({ pool }) => {
    for (let n = 0; n < 50; n++) (await pool.acquire()).release();
    const told = new TransactionPublisher(pool, pool.name);
    told.retryScheduled('order', 1, 'retryable', 1);
    told.committed('order', 2, 3);
  });
}

/** A first fill that goes on as fast as its limiter allows, more than a second for each permit, while callers come. */
export async function slowFill(): Promise<Recorded> {
  let permits = 0;
  const rateLimiter = {
    take: () => {
      if (permits === 0) return 50;
      permits--;
      return 0;
    },
  };
  const opens = async ({ pool }: Stage, count: number): Promise<void> => {
    const { rate_limit: heldBack } = pool.stats().totals.refillFailures;
    await vi.waitFor(() => {
      if (pool.stats().totals.refillFailures.rate_limit <= heldBack) throw new Error('not held back yet');
    }, soon);
    const { opened } = pool.stats().totals;
    permits = count;
    await vi.waitFor(() => {
      if (pool.stats().totals.opened < opened + count) throw new Error('not opened yet');
    }, soon);
  };
  return play(
    { ...reservoir, rateLimiter },
    async (stage) => {
      const early = stage.pool.acquire({ timeout: '20s' });
      await opens(stage, 4);
      (await early).release();
    },
    (stage) => opens(stage, 1),
  );
}

/** Every connection is replaced as soon as it was used, and waits for its permit for longer than it lives. */
export async function shortLives(): Promise<Recorded> {
  const permitAfterMs = 700;
  let nextAt = 0;
  const rateLimiter = {
    take: (now: number) => {
      if (now < nextAt) return nextAt - now;
      nextAt = now + permitAfterMs;
      return 0;
    },
  };
  const options = { max: 1, maxLifetime: 1, maxLifetimeJitter: 0, rateLimiter };
  const oneLife = async ({ pool }: Stage): Promise<void> => {
    const { max_lifetime: ended } = pool.stats().totals.discarded;
    const checkout = await pool.acquire({ timeout: '20s' });
    setTimeout(() => checkout.release(), 5);
    await vi.waitFor(() => {
      if (pool.stats().totals.discarded.max_lifetime === ended) throw new Error('lives on');
    }, soon);
  };
  // Two lives in two seconds.
  const twoLives = async (stage: Stage) => {
    await oneLife(stage);
    await oneLife(stage);
  };
  return play(options, oneLife, twoLives, 2);
}

export async function databaseDown(): Promise<Recorded> {
  let isDown = false;
  const connect = async () => {
    if (isDown) throw down;
    return {};
  };
  return play({ ...reservoir, connect }, filled, async ({ pool }, number) => {
    const { connection_open: failed } = pool.stats().totals.refillFailures;
    if (number === 1) {
      isDown = true;
      const all = await Promise.all(Array.from({ length: pool.stats().idle }, () => pool.acquire()));
      for (const checkout of all) checkout.release(down);
    }
    await vi.waitFor(() => {
      const { totals, breaker } = pool.stats();
      if (totals.refillFailures.connection_open <= failed || (number === 2 && breaker === 'closed'))
        throw new Error('not yet');
    }, soon);
    await callersTimeOut(pool, 3, 5);
  });
}

/** No token, so nothing is dialed. */
export async function noToken(): Promise<Recorded> {
  const registry = new Registry();
  const tokenProvider = () => Promise.reject(new Error('no credentials'));
  const pool = new DsqlPool({
    host: 'db.example',
    region: 'eu-west-1',
    tokenProvider,
    env: {},
    reservoir: { targetReady: 8 },
    max: 10,
    warmup: false,
    keeper: false,
    startJitter: 0,
  });
  pool.on('error', () => {});
  const exposure = exposePool(pool, { registry, service: 'shop' });
  const texts: string[] = [];
  for (let n = 0; n < 2; n++) {
    const { token_provider: failed } = pool.stats().totals.refillFailures;
    await vi.waitFor(() => {
      if (pool.stats().totals.refillFailures.token_provider <= failed) throw new Error('not yet');
    }, soon);
    texts.push(await registry.metrics());
  }
  exposure.stop();
  await pool.end();
  return recorded(texts);
}

export async function rateReached(): Promise<Recorded> {
  const rateLimiter = { take: () => 50 };
  return play(
    { ...reservoir, rateLimiter },
    async ({ pool }) => void pool.acquire().catch(() => {}),
    async ({ pool }) => {
      const { rate_limit: failed } = pool.stats().totals.refillFailures;
      await vi.waitFor(() => {
        if (pool.stats().totals.refillFailures.rate_limit <= failed) throw new Error('not yet');
      }, soon);
    },
  );
}

export async function manyDiscards(): Promise<Recorded> {
  return play(reservoir, filled, async ({ pool }) => {
    for (let n = 0; n < 400; n++) (await pool.acquire()).release(down);
  });
}

export async function allInUse(): Promise<Recorded> {
  return play(
    { max: 2, leakThreshold: 10, ...{ reservoir: { targetReady: 2 }, startJitter: 0 } },
    ({ pool }) => Promise.all([pool.acquire(), pool.acquire()]),
    ({ pool }) => callersTimeOut(pool, 2, 1_100),
  );
}

export async function slowCheckouts(): Promise<Recorded> {
  return play({ max: 1, reservoir: { targetReady: 1 }, startJitter: 0 }, nothing, async ({ pool }) => {
    const held = await pool.acquire({ timeout: '20s' });
    const waiting = pool.acquire({ timeout: '20s' });
    setTimeout(() => held.release(), 30);
    (await waiting).release();
  });
}

export async function leaks(): Promise<Recorded> {
  return play({ leakThreshold: 5 }, nothing, async ({ pool }, number) => {
    await pool.acquire();
    await vi.waitFor(() => {
      if (pool.stats().totals.leaks < number) throw new Error('not yet');
    }, soon);
  });
}

export async function transactionsFail(): Promise<Recorded> {
  return play({}, nothing, async ({ pool }) => {
    const told = new TransactionPublisher(pool, pool.name);
    for (let n = 0; n < 700; n++) told.conflict('order', 'data', 1);
    told.exhausted('order', 'attempts', 3);
    told.failed('order', 'exhausted', 10, 3);
  });
}

const calls = {
  calls: 10,
  writes: 10,
  failures: { conflict: 0, throttled: 0, misconfigured: 0, unavailable: 0 },
  answeredMs: 50,
  answered: 10,
  lastMs: 5,
};
const leasesOk: TableLeasesStats = {
  ...{
    limit: 100,
    active: 40,
    owned: 10,
    held: 8,
    waiting: 0,
    waitingInstances: 0,
    instances: 4,
    reclaimed: 0,
    repaired: 0,
  },
  denied: { limit: 0, gone: 0, conflict: 0, throttled: 0, misconfigured: 0, unavailable: 0 },
  ...{ state: 'ok', calls, byHolder: [], strayReleases: 0 },
};
const rateOk: TableRateLimiterStats = {
  ...{
    inHand: 5,
    taken: 10,
    postponed: 0,
    denied: 0,
    refused: 0,
    expired: 0,
    batch: 5,
    rate: 20,
    waitMs: 0,
    state: 'ok',
    calls,
  },
};

/** What the table of a fleet says of itself; `change` is what goes on at each step. */
async function fleet(
  change: (number: number) => { leases?: Partial<TableLeasesStats>; rate?: Partial<TableRateLimiterStats> },
): Promise<Recorded> {
  const registry = new Registry();
  let now = 0;
  exposeLeases({ stats: () => ({ ...leasesOk, ...change(now).leases }) }, { registry, service: 'shop' });
  exposeRateLimiter(
    { stats: () => ({ ...rateOk, taken: 10 + now * 100, ...change(now).rate }) },
    { registry, service: 'shop' },
  );
  const texts: string[] = [];
  for (; now < 4; now++) texts.push(await registry.metrics());
  return recorded(texts);
}

export const healthyFleet = () => fleet(() => ({}));
export const fleetFull = () =>
  fleet(() => ({ leases: { active: 95, waiting: 3, waitingInstances: 2 }, rate: { waitMs: 8_000 } }));
export const tableDown = () =>
  fleet((number) => {
    const failing = { ...calls, failures: { ...calls.failures, unavailable: number * 30 } };
    return { leases: { state: 'lost', calls: failing }, rate: { state: 'failing', calls: failing } };
  });
