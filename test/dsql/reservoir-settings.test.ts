// The reservoir's settings: options before the environment before defaults, and what the environment says made to fit.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resolveDsqlOptions } from '../../src/dsql/dsql-options.js';
import { type DsqlPoolOptions, dsqlVariables, type Environment } from '../../src/dsql.js';
import { PoolOptionsError, type ReservoirOptions } from '../../src/index.js';
import { resolvePoolOptions } from '../../src/pg/pool-options.js';

const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';
const minute = 60_000;

type Short = Readonly<Record<string, string>>;

/** `{ TARGET_READY: '5' }` for a reservoir that is on. */
function environmentOf(short: Short): Record<string, string> {
  const named = Object.entries(short).map(([name, value]) => [`DSQL_RESERVOIR_${name}`, value]);
  return { DSQL_RESERVOIR_ENABLED: 'true', ...Object.fromEntries(named) };
}

function resolve(short: Short, options: DsqlPoolOptions = {}) {
  const env = environmentOf(short);
  const { poolOptions, warnings } = resolveDsqlOptions({ host, max: 100, ...options, env }, () => {});
  const { policy } = resolvePoolOptions({ ...poolOptions });
  return {
    reservoir: poolOptions.reservoir as Required<ReservoirOptions>,
    policy,
    warnings: warnings.map(({ variable, text }) => `${variable.replace('DSQL_RESERVOIR_', '')} ${text}`),
  };
}

function problemsOf(reservoir: unknown, options: object = {}): string[] {
  try {
    resolveDsqlOptions({ host, env: {}, reservoir, ...options } as DsqlPoolOptions, () => {});
  } catch (error) {
    expect(error).toBeInstanceOf(PoolOptionsError);
    return (error as PoolOptionsError).problems.map(({ path }) => path);
  }
  return [];
}

test('a reservoir that is only turned on has the defaults', () => {
  const { reservoir, policy, warnings } = resolve({});
  expect(reservoir).toEqual({
    targetReady: 100,
    lowWatermark: 100,
    baseLifetime: 11 * minute,
    lifetimeJitter: 2 * minute,
    guardWindow: 45_000,
    initialFillTimeout: 30_000,
    emptyWait: 100,
  });
  expect(policy).toMatchObject({ max: 100, dialLimit: 8, startJitter: 5_000, acquireTimeout: 100 });
  expect(policy.idleTimeout).toBe(Number.POSITIVE_INFINITY);
  expect(policy.dialTimeout).toBe(10_000);
  expect(warnings).toEqual([]);
});

test.each([{}, { TARGET_READY: '5' }])(
  'a reservoir is off where nothing turns it on, whatever else is set (%j)',
  (short) => {
    const env = { ...environmentOf(short), DSQL_RESERVOIR_ENABLED: '' };
    const { poolOptions } = resolveDsqlOptions({ host, env }, () => {});
    expect(poolOptions.reservoir).toBeUndefined();
    expect(resolvePoolOptions({ ...poolOptions }).policy.reservoir).toBeUndefined();
  },
);

test('a reservoir has what the environment says', () => {
  const { reservoir, policy, warnings } = resolve({
    TARGET_READY: '50',
    LOW_WATERMARK: '25',
    BASE_LIFETIME: '45m0s',
    GUARD_WINDOW: '30s',
    INITIAL_FILL_TIMEOUT: '1m',
    INFLIGHT_LIMIT: '3',
    LIFETIME_JITTER: '10m',
  });
  expect(reservoir).toMatchObject({
    targetReady: 50,
    lowWatermark: 25,
    baseLifetime: 45 * minute,
    lifetimeJitter: 10 * minute,
    guardWindow: 30_000,
    initialFillTimeout: minute,
  });
  expect(policy.dialLimit).toBe(3);
  expect(warnings).toEqual([]);
});

