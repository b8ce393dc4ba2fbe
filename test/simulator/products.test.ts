// Services that are products: their option names and defaults, read by the products' own code.
import { expect, test } from 'vitest';
import { resolveDsqlOptions } from '../../src/dsql/dsql-options.js';
import { resolvePoolOptions } from '../../src/pg/pool-options.js';
import { policyOf } from '../../src/simulator/process/service-process.js';
import type { Samples } from '../../src/simulator/result.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { ScenarioError } from '../../src/simulator/scenario/scenario-reader-problems.js';
import { simulate } from '../../src/simulator/simulate.js';

/** Services, and lines with a key for the scenario itself. */
function scenarioOf(...lines: string[]) {
  const services = lines.map((line) => (line.startsWith('{') ? `  - ${line}` : line));
  return parseScenario(['duration: 2m', 'services:', ...services].join('\n'));
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
  ['{ poolSize: 30, maxDbConnections: 12 }', 12],
  ['{ default_pool_size: 30, max_user_connections: 7, max_db_connections: 12 }', 7],
  ['{ poolSize: 30, maxServerConnections: 9, minPoolSize: 20 }', 9],
  ['{ poolSize: 5, max_db_connections: 12 }', 5],
])('A simulated serve has no more connections than the smallest of its limits: %s', (written, most) => {
  const service = `{ name: a, kind: serve, pool: ${written}, workload: { every: 10s, burst: 60, hold: 2s } }`;
  const { services, server, laws } = simulate(scenarioOf(service));
  expect(services[0]).toMatchObject({ limit: most, peak: most });
  expect([server.peakConnections, laws]).toEqual([most, []]);
});

test('A simulated serve opens its reserve when a caller has waited for long, and closes it when that is over', () => {
  const pool = '{ default_pool_size: 4, reserve_pool_size: 3, reserve_pool_timeout: 2s }';
  const burst = (hold: string) => `workload: { every: 60s, burst: 10, hold: ${hold} }`;
  const limits = (hold: string, written = pool) => {
    const { services, laws } = simulate(
      scenarioOf(`{ name: a, kind: serve, pool: ${written}, ${burst(hold)} }`),
    );
    expect(laws).toEqual([]);
    return services[0];
  };
  expect(limits('500ms')).toMatchObject({ limit: 7, peak: 4 });
  expect(limits('5s')).toMatchObject({ limit: 7, peak: 7 });
  const { samples } = limits('5s') as { samples: Samples };
  expect(samples.discards.over_limit.at(-1)).toBeGreaterThan(0);
  expect((samples.ready.at(-1) ?? 0) + (samples.inUse.at(-1) ?? 0)).toBeLessThanOrEqual(4);
  expect(
    limits('5s', '{ default_pool_size: 4, reserve_pool_size: 3, reserve_pool_timeout: 0 }'),
  ).toMatchObject({
    ...{ limit: 4, peak: 4 },
  });
  const capped =
    '{ default_pool_size: 4, reserve_pool_size: 3, reserve_pool_timeout: 2s, max_db_connections: 5 }';
  expect(limits('5s', capped)).toMatchObject({ limit: 5, peak: 5 });
});

test('A simulated serve opens connections no faster than its connection rate, and at any rate without one', () => {
  const opened = (written: string) => {
    const scenario = scenarioOf(
      `{ name: a, kind: serve, pool: { poolSize: 60${written} }, workload: { every: 119s, burst: 60, hold: 10s } }`,
    );
    return { limiter: scenario.services[0]?.limiter, server: simulate(scenario).server };
  };
  expect(opened('').limiter).toBeUndefined();
  const slow = opened(', connectionRate: 5, dsql_connection_burst: 2');
  expect(slow.limiter).toEqual({ perSecond: 5, burst: 2 });
  expect(slow.server.peakPerSecond).toBeLessThanOrEqual(8);
  expect(opened('').server.peakPerSecond).toBeGreaterThan(20);
  expect(opened(', dsql_connection_rate: 0').limiter).toBeUndefined();
  expect(opened(', connectionRate: 5').limiter).toEqual({ perSecond: 5, burst: 100 });
});

test('A simulated serve that is a user of a budget has limits of its own and none of all users', () => {
  const problems = problemsOf(
    '{ name: a, kind: serve, pool: { max_user_connections: 3 } }',
    '{ name: b, kind: serve, pool: { max_db_connections: 3 } }',
    '{ name: c, kind: serve, pool: { maxServerConnections: 3 } }',
    '{ name: d, kind: serve, pool: { workers: 2, max_client_conn: 100 } }',
    '{ name: e, kind: serve, pool: { reserve_pool_sizes: 2 } }',
    'budget: { capacity: 10 }',
  );
  expect(problems).toEqual([
    '4 services[1].pool.max_db_connections: limits the users of a pooler together: say so with budget.capacity',
    '5 services[2].pool.maxServerConnections: limits the users of a pooler together: say so with budget.capacity',
    '6 services[3].pool.workers: is not simulated: a service is one pooler, whatever its processes',
    '6 services[3].pool.max_client_conn: is not simulated: see maxInUse of the workload',
    '7 services[4].pool.reserve_pool_sizes: is not an option; did you mean reserve_pool_size?',
  ]);
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
  expect(found[4]).toMatch(
    /^7 services\[4\]\.pool\.pool_mode: is not simulated: a caller keeps its connection /,
  );
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
