/** The pools, by database and user: made when one is needed, changed when the configuration is, forgotten when unused. */
import { type PoolPolicy, readPolicy } from '../../core/pool-policy.js';
import type { RateLimiter } from '../../core/rate-limiter.js';
import { OptionReader } from '../../kernel/option-reader.js';
import { systemClock } from '../../runtime/system.js';
import { credentialsOfSecret } from '../auth/pass-through.js';
import type { ServerCredentials } from '../auth/server-authentication.js';
import type { BudgetLeases, Budgets } from '../budgets/server-budgets.js';
import type { Authenticator } from '../clients/login/authenticator.js';
import type { ServerTlsContexts } from '../clients/login/tls-contexts.js';
import { KnownValues } from '../clients/startup-settings.js';
import { type ConfigDiff, needsOtherServers } from '../config/config-diff.js';
import { isDsql } from '../config/dialect.js';
import { serverOf } from '../config/fleet-settings.js';
import { checkQueryOf, policyFor, poolSettingsFor, serverTlsFor } from '../config/pool-settings.js';
import {
  type DatabaseConfig,
  databaseFor,
  fallbackDatabase,
  type PoolerConfig,
} from '../config/pooler-config.js';
import { keepAliveOf, tuningOf } from '../config/socket-settings.js';
import type { Backend } from '../servers/backend.js';
import type { OpenBackend } from '../servers/backend-dialer.js';
import { BackendPool, type BackendPoolPlan, type MultiplexPlan } from '../servers/backend-pool.js';
import { isDefiniteRefusal } from '../servers/definite-refusal.js';
import { type MakeIamToken, noTokens, openerWithTokens } from '../servers/iam-login.js';
import { openBackend, type ServerPlan } from '../servers/open-backend.js';
import { ServerHosts } from '../servers/server-hosts.js';
import { SettingsRegistry } from '../settings/settings.js';
import type { ServerNotes } from './shared-parts.js';

export interface PoolRegistryParts {
  readonly config: () => PoolerConfig;
  readonly auth: () => Authenticator;
  readonly budgets: () => Budgets;
  /** Says when a connection to the server of a database may be opened; undefined: at any time. */
  readonly rateLimiterOf: (database: DatabaseConfig) => RateLimiter | undefined;
  /** Told of every server connection that is being opened or open, where another process has to know. */
  readonly notes?: ServerNotes | undefined;
  readonly serverTls: ServerTlsContexts;
  readonly makeIamToken: MakeIamToken | undefined;
  readonly isPaused: (database: string) => boolean;
  /** It is new. */
  readonly made: (pool: BackendPool) => void;
  /** It is no more; what it has counted is the last of it. */
  readonly forgotten: (pool: BackendPool) => void;
  /** A server has let the pooler in. Rejects if it can't be used. */
  readonly entered: (database: DatabaseConfig, backend: Backend) => Promise<void>;
}

/** A pool, and what is kept beside it. */
export class PoolEntry {
  readonly pool: BackendPool;
  readonly known = new KnownValues();
  database: DatabaseConfig;
  /** What it asks before it opens a server connection. */
  leases: BudgetLeases;
  /** What the last client that came in has shown, if it is good for the server. */
  shownCredentials: ServerCredentials | undefined;
  /** It is that of auth_user, who looks up the secrets of others. */
  looksUpSecrets = false;
  usedAt = systemClock.coarse();
  /** The configuration does not lead to it any more: it is as it was, for the clients that are left, and goes with them. */
  isOutdated = false;

  constructor(pool: BackendPool, database: DatabaseConfig, leases: BudgetLeases) {
    this.pool = pool;
    this.database = database;
    this.leases = leases;
    this.shownCredentials = undefined;
  }
}

export class PoolRegistry {
  readonly #parts: PoolRegistryParts;
  readonly #settings = new SettingsRegistry();
  readonly #entries = new Map<string, Map<string, PoolEntry>>();

  constructor(parts: PoolRegistryParts) {
    this.#parts = parts;
  }