test('a reservoir has what its options say, and what they leave open from the environment', () => {
  const { reservoir, policy } = resolve(
    { TARGET_READY: '50', LOW_WATERMARK: '10', GUARD_WINDOW: '30s', INFLIGHT_LIMIT: '3' },
    { reservoir: { targetReady: 20, emptyWait: '1s' }, dialLimit: 5 },
  );
  expect(reservoir).toMatchObject({
    targetReady: 20,
    lowWatermark: 10,
    guardWindow: 30_000,
    emptyWait: '1s',
  });
  expect(policy.dialLimit).toBe(5);
});

test('a reservoir that the program turns off stays off', () => {
  const env = environmentOf({});
  expect(resolveDsqlOptions({ host, env, reservoir: false }, () => {}).poolOptions.reservoir).toBeUndefined();
});

test('a reservoir that the program turns on needs nothing of the environment', () => {
  const { poolOptions } = resolveDsqlOptions({ host, env: {}, reservoir: true, max: 7 }, () => {});
  expect(poolOptions.reservoir).toMatchObject({ targetReady: 7, lowWatermark: 7 });
});

test('a reservoir has callers wait as long as the program says', () => {
  expect(resolve({}, { connectionTimeoutMillis: 2_000 }).policy).toMatchObject({
    acquireTimeout: 2_000,
    dialTimeout: 10_000,
  });
});

