// The engine's options: defaults, what can be switched off, and what makes no sense.
import { expect, test } from 'vitest';
import { type PolicyOptions, readPolicy } from '../../src/core/pool-policy.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { OptionReader } from '../../src/kernel/option-reader.js';
import { policyOf } from '../support/virtual-world.js';

const never = Number.POSITIVE_INFINITY;

function problemsOf(options: object): Record<string, string> {
  const read = new OptionReader(options);
  readPolicy(read, false);
  read.refuseUnknown();
  try {
    read.throwIfAnyProblem();
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    return Object.fromEntries(error.problems.map(({ path, message }) => [path, message]));
  }
  return {};
}

test("The engine's options have defaults that suit most, and are frozen", () => {
  const policy = policyOf({});
  expect(policy).toMatchObject({
    max: 10,
    minIdle: 0,
    idleFloor: 0,
    acquireTimeout: 30_000,
    dialTimeout: 10_000,
    dialLimit: 8,
    closeTimeout: 5_000,
    idleTimeout: 600_000,
    maxLifetime: 1_800_000,
    maxLifetimeJitter: 180_000,
    guardWindow: 18_000,
    maxUses: never,
    checkAfterIdle: never,
    keepalive: never,
    checkTimeout: 5_000,
    idleOrder: 'lifo',
    onDialFailure: 'retry',
    base: 100,
    cap: 10_000,
    threshold: 5,
    leakThreshold: never,
    rateLimiter: undefined,
  });
  expect(Object.isFrozen(policy)).toBe(true);
});

test('The engine\'s options take 0 for "off"', () => {
  const off: PolicyOptions = { acquireTimeout: 0, dialTimeout: 0, idleTimeout: 0, maxLifetime: 0 };
  expect(policyOf({ ...off, checkAfterIdle: 0, keepalive: 0, leakThreshold: 0 })).toMatchObject({
    acquireTimeout: never,
    dialTimeout: never,
    idleTimeout: never,
    maxLifetime: never,
    maxLifetimeJitter: 0,
    guardWindow: 0,
    checkAfterIdle: never,
    keepalive: never,
    leakThreshold: never,
  });
});

test("The engine's options have a jitter and a guard window that grow with the lifetime", () => {
  expect(policyOf({ maxLifetime: '1h' })).toMatchObject({
    maxLifetimeJitter: 360_000,
    guardWindow: 36_000,
  });
});

test("The engine's options that contradict each other are told, all at once", () => {
  expect(
    problemsOf({
      max: 2,
      minIdle: 3,
      maxLifetime: '1m',
      maxLifetimeJitter: '3m',
      backoffBase: 0,
      idelTimeout: '1m',
      rateLimiter: {},
    }),
  ).toEqual({
    minIdle: 'is 3, more than max, which is 2',
    maxLifetimeJitter: 'is 180000 ms, more than twice maxLifetime (60000 ms)',
    guardWindow: expect.stringContaining('as long as the shortest life'),
    backoffBase: expect.stringContaining('without a delay a failing dial is repeated in a loop'),
    rateLimiter: 'must be an object with take(), not an object',
    idelTimeout: 'is not an option; did you mean idleTimeout?',
  });
  expect(problemsOf({ maxLifetime: '1m', guardWindow: '1m' })).toHaveProperty('guardWindow');
  expect(problemsOf({ backoffBase: '1s', backoffCap: '500ms' })).toHaveProperty('backoffCap');
});

test.each([
  { max: 0 },
  { max: -1 },
  { max: '10' },
  { dialLimit: 0 },
  { maxUses: 0 },
  { idleOrder: 'random' },
])("The engine's options %j makes no sense", (options) => {
  expect(Object.keys(problemsOf(options))).toEqual(Object.keys(options));
});

test('The options of a reservoir have defaults that suit Aurora DSQL, and keep as much ready as the limit allows', () => {
  const policy = policyOf({ max: 50, reservoir: true });
  expect(policy).toMatchObject({
    minIdle: 50,
    maxLifetime: 660_000,
    maxLifetimeJitter: 120_000,
    guardWindow: 45_000,
    acquireTimeout: 100,
    idleOrder: 'fifo',
    reservoir: { targetReady: 50, lowWatermark: 50, initialFillTimeout: 30_000, emptyWait: 100 },
  });
  expect(policyOf({ max: 50, reservoir: {} })).toEqual(policy);
});

test('The options of a reservoir are read as they are given', () => {
  const reservoir = {
    targetReady: 40,
    lowWatermark: 0,
    baseLifetime: '5s',
    lifetimeJitter: '1s',
    guardWindow: '500ms',
    initialFillTimeout: '2s',
    emptyWait: 250,
  } as const;
  expect(policyOf({ max: 50, reservoir })).toMatchObject({
    minIdle: 40,
    maxLifetime: 5_000,
    maxLifetimeJitter: 1_000,
    guardWindow: 500,
    acquireTimeout: 250,
    reservoir: { targetReady: 40, lowWatermark: 0, initialFillTimeout: 2_000, emptyWait: 250 },
  });
  expect(policyOf({ max: 50, reservoir: { targetReady: 40 } }).reservoir?.lowWatermark).toBe(40);
  expect(policyOf({ max: 50, reservoir: { initialFillTimeout: 0, emptyWait: 0 } })).toMatchObject({
    acquireTimeout: 0,
    reservoir: { initialFillTimeout: never, emptyWait: 0 },
  });
});

