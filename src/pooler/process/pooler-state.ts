/** State of a running pooler: its configuration and what was made of it, its pools and its clients. */

import type { RateLimiter } from '../../core/rate-limiter.js';
import { systemClock } from '../../runtime/system.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import type { ScanRules } from '../../wire/scan-rules.js';
import { type ConnectionRates, LocalRates, ratesOf } from '../budgets/connection-rates.js';
import type { Fleet } from '../budgets/fleet.js';
import { quotasOf } from '../budgets/quotas.js';
import { type Budgets, ServerBudgets } from '../budgets/server-budgets.js';
import { ServerCapacity } from '../budgets/server-capacity.js';
import { ShareLog } from '../budgets/share-log.js';
import { CancelKeys } from '../clients/cancel-keys.js';
import { ClientLimits } from '../clients/client-limits.js';
import { Authenticator, AuthenticatorMemory } from '../clients/login/authenticator.js';
import type { ClientTls } from '../clients/login/negotiate-encryption.js';
import { clientTlsOf, filesOf, ServerTlsContexts } from '../clients/login/tls-contexts.js';
import type { ConnectedClient } from '../clients/relay/connected-client.js';
import type { ClientIdentity } from '../clients/relay/session-parts.js';
import { serverReplaced } from '../clients/session-errors.js';
import { diffConfig } from '../config/config-diff.js';
import { isDsql } from '../config/dialect.js';
import { serverOf } from '../config/fleet-settings.js';
import { serverTlsFor } from '../config/pool-settings.js';
import { type DatabaseConfig, type PoolerConfig, ruleFilesOf } from '../config/pooler-config.js';
import type { AdminSession } from '../console/admin-session.js';
import { type Counters, noCounters } from '../console/counters.js';
import type { RunState } from '../console/pooler-view.js';
import { ServingError } from '../errors.js';
import { noLog, type PoolerLog } from '../log.js';
import { LoginTally } from '../metrics/login-tally.js';
import { PoolSeries } from '../metrics/pool-series.js';
import { type Wording, wordings } from '../own-error.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { connectionIds } from '../servers/connection-ids.js';
import { type ConnectionLog, connectionLog } from '../servers/connection-log.js';
import type { MakeIamToken } from '../servers/iam-login.js';
import { pgbouncerLog } from '../servers/pgbouncer-log.js';
import { PoolQueries, QueryBook } from '../servers/query-stats.js';
import { logServers } from '../servers/server-log.js';
import { rulesOf } from './client-rules.js';
import { DepartedPools } from './departed-pools.js';
import { FileWatch, type WatchedFiles } from './file-watch.js';
import { lostPoolError } from './lost-pool-error.js';
import { NewPoolGates } from './new-pool-gate.js';
import type { PendingClient } from './pending-clients.js';
import { PoolRegistry } from './pool-registry.js';
import { SecretQueries } from './secret-queries.js';
import type { SharedParts } from './shared-parts.js';

/** Parts besides the configuration. */
export interface PoolerStateParts {
  readonly log?: PoolerLog;
  readonly makeIamToken?: MakeIamToken;
  /** Limits shared with other poolers. */
  readonly fleet?: Fleet | undefined;
  readonly shared?: SharedParts;
}

