// Services that are products: their option names and defaults, read by the products' own code.
import { expect, test } from 'vitest';
import { resolveDsqlOptions } from '../../src/dsql/dsql-options.js';
import { resolvePoolOptions } from '../../src/pg/pool-options.js';
import { policyOf } from '../../src/simulator/process/service-process.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { ScenarioError } from '../../src/simulator/scenario/scenario-reader-problems.js';
import { simulate } from '../../src/simulator/simulate.js';

function scenarioOf(...services: string[]) {
  return parseScenario(['duration: 2m', 'services:', ...services.map((line) => `  - ${line}`)].join('\n'));
}

/** All that the engine goes by, of the first service. */
function policyIn(service: string): object {
  const [plan] = scenarioOf(service).services;
  if (plan === undefined) throw new Error('there is no service');
  return policyOf(plan);
}

function problemsOf(...services: string[]): string[] {
  try {
    scenarioOf(...services);
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    return error.problems.map(({ line, path, message }) => `${line} ${path}: ${message}`);
  }
  return [];
}

test.each([
  ['', {}],
  ['max: 25, min: 3', { max: 25, min: 3 }],
  [
    'connectionTimeoutMillis: 2000, idleTimeoutMillis: 0, maxLifetimeSeconds: 60, host: db, ssl: true',
    { connectionTimeoutMillis: 2_000, idleTimeoutMillis: 0, maxLifetimeSeconds: 60 },
  ],
  ['max: 40, reservoir: { targetReady: 30 }', { max: 40, reservoir: { targetReady: 30 } }],
])('A simulated product has the policy of the real one as Pool: %s', (written, options) => {
  const { policy } = resolvePoolOptions(options);
  expect(policyIn(`{ name: a, kind: Pool, pool: { ${written} } }`)).toEqual({
    ...policy,
    idleKeepsProcessAlive: false,
  });
});

test.each([
  ['', {}],
  ['max: 40, reservoir: true', { max: 40, reservoir: true }],
  [
    'max: 12, warmup: false, keeper: false, dialLimit: 2',
    { max: 12, warmup: false, keeper: false, dialLimit: 2 },
  ],
  ['env: { DSQL_RESERVOIR_ENABLED: true }', { env: { DSQL_RESERVOIR_ENABLED: 'true' } }],
])('A simulated product has the policy of the real one as DsqlPool: %s', (written, options) => {
  const host = 'abcdefghijklmnopqrstuvwxyz.dsql.eu-central-1.on.aws';
  const { poolOptions } = resolveDsqlOptions(
    { host, env: {}, tokenProvider: async () => 'token', ...options },
    () => {},
  );
  const { policy } = resolvePoolOptions({ ...poolOptions });
  expect(policyIn(`{ name: a, kind: DsqlPool, pool: { ${written} } }`)).toEqual({
    ...policy,
    idleKeepsProcessAlive: false,
  });
});

test('A simulated product has the policy of the real one as serve, by either name of an option', () => {
  const [own, other] = ['{ poolSize: 30, minPoolSize: 4 }', '{ default_pool_size: 30, min_pool_size: 4 }'];
  const policy = policyIn(`{ name: a, kind: serve, pool: ${own} }`);
  expect(policy).toMatchObject({ max: 30, idleFloor: 4, acquireTimeout: 120_000, dialTimeout: 15_000 });
  expect(policyIn(`{ name: a, kind: serve, pool: ${other} }`)).toEqual(policy);
  expect(policyIn('{ name: a, kind: serve }')).toMatchObject({ max: 20, keeper: undefined });
});

test.each([
  ['kind: engine, pool: { max: 40 }', 0],
  ['kind: Pool, pool: { max: 40, min: 10 }', 0],
  ['kind: Pool, pool: { max: 40, minIdle: 10 }', 10],
  ['kind: DsqlPool, pool: { max: 40 }', 40],
  ['kind: DsqlPool, pool: { max: 40, warmup: false, keeper: false }', 0],
  ['kind: serve, pool: { min_pool_size: 7 }', 7],
])('An idle pool opens as many connections as in reality %s: %i', (written, opened) => {
  expect(simulate(scenarioOf(`{ name: a, ${written} }`)).server.accepted).toBe(opened);
});

test('An idle pool opens as many connections as in reality and no faster: without a limiter in the scenario, a DsqlPool has its own', () => {
  const [service] = scenarioOf('{ name: a, kind: DsqlPool, pool: { max: 40 } }').services;
  expect(service?.limiter).toEqual({ perSecond: 10, burst: expect.any(Number) });
  const env = '{ DSQL_CONNECTION_RATE_LIMIT: 2, DSQL_CONNECTION_BURST_LIMIT: 1 }';
  const slow = scenarioOf(`{ name: a, kind: DsqlPool, pool: { max: 40, startJitter: 0, env: ${env} } }`);
  expect(slow.services[0]?.limiter?.perSecond).toBe(2);
  expect(simulate(slow).services[0]?.convergedAtMs).toBeGreaterThan(15_000);
});

test('A mistake in the options of a product is told with its line and the nearest option', () => {
  const found = problemsOf(
    '{ name: a, kind: Pool, pool: { maxx: 3 } }',
    '{ name: b, kind: Pool, pool: { max: none } }',
    '{ name: c, kind: DsqlPool, pool: { reservoirs: true } }',
    '{ name: d, kind: serve, pool: { default_pool_sise: 3 } }',
    '{ name: e, kind: serve, pool: { pool_mode: session } }',
    '{ name: f, kind: serve, pool: { poolSize: 0 } }',
    '{ name: g, kind: pool }',
  );
  expect(found.slice(0, 4)).toEqual([
    '3 services[0].pool.maxx: is not an option; did you mean max?',
    expect.stringMatching(/^4 services\[1\]\.pool\.max: must be a whole number/),
    '5 services[2].pool.reservoirs: is not an option; did you mean reservoir?',
    '6 services[3].pool.default_pool_sise: is not an option; did you mean default_pool_size?',
  ]);
  expect(found[4]).toMatch(/^7 services\[4\]\.pool\.pool_mode: is not simulated; simulated are /);
  expect(found[5]).toMatch(/^8 services\[5\]\.pool\.poolSize: must be/);
  expect(found[6]).toMatch(/^9 services\[6\]\.kind: must be one of engine, Pool, DsqlPool, serve/);
});

test('A mistake in the options of a product is told of what the simulator makes itself, and of a life longer than the server allows', () => {
  const found = problemsOf(
    '{ name: a, kind: Pool, pool: { rateLimiter: {} } }',
    '{ name: b, kind: DsqlPool, pool: { maxLifetimeSeconds: 7200 } }',
  );
  expect(found[0]).toBe('3 services[0].pool.rateLimiter: is made by the simulator: see limiter');
  expect(found[1]).toMatch(/^4 services\[1\]\.pool\.maxLifetimeSeconds: lets a connection live/);
});

test('A mistake in the options of a product does not come from defaults that are for another kind', () => {
  const { services } = parseScenario(
    [
      'duration: 1m',
      'defaults: { kind: Pool, pool: { connectionTimeoutMillis: 500 } }',
      'services: [{ name: a }, { name: b, kind: engine, pool: { max: 3 } }]',
    ].join('\n'),
  );
  expect(services.map(({ pool }) => pool.acquireTimeout)).toEqual([500, undefined]);
});
