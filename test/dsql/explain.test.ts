// What `explain` says, and that it says nothing secret.
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  DsqlPool,
  type DsqlPoolOptions,
  type ExplainedSetting,
  explainDsql,
  formatExplanation,
  TokenCache,
} from '../../src/dsql.js';
import { PoolOptionsError, TokenBucket } from '../../src/index.js';

const host = 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws';

function rowOf(
  name: string,
  options: DsqlPoolOptions,
  env: Record<string, string> = {},
): ExplainedSetting | undefined {
  return explainDsql({ host, ...options }, env).find((row) => row.name === name);
}

test.each<[string, DsqlPoolOptions, Record<string, string>, Partial<ExplainedSetting>]>([
  ['max', {}, {}, { value: '10', source: 'default' }],
  ['max', { max: 50 }, {}, { value: '50', source: 'option' }],
  ['region', {}, {}, { value: 'us-east-1', source: 'option', variable: undefined }],
  [
    'region',
    { host: host.slice(0, 26) },
    { AWS_REGION: 'eu-west-1' },
    { value: 'eu-west-1', source: 'environment', variable: 'AWS_REGION' },
  ],
  ['reservoir', {}, {}, { value: 'off', source: 'default', variable: 'DSQL_RESERVOIR_ENABLED' }],
  ['reservoir', {}, { DSQL_RESERVOIR_ENABLED: 'true' }, { value: 'on', source: 'environment' }],
  ['warmup', {}, {}, { value: 'on', source: 'default' }],
  ['warmup', { warmup: { target: 5 } }, {}, { value: 'target 5', source: 'option' }],
  [
    'keeper',
    {},
    { AWS_LAMBDA_FUNCTION_NAME: 'f' },
    { value: 'off', source: 'environment', variable: 'AWS_LAMBDA_FUNCTION_NAME' },
  ],
  ['maxLifetimeSeconds', {}, {}, { value: '50m', source: 'default' }],
  ['idleTimeoutMillis', {}, {}, { value: 'off', source: 'default' }],
  ['startJitter', {}, {}, { value: '5s', source: 'default', variable: 'DSQL_STAGGERED_STARTUP_MAX_DELAY' }],
  [
    'startJitter',
    {},
    { DSQL_STAGGERED_STARTUP: 'false' },
    { value: 'off', source: 'environment', variable: 'DSQL_STAGGERED_STARTUP' },
  ],
  [
    'rateLimiter.rate',
    {},
    { DSQL_CONNECTION_RATE_LIMIT: '5' },
    { value: '5', source: 'environment', variable: 'DSQL_CONNECTION_RATE_LIMIT' },
  ],
  ['leases', {}, {}, { value: 'none', source: 'default' }],
])('an explanation has %s with %j and %j', (name, options, env, row) => {
  expect(rowOf(name, options, env)).toMatchObject(row);
});

test('an explanation has where each part of a reservoir is from, and what was corrected', () => {
  const env = {
    DSQL_RESERVOIR_TARGET_READY: '20',
    DSQL_RESERVOIR_LOW_WATERMARK: '30',
    DSQL_RESERVOIR_GUARD_WINDOW: '1m',
    DSQL_RESERVOIR_BASE_LIFETIME: 'long',
  };
  const rows = explainDsql({ host, max: 50, reservoir: { guardWindow: '30s' } }, env);
  expect(rows.filter(({ name }) => name.startsWith('reservoir.'))).toEqual([
    {
      name: 'reservoir.targetReady',
      variable: 'DSQL_RESERVOIR_TARGET_READY',
      value: '30',
      source: 'environment',
      note: "is '20', less than the low watermark, which is 30: 30 is used",
    },
    {
      name: 'reservoir.lowWatermark',
      variable: 'DSQL_RESERVOIR_LOW_WATERMARK',
      value: '30',
      source: 'environment',
      note: undefined,
    },
    {
      name: 'reservoir.baseLifetime',
      variable: 'DSQL_RESERVOIR_BASE_LIFETIME',
      value: '11m',
      source: 'default',
      note: "is 'long', no duration such as '11m' or '45s': the default, 11m, is used",
    },
    {
      name: 'reservoir.lifetimeJitter',
      variable: 'DSQL_RESERVOIR_LIFETIME_JITTER',
      value: '2m',
      source: 'default',
      note: undefined,
    },
    {
      name: 'reservoir.guardWindow',
      variable: 'DSQL_RESERVOIR_GUARD_WINDOW',
      value: '30s',
      source: 'option',
      note: "wins over '1m' of the environment",
    },
    {
      name: 'reservoir.initialFillTimeout',
      variable: 'DSQL_RESERVOIR_INITIAL_FILL_TIMEOUT',
      value: '30s',
      source: 'default',
      note: undefined,
    },
    {
      name: 'reservoir.emptyWait',
      variable: undefined,
      value: '100ms',
      source: 'default',
      note: undefined,
    },
  ]);
});