test.each<[string, Short, DsqlPoolOptions, Partial<ReservoirOptions>, string[]]>([
  [
    'a target below the low watermark',
    { TARGET_READY: '20', LOW_WATERMARK: '50' },
    {},
    { targetReady: 50, lowWatermark: 50 },
    ["TARGET_READY is '20', less than the low watermark, which is 50: 50 is used"],
  ],
  [
    'sizes above max',
    { TARGET_READY: '50', LOW_WATERMARK: '50' },
    { max: 10 },
    { targetReady: 10, lowWatermark: 10 },
    [
      "TARGET_READY is '50', more than max, which is 10: 10 is used",
      "LOW_WATERMARK is '50', more than max, which is 10: 10 is used",
    ],
  ],
  [
    'a low watermark above the program’s target',
    { LOW_WATERMARK: '25' },
    { reservoir: { targetReady: 20 } },
    { targetReady: 20, lowWatermark: 20 },
    ["LOW_WATERMARK is '25', more than the target, which is 20: 20 is used"],
  ],
  [
    'sizes below what there can be',
    { TARGET_READY: '0', LOW_WATERMARK: '-1' },
    {},
    { targetReady: 100, lowWatermark: 0 },
    [
      "TARGET_READY is '0', less than 1: the default, max, is used",
      "LOW_WATERMARK is '-1', less than 0: 0 is used",
    ],
  ],
  [
    'a life of 0',
    { BASE_LIFETIME: '0' },
    {},
    { baseLifetime: 11 * minute },
    ["BASE_LIFETIME is '0', not more than 0: the default, 11m, is used"],
  ],
  [
    'a life, a jitter and a guard window below 0',
    { BASE_LIFETIME: '-1m', LIFETIME_JITTER: '-2m', GUARD_WINDOW: '-3s' },
    {},
    { baseLifetime: 11 * minute, lifetimeJitter: 0, guardWindow: 0 },
    [
      "BASE_LIFETIME is '-1m', not more than 0: the default, 11m, is used",
      "LIFETIME_JITTER is '-2m', less than 0: 0 is used",
      "GUARD_WINDOW is '-3s', less than 0: 0 is used",
    ],
  ],
  [
    'what can’t be read',
    { TARGET_READY: 'fifty', BASE_LIFETIME: '660', INITIAL_FILL_TIMEOUT: '-1s', INFLIGHT_LIMIT: '0' },
    {},
    { targetReady: 100, baseLifetime: 11 * minute, initialFillTimeout: 30_000 },
    [
      "TARGET_READY is 'fifty', no whole number: the default, max, is used",
      "BASE_LIFETIME is '660', no duration such as '11m' or '45s': the default, 11m, is used",
      "INITIAL_FILL_TIMEOUT is '-1s', less than 0: the default, 30s, is used",
      "INFLIGHT_LIMIT is '0', less than 1: the default, 8, is used",
    ],
  ],
  [
    'a life longer than the server allows',
    { BASE_LIFETIME: '2h' },
    {},
    { baseLifetime: 54 * minute, lifetimeJitter: 2 * minute },
    [
      "BASE_LIFETIME is '2h', with its jitter more than 55m: the hour of the server less the longest transaction: " +
        '54m is used',
    ],
  ],
  [
    'a life longer than that by its jitter',
    { BASE_LIFETIME: '50m', LIFETIME_JITTER: '20m' },
    {},
    { baseLifetime: 45 * minute, lifetimeJitter: 20 * minute },
    [
      "BASE_LIFETIME is '50m', with its jitter more than 55m: the hour of the server less the longest transaction: " +
        '45m is used',
    ],
  ],
  [
    'a jitter that leaves nothing of a life',
    { BASE_LIFETIME: '10m', LIFETIME_JITTER: '20m' },
    {},
    { baseLifetime: 10 * minute, lifetimeJitter: 2 * minute },
    ["LIFETIME_JITTER is '20m', too wide for a life of 10m: 2m is used"],
  ],
  [
    'a jitter that leaves nothing of the longest life there is',
    { BASE_LIFETIME: '1h', LIFETIME_JITTER: '3300s' },
    {},
    { baseLifetime: 54 * minute, lifetimeJitter: 2 * minute },
    [
      "BASE_LIFETIME is '1h', with its jitter more than 55m: the hour of the server less the longest transaction: 54m is used",
      "LIFETIME_JITTER is '3300s', too wide for a life of 1h: 2m is used",
    ],
  ],
  [
    'a guard window as long as a life',
    { BASE_LIFETIME: '5m', GUARD_WINDOW: '4m' },
    {},
    { baseLifetime: 5 * minute, guardWindow: 24_000 },
    ["GUARD_WINDOW is '4m', not less than the shortest life, 4m: 24s is used"],
  ],
  [
    'a life too short for the other defaults',
    { BASE_LIFETIME: '30s' },
    {},
    { baseLifetime: 30_000, lifetimeJitter: 6_000, guardWindow: 2_700 },
    [
      'LIFETIME_JITTER is not set, and its default is 2m, too wide for a life of 30s: 6s is used',
      'GUARD_WINDOW is not set, and its default is 45s, not less than the shortest life, 27s: 2.7s is used',
    ],
  ],
  [
    'a jitter that does not go with the program’s life',
    { LIFETIME_JITTER: '10m' },
    { reservoir: { baseLifetime: '54m' } },
    { baseLifetime: '54m', lifetimeJitter: 2 * minute },
    ["LIFETIME_JITTER is '10m', which does not fit the program's own options: 2m is used"],
  ],
  [
    'what makes no sense with the program’s life, for which the defaults are too long as well',
    { GUARD_WINDOW: '1m' },
    { reservoir: { baseLifetime: '30s' } },
    { baseLifetime: '30s', lifetimeJitter: 6_000, guardWindow: 2_700 },
    [
      'LIFETIME_JITTER is not set, and its default is 2m, too wide for a life of 30s: 6s is used',
      "GUARD_WINDOW is '1m', which does not fit the program's own options: 2.7s is used",
    ],
  ],
  [
    'what the program says for a pool without a reservoir',
    {},
    { maxLifetimeSeconds: 3_000, maxLifetimeJitterSeconds: 0, warmup: true, keeper: false },
    { baseLifetime: 11 * minute },
    [
      'ENABLED is true: what the program says about maxLifetimeSeconds, maxLifetimeJitterSeconds, warmup is not used',
    ],
  ],
])('what an operator got wrong is corrected, and said %s', (_name, short, options, expected, warnings) => {
  const resolved = resolve(short, options);
  expect(resolved.reservoir).toMatchObject(expected);
  expect(resolved.warnings).toEqual(warnings);
});

