/** Pools by database and user: made when needed, changed with the configuration, and forgotten when unused. */
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
import { BackendPool } from '../servers/backend-pool.js';
import type { BackendPoolPlan, MultiplexPlan } from '../servers/backend-pool-plan.js';
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
  /** Limits the opening of connections to a database's server; undefined: no limit. */
  readonly rateLimiterOf: (database: DatabaseConfig) => RateLimiter | undefined;
  /** Notified of every server connection that is opening or open, where another process has to know. */
  readonly notes?: ServerNotes | undefined;
  readonly serverTls: ServerTlsContexts;
  readonly makeIamToken: MakeIamToken | undefined;
  readonly isPaused: (database: string) => boolean;
  /** A pool was made. */
  readonly made: (pool: BackendPool) => void;
  /** A pool was removed; its counters are final. `wasLongUnused`: by the timeout for idle pools. */
  readonly forgotten: (pool: BackendPool, wasLongUnused: boolean) => void;
  /** A server has accepted a connection. Rejects if the connection can't be used. */
  readonly entered: (database: DatabaseConfig, backend: Backend) => Promise<void>;
}

/** A pool, and the state kept beside it. */
export class PoolEntry {
  readonly pool: BackendPool;
  readonly known = new KnownValues();
  database: DatabaseConfig;
  /** Leases that the pool needs before it opens a server connection. */
  leases: BudgetLeases;
  /** Credentials of the last client that logged in, if they are valid for the server. */
  shownCredentials: ServerCredentials | undefined;
  /** The pool of auth_user, which looks up the secrets of others. */
  looksUpSecrets = false;
  usedAt = systemClock.coarse();
  /** The configuration no longer leads to this pool. It stays unchanged for its remaining clients, and is closed after them. */
  isOutdated = false;
  /** Connections that are being opened. */
  #dials = 0;
  #onQuiet: (() => void)[] = [];

  constructor(pool: BackendPool, database: DatabaseConfig, leases: BudgetLeases) {
    this.pool = pool;
    this.database = database;
    this.leases = leases;
  }

  dialBegan(): void {
    this.#dials++;
  }

