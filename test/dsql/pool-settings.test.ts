// What a DsqlPool is made with beside its reservoir: options before the environment before defaults.
import { describe, expect, test } from 'vitest';
import { resolveDsqlOptions } from '../../src/dsql/dsql-options.js';
import type { DsqlPoolOptions } from '../../src/dsql.js';
import { PoolOptionsError, TokenBucket } from '../../src/index.js';
import { resolvePoolOptions } from '../../src/pg/pool-options.js';

const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';
const never = Number.POSITIVE_INFINITY;

function resolve(options: DsqlPoolOptions = {}, env: Record<string, string> = {}) {
  const resolved = resolveDsqlOptions({ host, env, ...options }, () => {});
  return {
    ...resolved,
    policy: resolvePoolOptions({ ...resolved.poolOptions }).policy,
    messages: resolved.warnings.map(({ variable, text }) => `${variable} ${text}`),
  };
}

test('a pool without a reservoir is brought to its size and kept there, and so nothing is closed for being idle', () => {
  const { policy } = resolve({ max: 20 });
  expect(policy).toMatchObject({
    warmup: { target: 20, retries: 5 },
    keeper: { target: 20, interval: 1_000, perTick: 1 },
    reservoir: undefined,
    idleTimeout: never,
    maxLifetime: 3_000_000,
    maxLifetimeJitter: 600_000,
    dialTimeout: 10_000,
  });
});

test.each<DsqlPoolOptions>([{ warmup: false }, { keeper: false }])(
  'a pool without a reservoir with %j still does not let go of what is idle',
  (options) => {
    expect(resolve(options).policy.idleTimeout).toBe(never);
  },
);

test('a pool without a reservoir and without a fixed size closes connections that were idle for 10 minutes', () => {
  const { policy } = resolve({ warmup: false, keeper: false });
  expect(policy).toMatchObject({ warmup: undefined, keeper: undefined, idleTimeout: 600_000 });
});

test('a pool without a reservoir is kept as the program says', () => {
  const options = { max: 20, warmup: { target: 5, retries: 1 }, keeper: { target: 8, interval: '5s' } };
  const { policy } = resolve({ ...options, idleTimeoutMillis: 1_000 });
  expect(policy).toMatchObject({
    warmup: { target: 5, retries: 1 },
    keeper: { target: 8, interval: 5_000 },
    idleTimeout: 1_000,
  });
});

test('a pool without a reservoir in a function of AWS Lambda opens nothing ahead, unless it is told to', () => {
  const env = { AWS_LAMBDA_FUNCTION_NAME: 'resize-images' };
  expect(resolve({}, env).policy).toMatchObject({
    warmup: undefined,
    keeper: undefined,
    idleTimeout: 600_000,
  });
  expect(resolve({ warmup: true }, env).policy).toMatchObject({
    warmup: { target: 10 },
    keeper: undefined,
  });
});

test('a pool without a reservoir does not take the reservoir’s limit of dials', () => {
  expect(resolve({}, { DSQL_RESERVOIR_INFLIGHT_LIMIT: '2' }).policy.dialLimit).toBe(8);
});

test.each<[string, DsqlPoolOptions, Record<string, string>, number]>([
  ['is spread over 5 seconds', {}, {}, 5_000],
  ['is spread over what the environment says', {}, { DSQL_STAGGERED_STARTUP_MAX_DELAY: '1m30s' }, 90_000],
  [
    'is not spread where the environment turns that off',
    {},
    { DSQL_STAGGERED_STARTUP: 'false', DSQL_STAGGERED_STARTUP_MAX_DELAY: '1m' },
    0,
  ],
  [
    'is spread over what the program says',
    { startJitter: '2s' },
    { DSQL_STAGGERED_STARTUP: 'false', DSQL_STAGGERED_STARTUP_MAX_DELAY: '1m' },
    2_000,
  ],
  ['is not spread where the program turns that off', { startJitter: 0 }, {}, 0],
])('the start %s', (_name, options, env, startJitter) => {
  const { policy, messages } = resolve(options, env);
  expect(policy.startJitter).toBe(startJitter);
  expect(messages).toEqual([]);
});

