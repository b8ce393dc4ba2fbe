/** The options of `DsqlPool`: what leads to the cluster, and defaults for a server where opening is what is scarce. */
import { TokenBucket } from '../core/token-bucket.js';
import { PoolOptionsError } from '../kernel/errors.js';
import { OptionReader } from '../kernel/option-reader.js';
import { type PoolOptions, resolvePoolOptions } from '../pg/pool-options.js';
import type { DsqlClientSettings } from './dsql-client.js';
import { type Endpoint, readEndpoint } from './endpoint.js';
import { type AwsCredentialsSource, awsTokenProvider } from './signer.js';
import { refusedParameters } from './startup-parameters.js';
import { TokenCache, type TokenProvider } from './token-cache.js';

/** Everything that `Pool` takes but `password` and `connectionString`, and what leads to a cluster. */
export interface DsqlPoolOptions extends Omit<PoolOptions, 'password' | 'connectionString'> {
  /** The cluster's endpoint, or its id. */
  readonly host?: string | undefined;
  /** The cluster's id, in place of `host`. */
  readonly clusterId?: string | undefined;
  /** Default: the one in `host`, or `AWS_REGION`. */
  readonly region?: string | undefined;
  /** Where AWS credentials come from. Default: the AWS SDK's usual search, done once. */
  readonly credentials?: AwsCredentialsSource | undefined;
  /** How long a token is good for. Default 900. */
  readonly tokenLifeSeconds?: number | undefined;
  /** Makes the tokens, in place of `@aws-sdk/dsql-signer`. */
  readonly tokenProvider?: TokenProvider | undefined;
  /** A cache that several pools share. Default: one of its own. */
  readonly tokenCache?: TokenCache | undefined;
  /** Whose credentials sign, as far as `tokenProvider` understands it. */
  readonly role?: string | undefined;
  /** A statement that takes longer fails, and its connection is closed. The server has no such setting. Default: off. */
  readonly statementTimeoutMillis?: number | string | undefined;
  /** A transaction idle for longer is ended by closing its connection. Default: off. */
  readonly idleInTransactionTimeoutMillis?: number | string | undefined;
}

export interface ResolvedDsqlOptions extends DsqlClientSettings {
  readonly endpoint: Endpoint;
  /** What the pool is made with: nothing in it is secret. */
  readonly poolOptions: PoolOptions;
}

/** The server closes a connection after an hour. What began before that may take 5 minutes, the longest transaction. */
const hardDeadlineSeconds = 55 * 60;
const off = Number.POSITIVE_INFINITY;
const ownOptions = [
  'clusterId',
  'region',
  'credentials',
  'tokenLifeSeconds',
  'tokenProvider',
  'tokenCache',
  'role',
  'statementTimeoutMillis',
  'idleInTransactionTimeoutMillis',
] as const satisfies readonly (keyof DsqlPoolOptions)[];
const longestTokenLife = 604_800;
/** What the server takes from all processes together is 100 a second, 1,000 at once; a little is left to others. */
const usualRate = { rate: 90, burst: 800 };

/** Checks everything and throws all that is wrong. `note` hears of refreshes that failed. */
export function resolveDsqlOptions(
  options: DsqlPoolOptions,
  environment: Readonly<Record<string, string | undefined>>,
  note: (message: string, error: unknown) => void,
): ResolvedDsqlOptions {
  const { credentials, tokenProvider, tokenCache, role } = options;
  const given = withoutOwn(options);
  const read = new OptionReader(options);
  const { endpoint, problems } = readEndpoint(
    options,
    environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION'],
  );
  for (const { path, message } of [...problems, ...refusedParameters({ ...given })])
    read.problem(path, message);
  const user = read.string('user', 'admin');
  const database = read.string('database', 'postgres');
  const tokenLifeSeconds = read.integer('tokenLifeSeconds', 900, { min: 1, max: longestTokenLife });
  read.callback('tokenProvider', false);
  read.object<TokenCache>('tokenCache', ['get', 'refuse']);
  if (role !== undefined) read.string('role', '');
  checkTokenSource(read, options);
  const limits = Object.freeze({
    statement: read.duration('statementTimeoutMillis', off, off),
    idleInTransaction: read.duration('idleInTransactionTimeoutMillis', off, off),
  });
  const ssl = readTls(read, given.ssl);
  const poolOptions = {
    ...withDefaults(given),
    user,
    database,
    ssl,
    ...(endpoint === undefined ? {} : { host: endpoint.host }),
  };
  checkLife(read, poolOptions);
  collectPoolProblems(read, poolOptions);
  read.throwIfAnyProblem();
  const { host, region } = endpoint as Endpoint;
  return {
    endpoint: endpoint as Endpoint,
    limits,
    request: Object.freeze({ host, region, user, role }),
    tokens:
      tokenCache ??
      new TokenCache(tokenProvider ?? awsTokenProvider({ credentials, tokenLifeSeconds }), {
        onRefreshFailed: (error) => note('the token could not be refreshed; the present one is used', error),
      }),
    poolOptions,
  };
}