test('The options of a reservoir leave it to the caller how long to wait and in which order to lend', () => {
  const options = { reservoir: true, acquireTimeout: '2s', idleOrder: 'lifo' } as const;
  expect(policyOf(options)).toMatchObject({ acquireTimeout: 2_000, idleOrder: 'lifo' });
});

test('The options of a reservoir are left alone where there is no reservoir', () => {
  for (const reservoir of [undefined, false] as const) {
    expect(policyOf({ max: 50, reservoir })).toEqual(policyOf({ max: 50 }));
  }
  expect(policyOf({})).toMatchObject({
    reservoir: undefined,
    warmup: undefined,
    keeper: undefined,
    leases: undefined,
    startJitter: 0,
  });
});

test('The options of a reservoir that are wrong are told all at once, each with its path', () => {
  expect(
    problemsOf({
      max: 10,
      reservoir: {
        targetReady: 11,
        lowWatermark: 12,
        baseLifetime: '1m',
        lifetimeJitter: '30s',
        guardWindow: '45s',
        emptyWait: 'soon',
        targetReddy: 3,
      },
      leases: { acquire: () => 'granted' },
      startJitter: -1,
    }),
  ).toEqual({
    'reservoir.targetReady': 'is 11, more than max, which is 10',
    'reservoir.lowWatermark': 'is 12, more than targetReady, which is 11',
    'reservoir.guardWindow': 'is 45000 ms, as long as the shortest life, 45000 ms',
    'reservoir.emptyWait': expect.stringContaining("not 'soon'"),
    'reservoir.targetReddy': 'is not an option; did you mean targetReady?',
    leases: 'must be an object with release(), not an object',
    startJitter: expect.stringContaining('must be a duration'),
  });
});

test('The options of a reservoir that leave no life to a connection make no sense', () => {
  expect(problemsOf({ reservoir: { baseLifetime: 0 } })).toEqual({
    'reservoir.baseLifetime': 'must not be 0: a reservoir is for connections that end',
  });
  expect(problemsOf({ reservoir: { baseLifetime: '1m', lifetimeJitter: '2m' } })).toEqual({
    'reservoir.lifetimeJitter': expect.stringContaining('twice baseLifetime'),
  });
  expect(problemsOf({ reservoir: { targetReady: 0 } })).toHaveProperty(['reservoir.targetReady']);
  expect(problemsOf({ reservoir: 'yes' })).toEqual({ reservoir: "must be an object or true, not 'yes'" });
});

test('The options of a reservoir stand in for others, which are refused beside it', () => {
  const problems = problemsOf({
    reservoir: true,
    minIdle: 3,
    maxLifetime: '1h',
    maxLifetimeJitter: '1m',
    guardWindow: '10s',
    warmup: true,
    keeper: {},
  });
  expect(problems).toEqual({
    minIdle: "can't be given together with a reservoir: reservoir.targetReady stands in for it",
    maxLifetime: "can't be given together with a reservoir: reservoir.baseLifetime stands in for it",
    maxLifetimeJitter: "can't be given together with a reservoir: reservoir.lifetimeJitter stands in for it",
    guardWindow: "can't be given together with a reservoir: reservoir.guardWindow stands in for it",
    warmup: "can't be given together with a reservoir: reservoir stands in for it",
    keeper: "can't be given together with a reservoir: reservoir stands in for it",
  });
  expect(problemsOf({ reservoir: true, warmup: false, keeper: false })).toEqual({});
});

test('The options of warmup and keeper have defaults that follow from the limit', () => {
  expect(policyOf({ max: 500, warmup: true, keeper: true })).toMatchObject({
    warmup: { target: 500, retries: 5 },
    keeper: { target: 500, interval: 1_000, perTick: 5 },
  });
  expect(policyOf({ max: 500, keeper: { target: 100 } }).keeper).toEqual({
    target: 100,
    interval: 1_000,
    perTick: 1,
  });
});

test('The options of warmup and keeper are read as they are given', () => {
  const warmup = { target: 3, retries: 0 };
  const keeper = { target: 4, interval: '5s', perTick: 2 } as const;
  expect(policyOf({ max: 5, warmup, keeper })).toMatchObject({
    warmup,
    keeper: { target: 4, interval: 5_000, perTick: 2 },
  });
});

test('The options of warmup and keeper that are wrong are told all at once, each with its path', () => {
  const problems = problemsOf({
    max: 5,
    warmup: { target: 6, retries: -1, size: 3 },
    keeper: { target: 7, interval: 0, perTick: 0 },
  });
  expect(problems).toEqual({
    'warmup.target': 'is 6, more than max, which is 5',
    'warmup.retries': expect.stringContaining('whole number of at least 0'),
    'warmup.size': 'is not an option',
    'keeper.target': 'is 7, more than max, which is 5',
    'keeper.interval': 'must not be 0: it would look all the time',
    'keeper.perTick': expect.stringContaining('whole number of at least 1'),
  });
});