test('the start with a delay below 0 has none, and it is said', () => {
  const { policy, messages } = resolve({}, { DSQL_STAGGERED_STARTUP_MAX_DELAY: '-5s' });
  expect(policy.startJitter).toBe(0);
  expect(messages).toEqual(["DSQL_STAGGERED_STARTUP_MAX_DELAY is '-5s', less than 0: 0 is used"]);
});

test('the speed at which connections are opened is 10 a second and 100 at once', () => {
  expect(resolve().rate).toEqual({ rate: 10, burst: 100 });
});

test('the speed at which connections are opened is what the environment says, also a part of one a second', () => {
  const env = { DSQL_CONNECTION_RATE_LIMIT: '2.5', DSQL_CONNECTION_BURST_LIMIT: '20' };
  expect(resolve({}, env).rate).toEqual({ rate: 2.5, burst: 20 });
});

test('the speed at which connections are opened is never 0', () => {
  const { rate, messages } = resolve(
    {},
    { DSQL_CONNECTION_RATE_LIMIT: '0', DSQL_CONNECTION_BURST_LIMIT: '0' },
  );
  expect(rate).toEqual({ rate: 10, burst: 100 });
  expect(messages).toEqual([
    "DSQL_CONNECTION_RATE_LIMIT is '0', not more than 0: the default, 10, is used",
    "DSQL_CONNECTION_BURST_LIMIT is '0', less than 1: the default, 100, is used",
  ]);
});

test('the speed at which connections are opened is the matter of the limiter that the program gives', () => {
  const rateLimiter = new TokenBucket({ rate: 1, burst: 1 });
  const { rate, policy } = resolve({ rateLimiter }, { DSQL_CONNECTION_RATE_LIMIT: '5' });
  expect(rate).toBeUndefined();
  expect(policy.rateLimiter).toBe(rateLimiter);
});