  dialEnded(): void {
    this.#dials--;
    if (this.#dials === 0) for (const call of this.#onQuiet.splice(0)) call();
  }

  /** Calls back as soon as no connection is being opened, which may be at once. */
  whenQuiet(call: () => void): void {
    if (this.#dials === 0) call();
    else this.#onQuiet.push(call);
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

  /** The number of pools. */
  get size(): number {
    let size = 0;
    for (const ofDatabase of this.#entries.values()) size += ofDatabase.size;
    return size;
  }

  *pools(): IterableIterator<BackendPool> {
    for (const { pool } of this.entries()) yield pool;
  }

  /** The pool of a server user in a database. */
  get(database: DatabaseConfig, user: string): PoolEntry {
    const ofDatabase = this.#entries.get(database.name) ?? new Map<string, PoolEntry>();
    this.#entries.set(database.name, ofDatabase);
    const entry = ofDatabase.get(user) ?? this.#make(database, user);
    ofDatabase.set(user, entry);
    if (entry.isOutdated) this.#bringUpToDate(entry, database, false, false);
    entry.usedAt = systemClock.coarse();
    return entry;
  }

  /** True if no server has accepted such a pool yet, so that a client may have invented its name. */
  isUnproven(database: DatabaseConfig, user: string): boolean {
    const { databases } = this.#parts.config();
    if (databases.get(database.name)?.user === user) return false;
    return this.#entries.get(database.name)?.get(user)?.pool.parameters === undefined;
  }

  /** The server has accepted the pool once, and now refuses it for good: its database or user was dropped there. */
  #isRefused({ pool, database }: PoolEntry): boolean {
    const { dialError } = pool;
    if (dialError === undefined || !isDefiniteRefusal(dialError)) return false;
    return this.#parts.config().databases.get(database.name)?.user !== pool.user;
  }

  /** A server has refused the pool. It is forgotten at once if it was never accepted and has no other waiters. */
  refused(entry: PoolEntry, error: unknown): void {
    if (error instanceof Error && isDefiniteRefusal(error)) this.#forgetUnproven(entry);
  }

  /** A client has left before a server was asked about the pool: nothing is known that would be worth keeping. */
  abandoned(entry: PoolEntry): void {
    if (entry.pool.dialError === undefined) this.#forgetUnproven(entry);
  }

  #forgetUnproven(entry: PoolEntry): void {
    const { pool, database } = entry;
    const isPresent = this.#entries.get(pool.database)?.get(pool.user) === entry;
    if (isPresent && this.isUnproven(database, pool.user) && !isUsed(entry)) this.#forget(entry, false);
  }

  /** The pool in which this user looks up the secrets of others; it need not be the database's user. */
  getForSecrets(database: DatabaseConfig, user: string): PoolEntry {
    const entry = this.get(database, user);
    entry.looksUpSecrets = true;
    return entry;
  }

  /** Makes the pools that keep connections open before a client connects, as configured. */
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

  /** Applies another configuration. Returns the pools whose connections are to be replaced. */
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

  /** Returns whether connections now go to another server or are opened in another way. */
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

  /** Forgets a pool that is empty, and unused for long or never to be used again. `idleMs`: what is long; 0: never. */
  forgetIfUnused(entry: PoolEntry, isInUse: boolean, idleMs: number): void {
    const { pool, isOutdated, database } = entry;
    if (isOutdated && !isInUse && pool.waiting === 0 && pool.idle > 0) pool.reconnect();
    const now = systemClock.coarse();
    const isStillUsed = isInUse || isUsed(entry);
    if (isStillUsed) entry.usedAt = now;
    const isDoubtful = this.isUnproven(database, pool.user) || this.#isRefused(entry);
    const limit = isDoubtful ? Math.min(idleMs || unprovenMs, unprovenMs) : idleMs;
    const isLongUnused = limit > 0 && now - entry.usedAt >= limit;
    if (isOutdated ? !isStillUsed : isLongUnused) this.#forget(entry, !isOutdated);
  }

  #forget({ pool, leases }: PoolEntry, wasLongUnused: boolean): void {
    const { database, user } = pool;
    const ofDatabase = this.#entries.get(database);
    ofDatabase?.delete(user);
    if (ofDatabase?.size === 0) this.#entries.delete(database);
    this.#parts.forgotten(pool, wasLongUnused);
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
      open: this.#watching(entry, this.#noting(leases, this.#openerFor(database, user, server))),
      checkQuery: checkQueryOf(config) ?? '',
      closeReplacedAfterMs: config.admin.compatibility === 'pgbouncer' ? pgbouncerPeriodMs : 0,
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

  /** Notes when dials end: the clients that caused one may have left, and then no other part sees that the server has refused it. */
  #watching(entryOf: () => PoolEntry | undefined, open: OpenBackend): OpenBackend {
    return async (opening) => {
      const entry = entryOf();
      entry?.dialBegan();
      try {
        return await open(opening);
      } catch (error) {
        // The engine comes first: until then the dial counts as a use of the pool.
        if (entry !== undefined) setImmediate(() => this.refused(entry, error));
        throw error;
      } finally {
        if (entry !== undefined) setImmediate(() => entry.dialEnded());
      }
    };
  }

  /** Notifies the other process of a connection before its first use. */
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

  /** Credentials by precedence: the database's own, those of the lists, those of a client. */
  async #credentialsFor(
    database: DatabaseConfig,
    user: string,
    { shownCredentials: shown, looksUpSecrets = false }: Partial<PoolEntry> = {},
  ): Promise<ServerCredentials> {
    const { auth } = this.#parts;
    const { user: owner, password } = database;
    const listed = credentialsOfSecret(auth().users.get(user));
    // Without a user, the password is for all users. The one of auth_user is in the list.
    const isForUser = owner === undefined ? !looksUpSecrets || listed.kind === 'none' : owner === user;
    if (password !== undefined && isForUser) return { kind: 'password', password: password.reveal() };
    if (listed.kind === 'password' || (listed.kind !== 'none' && shown === undefined)) return listed;
    if (shown !== undefined && shown.kind !== 'none') return shown;
    // The pool that looks up secrets can't look up its own, since it would have to log in first.
    if (owner !== user || looksUpSecrets) return listed;
    return credentialsOfSecret(await auth().secretsOf(database).lookup(user));
  }
}

/** Time for which an unproven pool is kept, for what it knows of a server that does not answer. */
const unprovenMs = 10_000;

/** PgBouncer looks for connections to close three times a second, and has answered RELOAD by then. */
const pgbouncerPeriodMs = 333;

/** The pool has waiters or connections, or is opening some. */
function isUsed({ pool }: PoolEntry): boolean {
  return pool.hasClients || !pool.isEmpty;
}

/** Options that need a new engine; all others are adjusted. */
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
  // In these modes the session is checked or cleaned after every client, before the next one has the server.
  if (multiplexDepth <= 1 || pooling.serverResetQueryAlways || pooling.sessionCheck === 'always')
    return undefined;
  return {
    depth: multiplexDepth,
    sharesWrites: multiplexStatements === 'all',
    longestMs: multiplexLongest,
  };
}