  *entries(): IterableIterator<PoolEntry> {
    for (const ofDatabase of this.#entries.values()) yield* ofDatabase.values();
  }

  *pools(): IterableIterator<BackendPool> {
    for (const { pool } of this.entries()) yield pool;
  }

  /** The pool of a user, as the server knows it, in a database. */
  get(database: DatabaseConfig, user: string): PoolEntry {
    const ofDatabase = this.#entries.get(database.name) ?? new Map<string, PoolEntry>();
    this.#entries.set(database.name, ofDatabase);
    const entry = ofDatabase.get(user) ?? this.#make(database, user);
    ofDatabase.set(user, entry);
    if (entry.isOutdated) this.#bringUpToDate(entry, database, false, false);
    entry.usedAt = systemClock.coarse();
    return entry;
  }

  /** Whether no server has let in such a pool yet, and whoever comes may have made up its name. */
  isUnproven(database: DatabaseConfig, user: string): boolean {
    const { databases } = this.#parts.config();
    if (databases.get(database.name)?.user === user) return false;
    return this.#entries.get(database.name)?.get(user)?.pool.parameters === undefined;
  }

  /** A server has refused it: forgotten at once if it was never let in, and nobody else waits for it. */
  refused(entry: PoolEntry, error: unknown): void {
    const { pool, database } = entry;
    const isPresent = this.#entries.get(pool.database)?.get(pool.user) === entry;
    if (!isPresent || !(error instanceof Error) || !isDefiniteRefusal(error)) return;
    if (this.isUnproven(database, pool.user) && !isUsed(entry)) this.#forget(entry);
  }

  /** The pool in which this user, who need not be that of the database, looks up the secrets of others. */
  getForSecrets(database: DatabaseConfig, user: string): PoolEntry {
    const entry = this.get(database, user);
    entry.looksUpSecrets = true;
    return entry;
  }

  /** Pools that are to have connections before a client comes: the configuration says how many, and whose. */
  makeKept(isLeftOut: (database: string) => boolean): void {
    const config = this.#parts.config();
    for (const [name, { user }] of config.databases) {
      if (user === undefined || name === fallbackDatabase || isLeftOut(name)) continue;
      const database = databaseFor(config, name) as DatabaseConfig;
      if (poolSettingsFor(config, database, user).minPoolSize > 0) this.get(database, user);
    }
  }

  #make(database: DatabaseConfig, user: string): PoolEntry {
    let entry: PoolEntry | undefined;
    const leases = this.#leasesFor(database, user, () => entry?.pool.hasClients === true);
    const plan = this.#planFor(database, user, leases, () => entry);
    const pool = new BackendPool(database.name, user, this.#settings, plan);
    this.#parts.made(pool);
    if (this.#parts.isPaused(database.name)) pool.pause();
    entry = new PoolEntry(pool, database, leases);
    return entry;
  }

  #leasesFor(database: DatabaseConfig, user: string, hasClients: () => boolean): BudgetLeases {
    const server = serverOf(database);
    return this.#parts.budgets().leasesFor({ database: database.name, user, server, hasClients });
  }

  /** Another configuration holds. Answers with the pools whose connections are to be replaced. */
  change({ reconnectAll }: ConfigDiff, old: PoolerConfig): ReadonlySet<BackendPool> {
    const config = this.#parts.config();
    const replaced = new Set<BackendPool>();
    for (const entry of this.entries()) {
      const { pool } = entry;
      const database = databaseFor(config, pool.database);
      const isOthers = database?.user !== undefined && database.user !== pool.user && !entry.looksUpSecrets;
      if (database === undefined || isOthers) {
        entry.isOutdated = true;
        continue;
      }
      const isOther = policyKey(old, entry.database, pool.user) !== policyKey(config, database, pool.user);
      if (this.#bringUpToDate(entry, database, reconnectAll, isOther)) replaced.add(pool);
    }
    return replaced;
  }

  /** Answers whether its connections lead elsewhere now, or in another way. */
  #bringUpToDate(
    entry: PoolEntry,
    database: DatabaseConfig,
    isElsewhere: boolean,
    isOther: boolean,
  ): boolean {
    const { pool, database: was, isOutdated } = entry;
    const { user } = pool;
    entry.isOutdated = false;
    entry.database = database;
    if (serverOf(was) !== serverOf(database)) {
      entry.leases.leave();
      entry.leases = this.#leasesFor(database, user, () => pool.hasClients);
    }
    const leadsElsewhere =
      isElsewhere || isOutdated || needsOtherServers({ ...was, user }, { ...database, user });
    pool.change(
      this.#planFor(database, user, entry.leases, () => entry),
      leadsElsewhere || isOther,
    );
    return leadsElsewhere;
  }

  /** Pools that nobody has used for long, or will ever use again, and that have nothing left. */
  forget(isInUse: (pool: BackendPool) => boolean, idleMs: (entry: PoolEntry) => number): void {
    const now = systemClock.coarse();
    for (const entry of this.entries()) {
      const { pool, isOutdated, database } = entry;
      if (isOutdated && !isInUse(pool) && pool.waiting === 0 && pool.idle > 0) pool.reconnect();
      const isStillUsed = isInUse(pool) || isUsed(entry);
      if (isStillUsed) entry.usedAt = now;
      const usual = idleMs(entry);
      const limit = this.isUnproven(database, pool.user) ? Math.min(usual || unprovenMs, unprovenMs) : usual;
      const isLongUnused = limit > 0 && now - entry.usedAt >= limit;
      if (isOutdated ? !isStillUsed : isLongUnused) this.#forget(entry);
    }
  }

  #forget({ pool, leases }: PoolEntry): void {
    const { database, user } = pool;
    const ofDatabase = this.#entries.get(database);
    ofDatabase?.delete(user);
    if (ofDatabase?.size === 0) this.#entries.delete(database);
    this.#parts.forgotten(pool);
    leases.leave();
    pool.drain(systemClock.coarse(), () => {});
  }