export class PoolerState {
  readonly log: PoolerLog;
  /** Log of connection events. */
  readonly connections: ConnectionLog;
  readonly pools: PoolRegistry;
  readonly sessions = new Set<ConnectedClient>();
  readonly consoles = new Map<AdminSession, PendingClient>();
  readonly pendingClients = new Set<PendingClient>();
  /** First bytes of clients that logged in during a suspend. */
  readonly #heldBack = new Map<ConnectedClient, Buffer>();
  /** Two gates: logins that wait for a secret must not wait behind those that have one and wait for a server. */
  readonly gates: { readonly secrets: NewPoolGates; readonly clients: NewPoolGates };
  readonly limits = new ClientLimits();
  readonly keys: CancelKeys;
  /** Parts shared with other processes; undefined for a single process. */
  readonly shared: SharedParts | undefined;
  readonly fleet: Fleet | undefined;
  readonly logins = new LoginTally();
  readonly departed = new DepartedPools();
  /** Series of pools in the metrics. */
  readonly series = new PoolSeries();
  /** Cancel requests that are being passed on, by peer id. */
  readonly peerRequests = new Map<number, number>();
  /** Console logins, and console commands. */
  consoleLogins = 0;
  consoleCommands = 0;
  /** Statistics of statements; undefined where they are turned off. */
  readonly queries: QueryBook | undefined;
  /** Reloads certificates, users and rules when they change on disk. */
  readonly files: FileWatch;
  readonly budgets: Budgets;
  readonly shareLog: ShareLog;
  readonly #rates: ConnectionRates;
  readonly pausedDatabases = new Set<string>();
  readonly disabledDatabases = new Set<string>();
  state: RunState = 'active';
  isShuttingDown = false;
  readonly #memory = new AuthenticatorMemory();
  /** Functions that end the log of each pool. */
  readonly #logs = new Map<BackendPool, () => void>();
  readonly #serverTls = new ServerTlsContexts();
  readonly #secrets: SecretQueries;
  #config: PoolerConfig;
  #auth: Authenticator;
  #clientTls: ClientTls | undefined;
  #rules: ScanRules;
  #whenEmpty: (() => void) | undefined;

  /** Throws a `ServingError` for anything unusable. */
  constructor(config: PoolerConfig, { log = noLog, makeIamToken, fleet, shared }: PoolerStateParts) {
    this.#config = config;
    this.log = log;
    const { compatibility } = config.admin;
    const currentConfig = (): PoolerConfig => this.#config;
    this.connections =
      compatibility === 'pgbouncer' ? pgbouncerLog(log, currentConfig) : connectionLog(log, currentConfig);
    const { queryStats } = config.observability;
    this.queries = queryStats === 0 ? undefined : new QueryBook(queryStats);
    this.shared = shared;
    this.fleet = fleet;
    if (shared !== undefined) connectionIds.upTo(shared.ids.largest);
    this.keys = new CancelKeys(shared?.ids, config.listen.peerId);
    this.files = new FileWatch(this.#watchedFiles(), log);
    this.#serverTls.use(this.#serverTls.prepare(serverTlsConfigs(config)));
    this.#auth = this.#readAuth(config);
    this.#clientTls = clientTlsOf(config.clientTls);
    this.#rules = rulesOf(config);
    this.shareLog = new ShareLog(log);
    this.#rates = shared?.rates ?? new LocalRates(ratesOf(config));
    this.budgets =
      shared?.budgets ??
      new ServerBudgets(
        quotasOf(config),
        (budget, rebalance) => this.shareLog.rebalanced(budget, rebalance),
        fleet,
      );
    shared?.budgets.change(quotasOf(config));
    const capacity = new ServerCapacity(this.budgets, () => this.#config.fairShares.headroom, log);
    this.pools = new PoolRegistry({
      config: () => this.#config,
      auth: () => this.#auth,
      budgets: () => this.budgets,
      rateLimiterOf: (database) => this.#rateLimiterOf(database),
      serverTls: this.#serverTls,
      makeIamToken,
      isPaused: (database) => this.isPaused(database),
      made: (pool) => {
        if (this.queries !== undefined)
          pool.queries = new PoolQueries(this.queries, pool.database, pool.user);
        this.#logs.set(pool, logServers(pool, this.connections.servers(pool.database, pool.user), log));
      },
      forgotten: (pool, wasLongUnused) => {
        if (wasLongUnused && this.isPgBouncer)
          this.log('info', `cleaning up idle pool: ${pool.database}/${pool.user}`);
        this.#forget(pool);
      },
      notes: shared?.budgets,
      entered: async (database, backend) => {
        await shared?.budgets.entered(backend);
        // DSQL's own settings say nothing about the capacity of a cluster.
        if (!isDsql(database)) await capacity.entered(serverOf(database), backend);
      },
    });
    this.gates = this.#makeGates();
    this.#secrets = new SecretQueries({
      config: currentConfig,
      gates: this.gates.secrets,
      pools: this.pools,
      log,
    });
  }