test('a mistake of the operator is corrected and reported: a switch that is neither true nor false is off', () => {
  const env = { DSQL_RESERVOIR_ENABLED: 'yes' };
  const { poolOptions, warnings } = resolveDsqlOptions({ host, env }, () => {});
  expect(poolOptions.reservoir).toBeUndefined();
  expect(warnings).toEqual([
    {
      variable: 'DSQL_RESERVOIR_ENABLED',
      text: "is 'yes', neither true nor false: the default, false, is used",
    },
  ]);
});

test('a mistake of the operator is corrected and reported, whatever it is: a pool can be made, and every life ends before the server would end it', () => {
  const duration = fc
    .tuple(fc.constantFrom('', '-', '+'), fc.nat(5_000), fc.constantFrom('ms', 's', 'm', 'h', '', 'x'))
    .map((parts) => parts.join(''));
  const said = fc.oneof(fc.integer({ min: -5, max: 300 }).map(String), duration, fc.string());
  const names = dsqlVariables.map(({ name }) => name).filter((name) => name !== 'DSQL_RESERVOIR_ENABLED');
  const environment = fc.dictionary(fc.constantFrom(...names), said, { maxKeys: names.length });
  const typed = fc.constantFrom<DsqlPoolOptions>(
    {},
    { max: 3 },
    { reservoir: { targetReady: 5, lowWatermark: 2 } },
    { reservoir: { baseLifetime: '50m', lifetimeJitter: '10m', guardWindow: '5m' } },
    { reservoir: { guardWindow: '9m' } },
    { reservoir: { lifetimeJitter: '20m' } },
    { maxLifetimeJitterSeconds: 0, minIdle: 2 },
  );
  fc.assert(
    fc.property(environment, typed, (variables: Environment, options) => {
      const env = { ...variables, DSQL_RESERVOIR_ENABLED: 'true' };
      const { poolOptions } = resolveDsqlOptions({ host, ...options, env }, () => {});
      const { policy } = resolvePoolOptions({ ...poolOptions });
      expect(policy.maxLifetime + policy.maxLifetimeJitter / 2).toBeLessThanOrEqual(55 * minute);
      expect(policy.guardWindow).toBeLessThan(policy.maxLifetime - policy.maxLifetimeJitter / 2);
      expect(policy.reservoir?.targetReady).toBeLessThanOrEqual(policy.max);
      expect(policy.reservoir?.lowWatermark).toBeLessThanOrEqual(policy.reservoir?.targetReady ?? 0);
    }),
    { numRuns: 500 },
  );
});

test.each<[string, unknown, object, string[]]>([
  ['a target above max', { targetReady: 11 }, {}, ['reservoir.targetReady']],
  ['a low watermark above the target', { targetReady: 5, lowWatermark: 6 }, {}, ['reservoir.lowWatermark']],
  ['a life longer than the server allows', { baseLifetime: '56m' }, {}, ['reservoir.baseLifetime']],
  [
    'such a life by its jitter',
    { baseLifetime: '54m', lifetimeJitter: '3m' },
    {},
    ['reservoir.baseLifetime'],
  ],
  ['a guard window as long as a life', { guardWindow: '10m' }, {}, ['reservoir.guardWindow']],
  ['a negative one', { guardWindow: '-1s' }, {}, ['reservoir.guardWindow']],
  ['a name that is none', { targetRedy: 5 }, {}, ['reservoir.targetRedy']],
  ['something that is no reservoir', 5, {}, ['reservoir']],
  [
    'lives beside those of the reservoir',
    true,
    { maxLifetimeSeconds: 5, keeper: true },
    ['maxLifetimeSeconds', 'keeper'],
  ],
  [
    'all of it at once',
    { targetReady: 11, baseLifetime: '2h' },
    { ssl: false },
    ['ssl', 'reservoir.baseLifetime', 'reservoir.targetReady'],
  ],
])('options are refused, and not corrected %s', (_name, reservoir, options, paths) => {
  expect(problemsOf(reservoir, options)).toEqual(paths);
});
