/** Settings of one pool: the user's take precedence over the database's, and those over the general ones. */
import type { PolicyOptions } from '../../core/pool-policy.js';
import { isDsql } from './dialect.js';
import type { DatabaseConfig, GeneralConfig, PoolerConfig, UserConfig } from './pooler-config.js';
import type { PoolMode } from './pooling-options.js';

export interface PoolSettings {
  readonly poolMode: PoolMode;
  readonly poolSize: number;
  /** At most the size. */
  readonly minPoolSize: number;
  readonly reservePoolSize: number;
  readonly serverLifetime: number;
  readonly serverMaxUses: number;
  readonly maxDbConnections: number;
  readonly maxDbClientConnections: number;
  readonly maxUserConnections: number;
  readonly maxUserClientConnections: number;
  readonly queryWaitTimeout: number;
  readonly queryTimeout: number;
  readonly transactionTimeout: number;
  readonly idleTransactionTimeout: number;
  readonly clientIdleTimeout: number;
  readonly clientWriteTimeout: number;
}

/** `database` is the result of `databaseFor()`, `user` the name under which the pool is kept. */
export function poolSettingsFor(config: PoolerConfig, database: DatabaseConfig, user: string): PoolSettings {
  const { pooling, limits, timeouts, fairShares } = config;
  const own: Partial<UserConfig> = config.users.get(user) ?? {};
  const poolSize = own.poolSize ?? database.poolSize ?? pooling.poolSize;
  return Object.freeze({
    poolMode: own.poolMode ?? database.poolMode ?? pooling.poolMode,
    poolSize,
    minPoolSize: Math.min(poolSize, database.minPoolSize ?? pooling.minPoolSize),
    reservePoolSize: own.reservePoolSize ?? database.reservePoolSize ?? pooling.reservePoolSize,
    serverLifetime: database.serverLifetime ?? lifetimeFor(database, lifetimeOf(config)),
    serverMaxUses: database.serverMaxUses ?? pooling.serverMaxUses,
    maxDbConnections: database.maxDbConnections ?? limits.maxDbConnections,
    maxUserConnections: own.maxUserConnections ?? limits.maxUserConnections,
    ...clientLimitsFor(config, database, user),
    queryWaitTimeout: own.queryWaitTimeout ?? database.queryWaitTimeout ?? timeouts.queryWaitTimeout,
    queryTimeout: own.queryTimeout ?? timeouts.queryTimeout,
    transactionTimeout: own.transactionTimeout ?? timeouts.transactionTimeout,
    idleTransactionTimeout:
      own.idleTransactionTimeout ?? fairShares.reservedInactivityTimeout ?? timeouts.idleTransactionTimeout,
    clientIdleTimeout: own.clientIdleTimeout ?? timeouts.clientIdleTimeout,
    clientWriteTimeout: timeouts.clientWriteTimeout,
  });
}

/** A client that logs in under its own name, to a pool of another user, has its own wait and idle timeouts. */
export function limitsForClient(pool: PoolSettings, own: Partial<UserConfig> = {}): PoolSettings {
  const { queryWaitTimeout = pool.queryWaitTimeout, clientIdleTimeout = pool.clientIdleTimeout } = own;
  if (queryWaitTimeout === pool.queryWaitTimeout && clientIdleTimeout === pool.clientIdleTimeout) return pool;
  return { ...pool, queryWaitTimeout, clientIdleTimeout };
}

/** Limits of clients of the user and of the database. */
export function clientLimitsFor(
  { limits, users }: PoolerConfig,
  database: DatabaseConfig,
  user: string,
): Pick<PoolSettings, 'maxDbClientConnections' | 'maxUserClientConnections'> {
  return {
    maxDbClientConnections: database.maxDbClientConnections ?? limits.maxDbClientConnections,
    maxUserClientConnections: users.get(user)?.maxUserClientConnections ?? limits.maxUserClientConnections,
  };
}

function lifetimeOf({ pooling, fairShares }: PoolerConfig): number {
  return shortest(fairShares.regularMaxLifetime, fairShares.reservedMaxLifetime) ?? pooling.serverLifetime;
}