  #planFor(
    database: DatabaseConfig,
    user: string,
    leases: BudgetLeases,
    entry: () => PoolEntry | undefined,
  ): BackendPoolPlan {
    const config = this.#parts.config();
    const { pooling, timeouts, limits } = config;
    const server = this.#serverPlan(database, user, entry);
    const keepsSettings = isDsql(database) && config.dsql.keepSettings;
    return {
      limits: poolSettingsFor(config, database, user),
      policy: this.#policyOf(config, database, user, leases),
      open: this.#noting(leases, this.#openerFor(database, user, server)),
      checkQuery: checkQueryOf(config) ?? '',
      resetQuery: pooling.serverResetQuery,
      isDsql: isDsql(database),
      keepsSettings,
      resetsAlways: pooling.serverResetQueryAlways,
      checksAlways: pooling.sessionCheck === 'always',
      cleaningTimeoutMs: pooling.serverCleaningTimeout,
      cancelTimeoutMs: timeouts.cancelWaitTimeout,
      followsStatements: pooling.maxPreparedStatements > 0,
      mostStatements: server.mostStatements,
      preparesUnnamed: pooling.prepareUnnamed && pooling.maxPreparedStatements > 0,
      defersBegin: pooling.deferBegin,
      multiplex: keepsSettings ? undefined : multiplexPlanOf(config),
      mostStatementBytes: limits.maxPoolStatementsSize,
      mostParameterBytes: limits.maxServerParametersSize,
      reservedRatio: config.fairShares.reservedRatio,
      shortage: () => leases.shortage,
    };
  }

  #policyOf(config: PoolerConfig, database: DatabaseConfig, user: string, leases: BudgetLeases): PoolPolicy {
    const rateLimiter = this.#parts.rateLimiterOf(database);
    const read = new OptionReader({ ...policyFor(config, database, user), leases, rateLimiter });
    const policy = readPolicy(read, false);
    read.throwIfAnyProblem();
    return policy;
  }

  #serverPlan(database: DatabaseConfig, user: string, entry: () => PoolEntry | undefined): ServerPlan {
    const { config, serverTls, auth } = this.#parts;
    const { pooling, tcp, limits, auth: authSettings } = config();
    const { host, port, loadBalanceHosts, connectQuery, targetSessionAttrs } = database;
    return {
      hosts: new ServerHosts(host, port, loadBalanceHosts === 'round-robin'),
      tls: serverTls.tlsOf(serverTlsFor(config(), database)),
      keepAlive: keepAliveOf(tcp),
      tuning: tuningOf(tcp),
      connectTimeoutMs: pooling.serverConnectTimeout,
      user,
      parameters: startupParametersOf(database),
      credentials: () => this.#credentialsFor(database, user, entry()),
      keys: auth().keys,
      allowUnencryptedPasswords: authSettings.allowUnencryptedPasswords,
      connectQuery,
      connectQueryFailed: (error) => entry()?.pool.onConnectQueryFailed?.(error),
      target: targetSessionAttrs,
      mostStatements: Math.max(1, pooling.maxPreparedStatements),
      mostStatementBytes: limits.maxServerStatementsSize,
      mostParameterBytes: limits.maxServerParametersSize,
      settings: this.#settings.none,
      entered: (backend) => this.#parts.entered(database, backend),
    };
  }

  #openerFor({ iam, region }: DatabaseConfig, user: string, server: ServerPlan): OpenBackend {
    const { makeIamToken } = this.#parts;
    if (iam === 'none') return (opening) => openBackend(server, opening);
    return openerWithTokens(server, { iam, region, user, makeToken: makeIamToken ?? noTokens });
  }

  /** Whoever has to know of a connection is told before anyone uses it. */
  #noting(leases: BudgetLeases, open: OpenBackend): OpenBackend {
    const { notes } = this.#parts;
    if (notes === undefined) return open;
    return async (opening) => {
      opening.onProgress = () => notes.dialing(opening, leases);
      try {
        const backend = await open(opening);
        notes.opened(backend, leases);
        return backend;
      } catch (error) {
        notes.dialEnded(opening, leases);
        throw error;
      }
    };
  }

  /** The database's own, then those of the lists, then what a client has shown. */
  async #credentialsFor(
    database: DatabaseConfig,
    user: string,
    { shownCredentials: shown, looksUpSecrets = false }: Partial<PoolEntry> = {},
  ): Promise<ServerCredentials> {
    const { auth } = this.#parts;
    const { user: owner, password } = database;
    const listed = credentialsOfSecret(auth().users.get(user));
    // Without a user it is for all, and auth_user's own is in the list.
    const isForUser = owner === undefined ? !looksUpSecrets || listed.kind === 'none' : owner === user;
    if (password !== undefined && isForUser) return { kind: 'password', password: password.reveal() };
    if (listed.kind === 'password' || (listed.kind !== 'none' && shown === undefined)) return listed;
    if (shown !== undefined && shown.kind !== 'none') return shown;
    // Who looks up secrets can't look up its own: it would have to be in first.
    if (owner !== user || looksUpSecrets) return listed;
    return credentialsOfSecret(await auth().secretsOf(database).lookup(user));
  }
}

