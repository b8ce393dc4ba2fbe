/** Logs clients in: checks limits, finds the pool and determines the session's parameters. */

import type { Transport } from '../../net/transport.js';
import { asError } from '../../runtime/promise-dialer.js';
import { systemClock } from '../../runtime/system.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Login, LoginTools } from '../auth/client-authentication.js';
import { credentialsOfLogin } from '../auth/pass-through.js';
import { loginFailureOf, ownErrorReasonOf } from '../clients/failure-words.js';
import type { AuthRequirement } from '../clients/login/authenticator.js';
import {
  type Admission,
  type Applicant,
  type HandshakeHost,
  type Replication,
  runStartupHandshake,
} from '../clients/login/startup-handshake.js';
import { needsTls } from '../clients/login/tls-contexts.js';
import { nothingRead } from '../clients/read-ahead.js';
import { noDatabase, Refusal, shown } from '../clients/refusal.js';
import { ClientSession } from '../clients/relay/client-session.js';
import type { ConnectedClient } from '../clients/relay/connected-client.js';
import { ReplicationSession } from '../clients/relay/replication-session.js';
import type { SessionParts } from '../clients/relay/session-parts.js';
import { fatal, refusalOf, shuttingDown } from '../clients/session-errors.js';
import { resolveStartup, type StartupSettings, startupAsBefore } from '../clients/startup-settings.js';
import { clientLimitsFor, limitsForClient, type PoolSettings } from '../config/pool-settings.js';
import {
  consoleDatabases,
  type DatabaseConfig,
  databaseFor,
  type UserConfig,
} from '../config/pooler-config.js';
import { poolerParameters } from '../console/driver-settings.js';
import { BackendRefusedError } from '../errors.js';
import { alsoAs } from '../own-error.js';
import type { Backend } from '../servers/backend.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { borrow } from '../servers/borrow.js';
import type { LoggedClient } from '../servers/connection-log.js';
import { openReplication, type ReplicationServer } from '../servers/open-replication.js';
import { serveCancelRequest } from './cancel-by-key.js';
import { takePlace } from './client-places.js';
import { ConsoleLogin, type ToolsFor } from './console-login.js';
import type { PendingClient } from './pending-clients.js';
import type { PoolEntry } from './pool-registry.js';
import type { PoolerState } from './pooler-state.js';

const applicationName = 'application_name';

/** Login timeout while few file descriptors are left, which are needed for the console and for servers. */
const shortLoginMs = 1_000;

/** Learning a session's parameters leaves the server connection as it was. */
const isUncounted = true;

/** Time that a login waits for a server that could check its startup settings. */
const patienceMs = 250;

const noFiles = fatal(
  SqlState.tooManyConnections,
  'the pooler has no files left for another connection',
  'Raise the limit of open files of its process, or close connections.',
);

export class ClientLogins {
  readonly #pooler: PoolerState;
  readonly #console: ConsoleLogin;
  /** Refusals that the server caused, whatever error it has sent. */
  readonly #withoutServer = new WeakSet<Refusal>();

  constructor(pooler: PoolerState, toolsFor: ToolsFor) {
    this.#pooler = pooler;
    this.#console = new ConsoleLogin(pooler, toolsFor);
  }

  /** A connection was accepted. `hasRoom`: file descriptors are left. */
  connected(transport: Transport, hasRoom: boolean, readAhead = nothingRead): void {
    const pooler = this.#pooler;
    const pending: PendingClient = {
      id: pooler.nextId(),
      transport,
      connectedAt: Date.now() - readAhead.waitedMs,
    };
    pooler.pendingClients.add(pending);
    void runStartupHandshake(transport, this.#hallFor(pending, hasRoom), readAhead);
  }

  #hallFor(pending: PendingClient, hasRoom: boolean): HandshakeHost {
    const pooler = this.#pooler;
    const { config, auth } = pooler;
    const { clientLoginTimeout } = config.timeouts;
    return {
      tls: pooler.clientTls,
      needsTls: needsTls(config.clientTls),
      loginTimeoutMs: hasRoom
        ? clientLoginTimeout
        : Math.min(clientLoginTimeout || shortLoginMs, shortLoginMs),
      refusesUntracked: pooler.isPgBouncer,
      ignoredParameters: config.pooling.ignoreStartupParameters,
      trackedParameters: config.pooling.trackExtraParameters,
      checkRoom: (isConsole) => {
        if (isConsole) return;
        if (!hasRoom) throw new Refusal(noFiles);
        if (pooler.isShuttingDown) throw new Refusal(shuttingDown);
        pooler.limits.checkTotal(config.limits.maxClientConn);
      },
      requirementOf: (applicant) => this.#requirementOf(applicant, pending),
      // The console is no database of a server, even where `*` is configured.
      loginTools: ({ database, isConsole }): LoginTools =>
        auth.toolsFor(isConsole ? undefined : databaseFor(config, database), isConsole),
      admit: (applicant, login) =>
        applicant.isConsole
          ? this.#console.admit(applicant, pending)
          : this.#admit(applicant, login, pending),
      cancel: (request) => serveCancelRequest(pooler, request, pending),
      refused: (why) => this.#refused(pending, why),
      over: () => pooler.pendingClients.delete(pending),
      word: pooler.wording,
    };
  }