/** What is left for the pool and its clients, who need not know the rest, and must not show what is secret in it. */
function withoutOwn(options: DsqlPoolOptions): PoolOptions {
  const isOwn = (name: string): boolean => (ownOptions as readonly string[]).includes(name);
  return Object.fromEntries(Object.entries(options).filter(([name]) => !isOwn(name)));
}

/** Where an option is left out, and only there. docs/dsql.md has the reason for each. */
function withDefaults(given: PoolOptions): PoolOptions {
  const defaults: PoolOptions = {
    port: 5432,
    sslnegotiation: 'direct',
    keepAlive: true,
    maxLifetimeSeconds: 50 * 60,
    // Where the life is the user's, so is its spread; without one it is a tenth.
    maxLifetimeJitterSeconds:
      given.maxLifetimeSeconds === undefined ? 600 : Number(given.maxLifetimeSeconds) / 10,
    idleTimeoutMillis: 600_000,
    connectionTimeoutMillis: 10_000,
    onDialFailure: 'retry',
    rateLimiter: given.rateLimiter ?? new TokenBucket(usualRate),
  };
  const chosen = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(chosen) };
}

/** A token is a password in clear text: it goes to nobody who has not proved to be the cluster. */
function readTls(read: OptionReader, ssl: unknown): Exclude<PoolOptions['ssl'], boolean | undefined> {
  const isObject = typeof ssl === 'object' && ssl !== null;
  if (ssl !== undefined && ssl !== true && !isObject)
    read.problem('ssl', 'must be left out, or an object such as { ca }: Aurora DSQL speaks nothing but TLS');
  if (isObject && (ssl as { rejectUnauthorized?: unknown }).rejectUnauthorized === false)
    read.problem('ssl.rejectUnauthorized', 'must not be false: the token would go to whoever answers');
  return { ...(isObject ? ssl : {}), rejectUnauthorized: true };
}

function checkTokenSource(read: OptionReader, options: DsqlPoolOptions): void {
  for (const name of ['password', 'connectionString'] as const) {
    if ((options as Record<string, unknown>)[name] !== undefined)
      read.problem(
        name,
        'is not an option here: the password is a token, and the rest has options of its own',
      );
  }
  const { credentials, tokenProvider, tokenCache } = options;
  const sources = Object.entries({ credentials, tokenProvider, tokenCache }).filter(
    ([, it]) => it !== undefined,
  );
  for (const [name] of sources.slice(1))
    read.problem(name, `can't be given together with ${sources[0]?.[0]}`);
}

/** No connection may still be lent when the server closes it. */
function checkLife(read: OptionReader, { maxLifetimeSeconds, maxLifetimeJitterSeconds }: PoolOptions): void {
  const life = Number(maxLifetimeSeconds);
  const longest = life + Number(maxLifetimeJitterSeconds) / 2;
  if (life === 0)
    read.problem('maxLifetimeSeconds', 'must not be 0: the server closes connections after an hour');
  else if (longest > hardDeadlineSeconds)
    read.problem(
      'maxLifetimeSeconds',
      `lets a connection live ${longest} s, jitter included, more than ${hardDeadlineSeconds} s: ` +
        'the hour after which the server closes it, less the longest transaction',
    );
}

function collectPoolProblems(read: OptionReader, poolOptions: PoolOptions): void {
  try {
    resolvePoolOptions({ ...poolOptions });
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    for (const { path, message } of error.problems) read.problem(path, message);
  }
}