function idleTimeoutOf({ pooling, fairShares }: PoolerConfig): number {
  return shortest(fairShares.regularIdleTimeout, fairShares.reservedIdleTimeout) ?? pooling.serverIdleTimeout;
}

/** The shortest limit; 0 is no limit. Undefined where none is given. */
function shortest(...limits: readonly (number | undefined)[]): number | undefined {
  const given = limits.filter((limit) => limit !== undefined);
  if (given.length === 0) return undefined;
  const ending = given.filter((limit) => limit > 0);
  return ending.length === 0 ? 0 : Math.min(...ending);
}

/** Time that an unused pool of this database is kept; 0: for ever. */
export function poolKeptFor({ databases, timeouts, fairShares }: PoolerConfig, database: string): number {
  const usual = databases.has(database) ? timeouts.poolIdleTimeout : timeouts.autodbIdleTimeout;
  return shortest(usual, fairShares.inactiveTimeout) ?? 0;
}

/** Aurora DSQL closes connections after an hour, even in use; jitter spreads lifetimes around this. */
const longestDsqlLifetime = 3_000_000;

function lifetimeFor(database: DatabaseConfig, usual: number): number {
  if (!isDsql(database)) return usual;
  return usual === 0 ? longestDsqlLifetime : Math.min(usual, longestDsqlLifetime);
}

/** First pause after a failed dial; `server_login_retry` is the longest. */
const firstRetryMs = 100;
/** The engine's 0 is "never check"; a thousandth of a millisecond has the effect of always. */
const alwaysMs = 0.001;

/** PgBouncer looks after sizes and timeouts three times a second. */
export function housekeepingIntervalOf({ admin }: PoolerConfig): number {
  return admin.compatibility === 'pgbouncer' ? 333 : 1_000;
}

/** The engine's options for the pool of a user in a database. */
export function policyFor(config: PoolerConfig, database: DatabaseConfig, user: string): PolicyOptions {
  const { pooling } = config;
  const settings = poolSettingsFor(config, database, user);
  const { poolSize, minPoolSize, serverLifetime, serverMaxUses } = settings;
  const longestRetry = Math.max(1, pooling.serverLoginRetry);
  const interval = housekeepingIntervalOf(config);
  return {
    max: poolSize,
    // `min_pool_size` is a size to keep, including busy connections; `minIdle` would add spares on top of them.
    ...(minPoolSize > 0
      ? { keeper: { target: minPoolSize, perTick: minPoolSize, interval }, idleFloor: minPoolSize }
      : {}),
    acquireTimeout: settings.queryWaitTimeout,
    dialTimeout: pooling.serverConnectTimeout,
    dialLimit: pooling.serverConnectLimit,
    idleTimeout: idleTimeoutOf(config),
    maxLifetime: serverLifetime,
    maxLifetimeJitter: serverLifetime * pooling.serverLifetimeJitter,
    maxUses: serverMaxUses === 0 ? Number.POSITIVE_INFINITY : serverMaxUses,
    checkAfterIdle: checkQueryOf(config) === undefined ? 0 : Math.max(alwaysMs, pooling.serverCheckDelay),
    idleOrder: pooling.serverRoundRobin ? 'fifo' : 'lifo',
    onDialFailure: 'retry',
    backoffBase: Math.min(firstRetryMs, longestRetry),
    backoffCap: longestRetry,
  };
}

/** The query that checks a server connection; undefined where connections are not checked. */
export function checkQueryOf({ pooling }: Pick<PoolerConfig, 'pooling'>): string | undefined {
  const { serverCheckQuery } = pooling;
  if (serverCheckQuery === '') return undefined;
  return serverCheckQuery === '<empty>' ? '' : serverCheckQuery;
}

/** TLS with the servers of a database. */
export function serverTlsFor(config: PoolerConfig, database: DatabaseConfig): GeneralConfig['serverTls'] {
  const { serverTls } = config;
  return Object.freeze({
    ...serverTls,
    mode: database.tlsMode ?? serverTls.mode,
    caFile: database.tlsCaFile ?? serverTls.caFile,
    certFile: database.tlsCertFile ?? serverTls.certFile,
    keyFile: database.tlsKeyFile ?? serverTls.keyFile,
    negotiation: database.tlsNegotiation ?? serverTls.negotiation,
  });
}