  #requirementOf(
    { transport, user, database, isConsole, settings, scope, replication }: Applicant,
    pending: PendingClient,
  ): AuthRequirement {
    const pooler = this.#pooler;
    pending.transport = transport;
    pending.loginScope = scope;
    pending.user = user;
    pending.database = database;
    pending.applicationName = settings.get(applicationName) ?? '';
    if (replication !== undefined) pending.replication = replication.kind;
    pooler.connections.loginBegan(pending);
    if (isConsole && this.#console.isOwnUser(user, transport)) return { method: 'trust', map: undefined };
    return pooler.auth.requirementOf({
      user,
      database,
      otherNames: isConsole ? consoleDatabases : [],
      isReplication: replication?.kind === 'physical',
      isUnix: transport.isUnix,
      isEncrypted: transport.tls !== undefined,
      address: transport.remoteAddress,
    });
  }

  #admit(applicant: Applicant, login: Login, pending: PendingClient): Admission | Promise<Admission> {
    const pooler = this.#pooler;
    const database = databaseFor(pooler.config, applicant.database);
    if (database === undefined) throw noDatabase(applicant.database);
    if (pooler.disabledDatabases.has(database.name)) throw disabled(database.name);
    if (pooler.isNewDatabase(database.name)) pooler.connections.databaseFound(pending);
    const { maxUserClientConnections, maxDbClientConnections } = clientLimitsFor(
      pooler.config,
      database,
      applicant.user,
    );
    const leave = takePlace(pooler, applicant.user, database.name, {
      total: pooler.config.limits.maxClientConn,
      ofUser: maxUserClientConnections,
      ofDatabase: maxDbClientConnections,
    });
    const enter = (taken: () => void): Admission | Promise<Admission> =>
      this.#enter(database, applicant, login, pending, taken);
    return leave instanceof Promise ? leave.then(enter) : enter(leave);
  }

  #enter(
    database: DatabaseConfig,
    applicant: Applicant,
    login: Login,
    pending: PendingClient,
    leave: () => void,
  ): Admission | Promise<Admission> {
    try {
      const admission =
        this.#admitAtOnce(database, applicant, login, pending, leave) ??
        this.#admitTo(database, applicant, login, pending, leave);
      if (!(admission instanceof Promise)) return admission;
      return admission.catch((error: unknown) => {
        leave();
        throw error;
      });
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Admits a client as others before it, to a pool that works; undefined where anything has to be waited for. */
  #admitAtOnce(
    database: DatabaseConfig,
    applicant: Applicant,
    login: Login,
    pending: PendingClient,
    leave: () => void,
  ): Admission | undefined {
    const { pools, config } = this.#pooler;
    const user = database.user ?? applicant.user;
    if (applicant.replication !== undefined || config.pooling.applicationNameAddHost) return undefined;
    if (pools.isUnproven(database, user)) return undefined;
    const entry = pools.get(database, user);
    const { pool, known } = entry;
    if (pool.outage !== undefined || pool.isFailing) return undefined;
    const startup = startupAsBefore(pool, known, applicant.settings);
    if (startup === undefined) return undefined;
    noteCredentials(entry, database, login);
    this.#expectStillWelcome(entry, applicant);
    return this.#admission(applicant, pending, entry, startup, leave, undefined);
  }

  async #admitTo(
    database: DatabaseConfig,
    applicant: Applicant,
    login: Login,
    pending: PendingClient,
    leave: () => void,
  ): Promise<Admission> {
    const { pools } = this.#pooler;
    const user = database.user ?? applicant.user;
    const leaveGate = await this.#pooler.gates.clients.enter(database, user, applicant.scope);
    const entry = pools.get(database, user);
    let server: ReplicationServer | undefined;
    try {
      noteCredentials(entry, database, login);
      if (applicant.replication !== undefined)
        server = await this.#openReplication(applicant, applicant.replication, entry, pending);
      const startup = await this.#startupOf(applicant, entry, pending, server);
      applicant.scope.throwIfOver();
      this.#expectStillWelcome(entry, applicant);
      return this.#admission(applicant, pending, entry, startup, leave, server);
    } catch (error) {
      server?.stream.close();
      pools.refused(entry, error);
      if (error instanceof Refusal || applicant.scope.isOver) throw error;
      this.#expectStillWelcome(entry, applicant);
      const why = asError(error);
      const told = refusalOf(entry.pool, why);
      const isRefusal = applicant.replication !== undefined && why instanceof BackendRefusedError;
      const refusal = new Refusal(isRefusal ? alsoAs('login failed', told) : told, why.message);
      this.#withoutServer.add(refusal);
      throw refusal;
    } finally {
      // A client that hangs up leaves a dial behind, which counts among the names that are tried.
      if (leaveGate !== undefined)
        entry.whenQuiet(() => {
          leaveGate();
          if (applicant.scope.isOver) pools.abandoned(entry);
        });
    }
  }

  /** Since the login began, a reload or a shutdown may have started. */
  #expectStillWelcome({ pool }: PoolEntry, applicant: Applicant): void {
    const lostPool = this.#pooler.isShuttingDown ? shuttingDown : this.#pooler.lostPoolError(applicant, pool);
    if (lostPool !== undefined) throw new Refusal(lostPool);
  }

  async #startupOf(
    { settings, scope, transport }: Applicant,
    { pool, known }: PoolEntry,
    pending: PendingClient,
    server: ReplicationServer | undefined,
  ): Promise<StartupSettings> {
    // A server connection of its own has begun with them.
    if (server !== undefined) return ownStartup(pool, server);
    let wanted = settings;
    if (this.#pooler.config.pooling.applicationNameAddHost) {
      const { remoteAddress, remotePort } = transport;
      const name = settings.get(applicationName) ?? 'app';
      wanted = new Map(settings).set(applicationName, `${name} - ${remoteAddress}:${remotePort}`);
    }
    const timeoutMs = pool.limits.queryWaitTimeout || Number.POSITIVE_INFINITY;
    // As with PgBouncer, new clients also wait while the server is unreachable.
    const isPatient = this.#pooler.isPgBouncer;
    const wait = async <T>(use: (backend: Backend) => Promise<T>): Promise<T> => {
      pending.waitsFor = { pool, since: systemClock.now() };
      try {
        return await borrow(pool, { timeoutMs, signal: scope.signal, isPatient, isUncounted }, use);
      } finally {
        pending.waitsFor = undefined;
      }
    };
    // Connected clients wait for the server; refuse new ones.
    const { outage } = pool;
    if (outage !== undefined && !isPatient) throw outage;
    if (pool.isFailing) await wait(async () => {});
    return resolveStartup(pool, known, wanted, {
      wait,
      waitShortly: async (use) => {
        const patience = AbortSignal.timeout(patienceMs);
        const signal = AbortSignal.any([scope.signal, patience]);
        try {
          return await borrow(pool, { timeoutMs, signal, isUncounted }, use);
        } catch (error) {
          if (error === patience.reason) return undefined;
          throw error;
        }
      },
    });
  }

  /** Waits for a place in the pool as any client, and longer than the login only if that is so configured. */
  async #openReplication(
    { settings, scope }: Applicant,
    { word }: Replication,
    { pool }: PoolEntry,
    pending: PendingClient,
  ): Promise<ReplicationServer> {
    const isPatient = this.#pooler.isPgBouncer;
    const { outage } = pool;
    if (outage !== undefined && !isPatient) throw outage;
    const timeoutMs = pool.limits.queryWaitTimeout || Number.POSITIVE_INFINITY;
    const parameters = new Map(settings).set('replication', word);
    pending.waitsFor = { pool, since: systemClock.now() };
    try {
      return await openReplication(pool, { timeoutMs, signal: scope.signal, isPatient }, parameters);
    } finally {
      pending.waitsFor = undefined;
    }
  }

  #admission(
    { user, database, hasLongKeys, transport, replication }: Applicant,
    { id, connectedAt }: PendingClient,
    { pool }: PoolEntry,
    startup: StartupSettings,
    leave: () => void,
    server: ReplicationServer | undefined,
  ): Admission {
    const pooler = this.#pooler;
    const client = { id, user, database, transport, connectedAt };
    let session: ConnectedClient | undefined;
    const key = pooler.keys.register({ cancel: async () => session?.cancel() }, hasLongKeys);
    let isLogged = false;
    const ending = (why: string): void => {
      if (!isLogged) pooler.connections.disconnected(client, why);
      isLogged = true;
    };
    const ended = (why: string): void => {
      leave();
      pooler.keys.forget(key);
      pool.clients--;
      pooler.left(session as ConnectedClient);
      ending(why);
    };
    const begin = (rest: Buffer): void => {
      const parts: SessionParts = {
        identity: { id, user, database, connectedAt },
        transport,
        pool,
        mode: pool.limits.poolMode,
        rules: pooler.rules,
        startup,
        refusesSimpleQueries: pooler.config.pooling.disableSimpleQuery,
        bounds: pooler.config.limits,
        limits: limitsOf(pool, user, () => pooler.config.users.get(user)),
        ending,
        ended,
        failed: (error) => this.#failed(client, pool, error),
        word: pooler.wording,
      };
      session =
        server === undefined || replication === undefined
          ? new ClientSession(parts)
          : new ReplicationSession(parts, server, replication.kind);
      pooler.sessions.add(session);
      pool.clients++;
      pool.tally.logins++;
      pooler.logins.succeeded++;
      for (const what of pool.plan.keepsSettings ? startup.kept.keys() : []) pool.swallowed(what);
      pooler.connections.connected(client);
      if (pooler.state === 'suspended') pooler.holdBack(session, rest);
      else if (rest.length > 0) session.bytesCame(rest, 0, rest.length);
    };
    const { maxPreparedStatements } = pooler.config.pooling;
    const told = server?.backend.parameters ?? startup.told;
    const parameters = pooler.isPgBouncer
      ? new Map([...told, ...poolerParameters(pool.limits.poolMode, maxPreparedStatements)])
      : told;
    return { parameters, key, notice: noticeOf(pooler.config.admin.loginNotifyMessage), begin };
  }

  #refused(pending: PendingClient, why: Refusal): void {
    const { connections, logins } = this.#pooler;
    logins.failed[this.#withoutServer.has(why) ? 'no_server' : loginFailureOf(why.fields)]++;
    connections.refused(pending, why.fields, why.detail);
  }

  /** A connected client is told an error of the pooler's. */
  #failed(client: LoggedClient, pool: BackendPool, error: ErrorFields): void {
    pool.tally.ownErrorCame(error.code, ownErrorReasonOf(error));
    this.#pooler.connections.failed(client, error);
  }
}