  #makeGates(): PoolerState['gates'] {
    const isUnproven = (database: DatabaseConfig, user: string): boolean =>
      !this.isPaused(database.name) && this.pools.isUnproven(database, user);
    const make = (): NewPoolGates => new NewPoolGates(isUnproven, () => this.#config.limits.maxNewPools);
    return { secrets: make(), clients: make() };
  }

  /** Connection rates of the servers that this process limits itself. */
  rateStats(): ReturnType<LocalRates['stats']> {
    return this.#rates instanceof LocalRates ? this.#rates.stats(systemClock.now()) : [];
  }

  /** The limit of the fleet, where there is one, replaces the local one. */
  #rateLimiterOf(database: DatabaseConfig): RateLimiter | undefined {
    const server = serverOf(database);
    const ofFleet = this.fleet?.rateLimiterOf(server);
    return ofFleet ?? (isDsql(database) ? this.#rates.limiterOf(server) : undefined);
  }

  get config(): PoolerConfig {
    return this.#config;
  }

  get consoleCounters(): Counters {
    const { consoleLogins: clientLogins, consoleCommands: queries } = this;
    return { ...noCounters, clientLogins, queries, transactions: queries };
  }

  /** Behaves as PgBouncer does, even where that is worse. */
  get isPgBouncer(): boolean {
    return this.#config.admin.compatibility === 'pgbouncer';
  }

