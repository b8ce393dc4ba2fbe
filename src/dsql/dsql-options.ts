/** The options of `DsqlPool`: what leads to the cluster, and defaults for a server where opening is what is scarce. */
import type { TokenBucketOptions } from '../core/token-bucket.js';
import { type Environment, EnvironmentReader, type EnvironmentWarning } from '../kernel/environment.js';
import { PoolOptionsError } from '../kernel/errors.js';
import { OptionReader } from '../kernel/option-reader.js';
import { type PoolOptions, resolvePoolOptions } from '../pg/pool-options.js';
import { checkFleetOptions, type DistributedPlan, type FleetOptions } from './distributed-settings.js';
import type { DsqlClientSettings } from './dsql-client.js';
import { type Endpoint, readEndpoint } from './endpoint.js';
import { checkLife, completePoolOptions, dsqlOnlyOptions } from './pool-settings.js';
import { type ExplainedSetting, Settings } from './settings.js';
import { type AwsCredentialsSource, awsTokenProvider } from './signer.js';
import { refusedParameters } from './startup-parameters.js';
import { TokenCache, type TokenProvider } from './token-cache.js';
import { warnOfUnknown } from './variables.js';

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
  /** The owner of the credentials that sign, as far as `tokenProvider` understands it. */
  readonly role?: string | undefined;
  /** How the process takes part in the limits that `DSQL_DISTRIBUTED_*` ask for. */
  readonly fleet?: FleetOptions | undefined;
  /** The environment variables to go by; `{}`: none. Default: those of the process. */
  readonly env?: Environment | undefined;
  /** A statement that takes longer fails, and its connection is closed. The server has no such setting. Default: off. */
  readonly statementTimeoutMillis?: number | string | undefined;
  /** A transaction idle for longer is ended by closing its connection. Default: off. */
  readonly idleInTransactionTimeoutMillis?: number | string | undefined;
}

export interface ResolvedDsqlOptions extends DsqlClientSettings {
  readonly endpoint: Endpoint;
  /** Options of the pool: nothing in them is secret. */
  readonly poolOptions: PoolOptions;
  /** For the limiter that the pools of a cluster share; undefined where the pool is given one. */
  readonly rate: TokenBucketOptions | undefined;
  /** Limits that all processes share. */
  readonly distributed: DistributedPlan;
  readonly credentials: AwsCredentialsSource | undefined;
  /** Which value each setting has, and why. */
  readonly explanation: readonly ExplainedSetting[];
  /** Variables that are not used as they are. */
  readonly warnings: readonly EnvironmentWarning[];
}

const off = Number.POSITIVE_INFINITY;
const ownOptions = dsqlOnlyOptions satisfies readonly (keyof DsqlPoolOptions)[];
const longestTokenLife = 604_800;

/** Checks everything and throws all that is wrong with the options. `note` hears of refreshes that failed. */
export function resolveDsqlOptions(
  options: DsqlPoolOptions,
  note: (message: string, error: unknown) => void,
): ResolvedDsqlOptions {
  const { credentials, tokenProvider, tokenCache, role } = options;
  const given = withoutOwn(options);
  const read = new OptionReader(options);
  const environment = new EnvironmentReader(readEnvironment(read, options.env));
  const settings = new Settings(environment);
  const endpoint = findEndpoint(options, read, environment, settings);
  for (const { path, message } of refusedParameters({ ...given })) read.problem(path, message);
  const user = read.string('user', 'admin');
  const database = read.string('database', 'postgres');
  settings.add('user', user, options.user === undefined ? 'default' : 'option');
  settings.add('database', database, options.database === undefined ? 'default' : 'option');
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
  checkFleetOptions(read.group('fleet'));
  const {
    poolOptions: completed,
    rate,
    distributed,
  } = completePoolOptions(given, environment, settings, options.fleet);
  const poolOptions = { ...completed, user, database, ssl, ...(endpoint && { host: endpoint.host }) };
  checkLife(read, poolOptions);
  collectPoolProblems(read, poolOptions);
  read.throwIfAnyProblem();
  warnOfUnknown(environment);
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
    rate,
    distributed,
    credentials,
    explanation: settings.explanation(),
    warnings: environment.warnings,
  };
}

function readEnvironment(read: OptionReader, env: unknown): Environment {
  if (env === undefined) return process.env;
  if (typeof env === 'object' && env !== null) return env as Environment;
  read.problem('env', `must be an object of environment variables, not ${String(env).slice(0, 40)}`);
  return {};
}

function findEndpoint(
  options: DsqlPoolOptions,
  read: OptionReader,
  environment: EnvironmentReader,
  settings: Settings,
): Endpoint | undefined {
  const variable = ['AWS_REGION', 'AWS_DEFAULT_REGION'].find((name) => environment.text(name) !== undefined);
  const { endpoint, problems } = readEndpoint(options, variable && environment.text(variable));
  for (const { path, message } of problems) read.problem(path, message);
  if (endpoint === undefined) return undefined;
  const isInOptions = readEndpoint(options).endpoint !== undefined;
  settings.add('host', endpoint.host, 'option');
  if (isInOptions) settings.add('region', endpoint.region, 'option');
  else settings.add('region', endpoint.region, 'environment', variable);
  return endpoint;
}

/** Options left for the pool and its clients, which need not know the rest, and must not show a secret. */
function withoutOwn(options: DsqlPoolOptions): PoolOptions {
  const isOwn = (name: string): boolean => (ownOptions as readonly string[]).includes(name);
  return Object.fromEntries(Object.entries(options).filter(([name]) => !isOwn(name)));
}

/** A token is a password in clear text: it is only sent to a server that has proved to be the cluster. */
function readTls(read: OptionReader, ssl: unknown): Exclude<PoolOptions['ssl'], boolean | undefined> {
  const isObject = typeof ssl === 'object' && ssl !== null;
  if (ssl !== undefined && ssl !== true && !isObject)
    read.problem('ssl', 'must be left out, or an object such as { ca }: Aurora DSQL speaks nothing but TLS');
  if (isObject && (ssl as { rejectUnauthorized?: unknown }).rejectUnauthorized === false)
    read.problem(
      'ssl.rejectUnauthorized',
      'must not be false: the token would go to any server that answers',
    );
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

function collectPoolProblems(read: OptionReader, poolOptions: PoolOptions): void {
  try {
    resolvePoolOptions({ ...poolOptions });
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    for (const { path, message } of error.problems) read.problem(path, message);
  }
}