/** Settings of a session whose server connection has begun with them. */
function ownStartup({ settings }: BackendPool, { backend }: ReplicationServer): StartupSettings {
  return { settings: settings.none, told: backend.parameters, kept: new Map(), areUnchecked: false };
}

/** A client's credentials are valid for the server only for the same user. */
function noteCredentials(entry: PoolEntry, { user }: DatabaseConfig, login: Login): void {
  if (user !== undefined && user !== login.user) return;
  const credentials = credentialsOfLogin(login);
  if (credentials.kind !== 'none') entry.shownCredentials = credentials;
}

/** A client's limits, which it asks for at every wait: they are made anew only after a reload. */
function limitsOf(pool: BackendPool, user: string, ownOf: () => UserConfig | undefined): () => PoolSettings {
  if (user === pool.user) return () => pool.limits;
  let [own, of, limits] = [ownOf(), pool.limits, limitsForClient(pool.limits, ownOf())];
  return () => {
    const present = ownOf();
    if (own === present && of === pool.limits) return limits;
    [own, of, limits] = [present, pool.limits, limitsForClient(pool.limits, present)];
    return limits;
  };
}

function noticeOf(message: string | undefined): ErrorFields | undefined {
  return message === undefined
    ? undefined
    : { severity: 'NOTICE', code: SqlState.successfulCompletion, message };
}

function disabled(database: string): Refusal {
  return new Refusal(
    fatal(
      SqlState.cannotConnectNow,
      `database "${shown(database)}" is disabled at the moment`,
      'ENABLE on the console of the pooler ends that.',
      `database "${shown(database)}" is disabled`,
    ),
  );
}