/** A pool that no server has let in is kept for so long, for what it knows of a server that does not answer. */
const unprovenMs = 10_000;

/** Somebody waits for it, or it has connections, or will have. */
function isUsed({ pool }: PoolEntry): boolean {
  const { live, pending, closing } = pool.stats();
  return pool.hasClients || live + pending + closing + pool.leaving > 0;
}

/** What the engine has to be made anew for: all else is adjusted. */
function policyKey(config: PoolerConfig, database: DatabaseConfig, user: string): string {
  const { dialTimeout, maxLifetime, maxLifetimeJitter } = policyFor(config, database, user);
  return JSON.stringify([dialTimeout, maxLifetime, maxLifetimeJitter]);
}

function startupParametersOf(database: DatabaseConfig): ReadonlyMap<string, string> {
  const parameters = new Map([['database', database.dbname ?? database.name]]);
  const wanted = {
    client_encoding: database.clientEncoding,
    datestyle: database.datestyle,
    timezone: database.timezone,
    application_name: database.applicationName,
  };
  for (const [name, value] of Object.entries(wanted)) if (value !== undefined) parameters.set(name, value);
  return parameters;
}

function multiplexPlanOf({ pooling }: PoolerConfig): MultiplexPlan | undefined {
  const { multiplexDepth, multiplexStatements, multiplexLongest } = pooling;
  // What every client leaves is looked at or cleaned then, before the next one has the server.
  if (multiplexDepth <= 1 || pooling.serverResetQueryAlways || pooling.sessionCheck === 'always')
    return undefined;
  return {
    depth: multiplexDepth,
    sharesWrites: multiplexStatements === 'all',
    longestMs: multiplexLongest,
  };
}