describe('a limit for all processes', () => {
  const env = {
    DSQL_DISTRIBUTED_CONN_LEASE_ENABLED: 'true',
    DSQL_DISTRIBUTED_CONN_LEASE_TABLE: 'leases',
    DSQL_DISTRIBUTED_CONN_LIMIT: '500',
    DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED: 'true',
    DSQL_DISTRIBUTED_RATE_LIMITER_TABLE: 'rates',
  };

  test('a limit for all processes that is asked for is kept in its table', () => {
    const { messages, distributed, rate, explanation } = resolve({}, env);
    expect(messages).toEqual([]);
    expect(distributed).toEqual({
      leases: { table: 'leases', limit: 500, service: 'dsql', onCoordinatorLoss: 'hold' },
      rate: { table: 'rates', rate: 100, maxWaitMs: 30_000 },
    });
    expect(rate).toBeUndefined();
    const values = new Map(explanation.map(({ variable, value }) => [variable, value]));
    expect(values.get('DSQL_DISTRIBUTED_CONN_LEASE_TABLE')).toBe('in the table leases');
    expect(values.get('DSQL_DISTRIBUTED_CONN_LIMIT')).toBe('500');
    expect(values.get('DSQL_DISTRIBUTED_RATE_LIMITER_TABLE')).toBe('in the table rates');
    expect(values.get('DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT')).toBe('100');
    expect(values.get('DSQL_DISTRIBUTED_RATE_LIMITER_MAX_WAIT')).toBe('30s');
  });

  test('a limit for all processes has the service and the policy of the options, or else of the environment', () => {
    const more = {
      ...env,
      DSQL_DISTRIBUTED_SERVICE_NAME: 'history',
      DSQL_DISTRIBUTED_ON_COORDINATOR_LOSS: 'localShare',
      DSQL_DISTRIBUTED_LOCAL_SHARE: '40',
      DSQL_CONNECTION_RATE_LIMIT: '5',
    };
    const { messages, distributed } = resolve({}, more);
    expect(messages).toEqual([]);
    expect(distributed.leases).toMatchObject({
      ...{ service: 'history', onCoordinatorLoss: 'localShare', localShare: 40 },
    });
    // A pool that goes on without the table must be able to dial without it.
    expect(distributed.rate?.localShare).toEqual({ rate: 5, burst: 100 });
    const fleet = { service: 'matching', onCoordinatorLoss: 'shed' } as const;
    const given = resolve({ fleet }, more);
    expect(given.messages).toEqual([]);
    expect(given.distributed.leases).toMatchObject({ ...fleet, localShare: undefined });
    expect(given.distributed.rate?.localShare).toBeUndefined();
    const sources = new Map(given.explanation.map(({ name, source }) => [name, source]));
    expect(sources.get('fleet.service')).toBe('option');
    expect(sources.get('fleet.onCoordinatorLoss')).toBe('option');
  });

  test('a limit for all processes holds where the policy of the environment can not be used, and says so', () => {
    const withPolicy = (policy: string) =>
      resolve({}, { ...env, DSQL_DISTRIBUTED_ON_COORDINATOR_LOSS: policy });
    for (const [policy, warning] of [
      [
        'open',
        /^DSQL_DISTRIBUTED_ON_COORDINATOR_LOSS is 'open', none of hold, localShare, shed: the default, hold/,
      ],
      [
        'localShare',
        /^DSQL_DISTRIBUTED_ON_COORDINATOR_LOSS is localShare, but DSQL_DISTRIBUTED_LOCAL_SHARE does not/,
      ],
    ] as const) {
      const { messages, distributed } = withPolicy(policy);
      expect(messages).toEqual([expect.stringMatching(warning)]);
      expect(distributed.leases).toMatchObject({ onCoordinatorLoss: 'hold', localShare: undefined });
    }
  });

  test('a limit for all processes has its mistakes in options refused', () => {
    const problems = (fleet: object): string => {
      try {
        resolve({ fleet }, {});
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(problems({ onCoordinatorLoss: 'open' })).toContain(
      "fleet.onCoordinatorLoss: must be one of 'hold'",
    );
    expect(problems({ onCoordinatorLoss: 'localShare' })).toContain('fleet.localShare: is needed');
    expect(problems({ onCoordinatorLoss: 'shed', localShare: 3 })).toContain(
      'fleet.localShare: is of no use',
    );
    expect(problems({ servise: 'x' })).toContain('did you mean service?');
    expect(problems({ localShare: 3 })).toBe('');
  });

  test('a limit for all processes that is asked for without a table is warned of', () => {
    const {
      DSQL_DISTRIBUTED_CONN_LEASE_TABLE: _leases,
      DSQL_DISTRIBUTED_RATE_LIMITER_TABLE: _rates,
      ...asked
    } = env;
    const { messages, distributed, rate } = resolve({}, asked);
    expect(messages).toEqual([
      expect.stringMatching(
        /^DSQL_DISTRIBUTED_CONN_LEASE_ENABLED is true, but DSQL_DISTRIBUTED_CONN_LEASE_TABLE is not set/,
      ),
      expect.stringMatching(
        /^DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED is true, but DSQL_DISTRIBUTED_RATE_LIMITER_TABLE is not/,
      ),
    ]);
    expect(distributed).toEqual({ leases: undefined, rate: undefined });
    expect(rate).toEqual({ rate: 10, burst: 100 });
  });

  test('a limit for all processes is not kept in a table where the program gives its own leases', () => {
    const leases = { acquire: () => 'granted' as const, release: () => {} };
    const { messages, policy, distributed } = resolve({ leases, rateLimiter: { take: () => 0 } }, env);
    expect(messages).toEqual([]);
    expect(distributed).toEqual({ leases: undefined, rate: undefined });
    expect(policy.leases).toBe(leases);
  });

  test('a limit for all processes that is not asked for is not warned of', () => {
    const off = {
      ...env,
      DSQL_DISTRIBUTED_CONN_LEASE_ENABLED: 'false',
      DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED: '0',
    };
    expect(resolve({}, off).messages).toEqual([]);
  });
});

test('the environment of the option is read in place of the process’s own', () => {
  expect(() => resolve({ host: host.slice(0, 26) })).toThrow(PoolOptionsError);
  expect(resolve({ host: host.slice(0, 26) }, { AWS_REGION: 'eu-west-1' }).endpoint.region).toBe('eu-west-1');
  expect(resolve({ host: host.slice(0, 26) }, { AWS_DEFAULT_REGION: 'eu-west-2' }).endpoint.region).toBe(
    'eu-west-2',
  );
});

test('the environment that is none is refused', () => {
  expect(() => resolve({ env: 'x' as never })).toThrow('env: must be an object');
});

test('the environment is not handed on to the pool', () => {
  expect(resolve({}, { DSQL_RESERVOIR_ENABLED: 'true' }).poolOptions).not.toHaveProperty('env');
});
