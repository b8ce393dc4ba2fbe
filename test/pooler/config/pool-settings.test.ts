// What holds for one pool, and that the engine takes whatever the configuration allows.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readPolicy } from '../../../src/core/pool-policy.js';
import { OptionReader } from '../../../src/kernel/option-reader.js';
import {
  checkQueryOf,
  policyFor,
  poolKeptFor,
  poolSettingsFor,
  serverTlsFor,
} from '../../../src/pooler/config/pool-settings.js';
import {
  type DatabaseConfig,
  databaseFor,
  type PoolerConfig,
} from '../../../src/pooler/config/pooler-config.js';
import { configWith, load } from './config-files.js';

function policyOf(config: PoolerConfig, user = 'u') {
  const read = new OptionReader(policyFor(config, databaseFor(config, 'app') as DatabaseConfig, user));
  const policy = readPolicy(read, true);
  read.throwIfAnyProblem();
  return policy;
}

describe("A pool's settings", () => {
  const yaml = `
databases:
  app: { poolMode: session, poolSize: 7, minPoolSize: 9, reservePoolSize: 2, queryWaitTimeout: 1s, maxDbConnections: 8 }
  other: {}
users:
  vip: { poolMode: statement, poolSize: 3, reservePoolSize: 1, queryWaitTimeout: 0, queryTimeout: 4s, maxUserConnections: 5 }
pooling: { poolSize: 20, poolMode: transaction, minPoolSize: 1 }
timeouts: { queryWaitTimeout: 9s, queryTimeout: 5s }
limits: { maxDbConnections: 50 }
auth: { type: trust }`;
  const of = (database: string, user: string) => {
    const { config } = load(yaml);
    return poolSettingsFor(config, databaseFor(config, database) as DatabaseConfig, user);
  };

  test("A pool's settings are the user's, then the database's, then those of all", () => {
    expect(of('app', 'vip')).toMatchObject({
      poolMode: 'statement',
      poolSize: 3,
      reservePoolSize: 1,
      queryWaitTimeout: 0,
      queryTimeout: 4_000,
      maxDbConnections: 8,
      maxUserConnections: 5,
    });
    expect(of('app', 'u')).toMatchObject({
      poolMode: 'session',
      poolSize: 7,
      reservePoolSize: 2,
      queryWaitTimeout: 1_000,
      queryTimeout: 5_000,
      maxUserConnections: 0,
    });
    expect(of('other', 'u')).toMatchObject({
      poolMode: 'transaction',
      poolSize: 20,
      reservePoolSize: 0,
      queryWaitTimeout: 9_000,
      maxDbConnections: 50,
    });
  });

  test("A pool's settings keep the smallest size within the size", () => {
    expect([of('app', 'u').minPoolSize, of('app', 'vip').minPoolSize, of('other', 'u').minPoolSize]).toEqual([
      7, 3, 1,
    ]);
  });
});

const keptFor = (yaml: string) => {
  const { config } = load(`databases: { app: {}, '*': {} }\nauth: { type: trust }\n${yaml}`);
  return [poolKeptFor(config, 'app'), poolKeptFor(config, 'one of *')];
};

test('An unused pool is kept for ever, or for as long as databases that came from *, unless configured otherwise', () => {
  expect(keptFor('')).toEqual([0, 3_600_000]);
  expect(keptFor('timeouts: { poolIdleTimeout: 0, autodbIdleTimeout: 0 }')).toEqual([0, 0]);
  expect(keptFor('timeouts: { poolIdleTimeout: 1d, autodbIdleTimeout: 2d }')).toEqual([
    86_400_000, 172_800_000,
  ]);
});

test('An unused pool is forgotten after the time of fair shares where that is given, by itself or by a preset', () => {
  expect(keptFor('fairShares: { inactiveTimeout: 1m }')).toEqual([60_000, 60_000]);
  expect(keptFor('fairShares: { preset: small }')).toEqual([300_000, 300_000]);
  expect(keptFor('fairShares: { preset: bursty }')).toEqual([0, 3_600_000]);
  expect(keptFor('fairShares: { inactiveTimeout: 2h }\ntimeouts: { poolIdleTimeout: 30m }')).toEqual([
    1_800_000, 3_600_000,
  ]);
  expect(keptFor('fairShares: { preset: small, inactiveTimeout: 0 }')).toEqual([0, 3_600_000]);
});

