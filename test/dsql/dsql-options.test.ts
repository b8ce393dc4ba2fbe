// The options of DsqlPool: its defaults, and what it refuses when it is made.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DsqlPool, type DsqlPoolOptions, TokenCache } from '../../src/dsql.js';
import { PoolOptionsError, TokenBucket } from '../../src/index.js';

const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';

const pools: DsqlPool[] = [];

/** What the machine's own environment says must not matter here. A pool that is ended at once dials nobody. */
function make(options: DsqlPoolOptions): DsqlPool {
  const pool = new DsqlPool({ env: {}, ...options });
  pools.push(pool);
  return pool;
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});

function problemsOf(options: object): string[] {
  try {
    make(options as DsqlPoolOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(PoolOptionsError);
    return (error as PoolOptionsError).problems.map(({ path }) => path);
  }
  return [];
}

describe('a DsqlPool', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('a DsqlPool has defaults for a server that opens few connections a second', () => {
    const pool = make({ host });
    expect(pool.endpoint).toEqual({ host, region: 'us-east-1', clusterId: host.slice(0, 26) });
    expect(pool.options).toMatchObject({
      host,
      user: 'admin',
      database: 'postgres',
      port: 5432,
      ssl: { rejectUnauthorized: true },
      sslnegotiation: 'direct',
      keepAlive: true,
      maxLifetimeSeconds: 3_000,
      maxLifetimeJitterSeconds: 600,
      idleTimeoutMillis: 0,
      warmup: true,
      keeper: true,
      startJitter: 5_000,
      connectionTimeoutMillis: 10_000,
      onDialFailure: 'retry',
    });
    expect((pool.options as DsqlPoolOptions).rateLimiter).toBeInstanceOf(TokenBucket);
  });

  test('a DsqlPool keeps the given options, and shows no secrets in them', () => {
    const credentials = { accessKeyId: 'AKID', secretAccessKey: 'secret' };
    const pool = make({
      host,
      user: 'app',
      max: 3,
      idleTimeoutMillis: 5,
      credentials,
      ssl: { ca: 'x' },
    });
    expect(pool.options).toMatchObject({ user: 'app', max: 3, idleTimeoutMillis: 5, ssl: { ca: 'x' } });
    expect(JSON.stringify(pool.options)).not.toContain('secret');
  });

  test('a DsqlPool takes the region of the environment for a bare cluster id', () => {
    vi.stubEnv('AWS_REGION', 'eu-west-1');
    expect(make({ clusterId: host.slice(0, 26), env: undefined }).endpoint.region).toBe('eu-west-1');
  });

  test('a DsqlPool spreads a life of one’s own over a tenth of it', () => {
    const pool = make({ host, maxLifetimeSeconds: 660 });
    expect(pool.options).toMatchObject({ maxLifetimeSeconds: 660, maxLifetimeJitterSeconds: 66 });
  });
});

test.each<[string, object, string[]]>([
  ['to be made for nowhere', { region: 'us-east-1' }, ['host']],
  [
    'a password and a connection string',
    { host, password: 'x', connectionString: 'y' },
    ['password', 'connectionString'],
  ],
  ['to go without TLS', { host, ssl: false }, ['ssl']],
  ['to talk to whoever answers', { host, ssl: { rejectUnauthorized: false } }, ['ssl.rejectUnauthorized']],
  [
    'settings that the server refuses',
    { host, statement_timeout: 5, lock_timeout: 5 },
    ['statement_timeout', 'lock_timeout'],
  ],
  [
    'such settings in a command line',
    { host, options: '-c search_path=x -c work_mem=1MB --lock-timeout=5' },
    ['options'],
  ],
  ['connections without an end', { host, maxLifetimeSeconds: 0 }, ['maxLifetimeSeconds']],
  [
    'a life that ends after the server would end it',
    { host, maxLifetimeSeconds: 3_301 },
    ['maxLifetimeSeconds'],
  ],
  [
    'such a life by its jitter',
    { host, maxLifetimeSeconds: 3_200, maxLifetimeJitterSeconds: 400 },
    ['maxLifetimeSeconds'],
  ],
  [
    'two sources of tokens',
    { host, tokenProvider: () => 'x', tokenCache: new TokenCache(() => 'x') },
    ['tokenCache'],
  ],
  ['sources that are none', { host, tokenProvider: 'x' }, ['tokenProvider']],
  ['tokens that live too long for the signer', { host, tokenLifeSeconds: 604_801 }, ['tokenLifeSeconds']],
  [
    'all of it at once, and what Pool refuses',
    { ssl: false, region: 'x', max: -1 },
    ['host', 'region', 'ssl', 'max'],
  ],
])('a DsqlPool refuses %s', (_name, options, paths) => {
  expect(problemsOf(options)).toEqual(paths);
});

test('a DsqlPool refuses nothing else: accepted settings pass', () => {
  expect(problemsOf({ host, options: '-c search_path=app --timezone=UTC', application_name: 'x' })).toEqual(
    [],
  );
});