  /** Wording of the pooler's own errors for clients. */
  get wording(): Wording {
    return wordings[this.#config.admin.compatibility];
  }

  get auth(): Authenticator {
    return this.#auth;
  }

  get clientTls(): ClientTls | undefined {
    return this.#clientTls;
  }

  /** Limits for client messages. */
  get rules(): ScanRules {
    return this.#rules;
  }

  /** A client has disconnected. */
  left(session: ConnectedClient): void {
    this.sessions.delete(session);
    this.#heldBack.delete(session);
    if (this.sessions.size === 0) this.#whenEmpty?.();
  }

  /** Suspends a client that logs in during a suspend: nothing it sends or has sent is read until `resumeClients()`. */
  holdBack(session: ConnectedClient, sent: Buffer): void {
    session.suspend();
    if (sent.length > 0) this.#heldBack.set(session, sent);
  }

  /** Reads from clients again. */
  resumeClients(): void {
    const heldBack = [...this.#heldBack];
    this.#heldBack.clear();
    for (const session of this.sessions) session.resume();
    // Its next bytes come in a later turn of the event loop.
    for (const [session, sent] of heldBack) session.bytesCame(sent, 0, sent.length);
  }

  #forget(pool: BackendPool): void {
    this.departed.add(pool);
    this.series.forgotten(pool);
    this.#logs.get(pool)?.();
    this.#logs.delete(pool);
  }

  /** Stops everything. */
  close(): void {
    this.budgets.stop();
    for (const stop of this.#logs.values()) stop();
    this.#logs.clear();
  }

  /** Calls `then` when no client is left, at once or later. */
  onceEmpty(then: () => void): void {
    if (this.sessions.size === 0) then();
    else this.#whenEmpty = then;
  }

  /** The next id, for clients with and without a session. */
  nextId(): number {
    return connectionIds.next((id) => this.#isTaken(id));
  }

  /** A client may stay connected for as long as it takes to give out all ids once. */
  #isTaken(id: number): boolean {
    for (const { identity } of this.sessions) if (identity.id === id) return true;
    for (const pending of this.consoles.values()) if (pending.id === id) return true;
    return false;
  }

  /** Applies another configuration, or throws and keeps the old one. */
  change(next: PoolerConfig): void {
    const old = this.#config;
    const diff = diffConfig(old, next);
    const { config } = diff;
    const clientTls = this.#nextClientTls(config);
    const serverTls = this.#serverTls.prepare(serverTlsConfigs(config));
    const auth = this.#reloadAuth(config);
    this.#serverTls.use(serverTls);
    this.#config = config;
    this.#clientTls = clientTls;
    this.#auth = auth;
    this.#rules = rulesOf(config);
    this.budgets.change(quotasOf(config));
    const replaced = this.pools.change(diff, old);
    for (const session of this.sessions) this.#reconsider(session, replaced);
  }

  /** As in PgBouncer, settings that do not fit together, such as half a pair of files, leave the present TLS in use. */
  #nextClientTls({ clientTls, admin }: PoolerConfig): ClientTls | undefined {
    try {
      return clientTlsOf(clientTls);
    } catch (error) {
      if (admin.compatibility !== 'pgbouncer') throw error;
      const why = `TLS configuration could not be reloaded, keeping old configuration: ${(error as Error).message}`;
      this.log('error', why);
      return this.#clientTls;
    }
  }

  #reconsider(session: ConnectedClient, replaced: ReadonlySet<BackendPool>): void {
    const { identity, pool, mode, backend } = session;
    const lostPool = this.lostPoolError(identity, pool);
    const keepsReplaced = mode === 'session' && backend !== undefined && replaced.has(pool);
    if (lostPool !== undefined) session.endWhenIdle(lostPool);
    else if (keepsReplaced && this.#config.pooling.serverFastClose) session.endWhenIdle(serverReplaced);
  }

  /** Error for a client whose pool the configuration no longer leads to. */
  lostPoolError(
    client: Pick<ClientIdentity, 'user' | 'database'>,
    pool: BackendPool,
  ): ErrorFields | undefined {
    return lostPoolError(this.#config, client, pool);
  }

  #watchedFiles(): WatchedFiles[] {
    return [
      {
        what: 'TLS with clients',
        files: () => (this.#config.clientTls.mode === 'disable' ? [] : filesOf(this.#config.clientTls)),
        read: () => {
          this.#clientTls = clientTlsOf(this.#config.clientTls);
        },
      },
      {
        what: 'TLS with servers',
        files: () => serverTlsConfigs(this.#config).flatMap(filesOf),
        read: () => this.#serverTls.readAgain(),
      },
      {
        what: 'users and rules',
        files: () => {
          const { hbaFile, identFile } = ruleFilesOf(this.#config);
          return [this.#config.auth.file, hbaFile, identFile];
        },
        read: () => {
          this.#auth = this.#readAuth(this.#config);
        },
      },
    ];
  }

  #readAuth(config: PoolerConfig): Authenticator {
    const auth = new Authenticator(
      config,
      this.#memory,
      (query, user) => this.#secrets.ask(query, user),
      (database) => this.disabledDatabases.has(database),
      (text) => this.log('warn', text),
    );
    void auth.deriveKeys();
    return auth;
  }

  /** As with PgBouncer, a file that has become unusable is ignored, and its previous content stays in use. */
  #reloadAuth(config: PoolerConfig): Authenticator {
    try {
      return this.#readAuth(config);
    } catch (error) {
      if (!this.isPgBouncer || !(error instanceof ServingError)) throw error;
      for (const line of error.message.split('\n')) this.log('error', line);
      this.log('error', 'users and rules not reloaded', { kept: 'former users and rules' });
      return this.#auth;
    }
  }

  /** True where only `*` matches the database and it was not used lately. */
  isNewDatabase(name: string): boolean {
    if (this.#config.databases.has(name)) return false;
    for (const { database } of this.pools.pools()) if (database === name) return false;
    return true;
  }

  /** True if the database is paused, by itself or with all others. */
  isPaused(database: string): boolean {
    return this.state === 'paused' || this.pausedDatabases.has(database);
  }
}

function serverTlsConfigs(config: PoolerConfig): PoolerConfig['serverTls'][] {
  return Array.from(config.databases.values(), (database) => serverTlsFor(config, database));
}