test("The engine's policy says what the settings say", () => {
  const policy = policyOf(
    configWith(`pooling:
  { poolSize: 30, minPoolSize: 5, serverLifetime: 10m, serverLifetimeJitter: 0.2, serverIdleTimeout: 2m,
    serverConnectTimeout: 3s, serverLoginRetry: 4s, serverConnectLimit: 2, serverRoundRobin: true, serverCheckDelay: 7s,
    serverMaxUses: 9 }
timeouts: { queryWaitTimeout: 8s }`),
  );
  expect(policy).toMatchObject({
    max: 30,
    minIdle: 0,
    keeper: { target: 5, perTick: 5 },
    idleFloor: 5,
    acquireTimeout: 8_000,
    dialTimeout: 3_000,
    dialLimit: 2,
    idleTimeout: 120_000,
    maxLifetime: 600_000,
    maxLifetimeJitter: 120_000,
    maxUses: 9,
    checkAfterIdle: 7_000,
    idleOrder: 'fifo',
    onDialFailure: 'retry',
    base: 100,
    cap: 4_000,
  });
});

test('The engine\'s policy takes 0 for "off" where the engine does, and for "always" where PgBouncer does', () => {
  const policy = policyOf(
    configWith(`pooling: { serverLifetime: 0, serverIdleTimeout: 0, serverConnectTimeout: 0, serverCheckDelay: 0, serverLoginRetry: 0 }
timeouts: { queryWaitTimeout: 0 }`),
  );
  const never = Number.POSITIVE_INFINITY;
  expect(policy).toMatchObject({
    maxLifetime: never,
    idleTimeout: never,
    dialTimeout: never,
    acquireTimeout: never,
    maxUses: never,
    keeper: undefined,
    idleFloor: 0,
    base: 1,
    cap: 1,
  });
  expect(policy.checkAfterIdle).toBeLessThanOrEqual(0.001);
});

test("The engine's policy checks nothing without a query for it", () => {
  const queryOf = (query: string) => {
    const config = configWith(`pooling: { serverCheckQuery: '${query}' }`);
    return [checkQueryOf(config), policyOf(config).checkAfterIdle];
  };
  expect(queryOf('')).toEqual([undefined, Number.POSITIVE_INFINITY]);
  expect(queryOf('<empty>')).toEqual(['', 30_000]);
  expect(queryOf('select 1')).toEqual(['select 1', 30_000]);
});

test("The engine's policy is one that the engine takes, whatever the configuration says", () => {
  const base = configWith('');
  const duration = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 24 * 86_400_000 }));
  const pooling = fc.record({
    poolSize: fc.integer({ min: 1, max: 1_000_000 }),
    minPoolSize: fc.integer({ min: 0, max: 1_000_000 }),
    serverLifetime: duration,
    serverLifetimeJitter: fc.double({ min: 0, max: 1, noNaN: true }),
    serverMaxUses: fc.integer({ min: 0, max: 5 }),
    serverIdleTimeout: duration,
    serverConnectTimeout: duration,
    serverLoginRetry: duration,
    serverConnectLimit: fc.integer({ min: 1, max: 10_000 }),
    serverCheckDelay: duration,
  });
  fc.assert(
    fc.property(pooling, duration, (settings, queryWaitTimeout) => {
      policyOf({
        ...base,
        pooling: { ...base.pooling, ...settings },
        timeouts: { ...base.timeouts, queryWaitTimeout },
      });
    }),
  );
});

test('TLS with the servers of a database is as for all, but for what the database says', () => {
  const { config } = load(`
databases: { app: {}, own: { tlsMode: require, tlsNegotiation: direct } }
serverTls: { mode: prefer, protocols: tlsv1.3 }
auth: { type: trust }`);
  const of = (name: string) => serverTlsFor(config, databaseFor(config, name) as DatabaseConfig);
  expect(of('app')).toEqual(config.serverTls);
  expect(of('own')).toEqual({ ...config.serverTls, mode: 'require', negotiation: 'direct' });
});