test('an explanation has variables without effect and unknown names, without their values', () => {
  const env = { DSQL_RESERVOIR_TARGET_READY: '50', DSQL_RESERVOIR_TARGET: 'secret' };
  expect(explainDsql({ host }, env).slice(-2)).toEqual([
    {
      name: 'reservoir.targetReady',
      variable: 'DSQL_RESERVOIR_TARGET_READY',
      value: '50',
      source: 'environment',
      note: 'not used',
    },
    {
      name: 'none',
      variable: 'DSQL_RESERVOIR_TARGET',
      value: '?',
      source: 'environment',
      note: 'is not known and not used; did you mean DSQL_RESERVOIR_TARGET_READY?',
    },
  ]);
});

test('the explanation belongs to the pool that was asked', async () => {
  const options = { host, max: 7, env: { DSQL_CONNECTION_RATE_LIMIT: '3' } };
  await using pool = new DsqlPool(options);
  expect(pool.explain()).toEqual(explainDsql(options));
});

test('an explanation and an end can be had through a proxy of the pool', async () => {
  const options = { host, max: 7, env: {} };
  await using pool = new DsqlPool(options);
  const proxy = new Proxy(pool, {});
  expect(proxy.explain()).toEqual(explainDsql(options));
  await proxy.end();
  expect(pool.ended).toBe(true);
});

test('an explanation is not made for options that the pool would refuse', () => {
  expect(() => explainDsql({ host, max: -1 }, {})).toThrow(PoolOptionsError);
});

test('an explanation shows nothing that is secret, and no object’s inside', () => {
  const secret = 'do-not-show';
  const sources: DsqlPoolOptions[] = [
    { credentials: { accessKeyId: secret, secretAccessKey: secret, sessionToken: secret } },
    { tokenProvider: () => secret },
    { tokenCache: new TokenCache(() => secret) },
  ];
  const env = { AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: secret, PGPASSWORD: secret };
  for (const source of sources) {
    const rows = explainDsql(
      {
        host,
        role: secret,
        ssl: { key: secret },
        rateLimiter: new TokenBucket({ rate: 1, burst: 1 }),
        ...source,
      },
      env,
    );
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(formatExplanation(rows)).not.toContain(secret);
  }
});

test('an explanation as a text is a table with aligned columns', () => {
  const rows: ExplainedSetting[] = [
    { name: 'max', variable: undefined, value: '50', source: 'option' },
    {
      name: 'reservoir.targetReady',
      variable: 'DSQL_RESERVOIR_TARGET_READY',
      value: '50',
      source: 'environment',
      note: 'two\nlines',
    },
  ];
  expect(formatExplanation(rows)).toBe(
    [
      'setting                value  from         variable                     note',
      'max                    50     option',
      'reservoir.targetReady  50     environment  DSQL_RESERVOIR_TARGET_READY  two lines',
    ].join('\n'),
  );
});

describe('mistakes of the operator', () => {
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });

  test('a mistake of the operator is one warning of the process for each pool, and a line in its log for each thing', async () => {
    vi.stubEnv('DSQL_CONNECTION_RATE_LIMIT', 'ten');
    vi.stubEnv('DSQL_CONNECTION_BURST', '5');
    const emitWarning = vi.spyOn(process, 'emitWarning').mockReturnValue();
    const logged: unknown[][] = [];
    await using _pool = new DsqlPool({ host, log: (...said: unknown[]) => logged.push(said) });
    const lines = [
      "DSQL_CONNECTION_RATE_LIMIT is 'ten', no number: the default, 10, is used.",
      'DSQL_CONNECTION_BURST is not known and not used; did you mean DSQL_CONNECTION_BURST_LIMIT?',
    ];
    expect(emitWarning.mock.calls).toEqual([[lines.join('\n'), { code: 'HG_DSQL_CONFIG' }]]);
    expect(logged).toEqual(lines.map((line) => [line]));
  });

  test('a mistake of the operator is not reported where nothing is wrong, and not by asking for an explanation', async () => {
    const emitWarning = vi.spyOn(process, 'emitWarning').mockReturnValue();
    await using _pool = new DsqlPool({ host, env: { DSQL_CONNECTION_RATE_LIMIT: '5' } });
    explainDsql({ host }, { DSQL_CONNECTION_RATE_LIMIT: 'ten' });
    expect(emitWarning).not.toHaveBeenCalled();
  });
});
