/** Logs clients in: checks limits, finds the pool and determines the session's parameters. */

import type { DialTls } from '../../net/connect-transport.js';
import { peerOf } from '../../net/socket-peer.js';
import { TlsContext } from '../../net/tls-context.js';
import type { Transport } from '../../net/transport.js';
import { asError } from '../../runtime/promise-dialer.js';
import { systemClock } from '../../runtime/system.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import type { BackendKey } from '../../wire/session-messages.js';
import { SqlState } from '../../wire/sql-states.js';
import type { CancelRequest } from '../../wire/startup-packet.js';
import type { Login, LoginTools } from '../auth/client-authentication.js';
import { credentialsOfLogin } from '../auth/pass-through.js';
import { keyForPeer, peerOfKey } from '../clients/cancel-keys.js';
import { type ClientQuotas, consoleQuotasFor } from '../clients/client-limits.js';
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
import { ReplicationSession } from '../clients/relay/replication-session.js';
import type { SessionParts } from '../clients/relay/session-parts.js';
import { fatal, refusalOf, shuttingDown } from '../clients/session-errors.js';
import { resolveStartup, type StartupSettings } from '../clients/startup-settings.js';
import { clientLimitsFor, limitsForClient } from '../config/pool-settings.js';
import { consoleDatabases, type DatabaseConfig, databaseFor } from '../config/pooler-config.js';
import { type AdminKeeper, AdminSession } from '../console/admin-session.js';
import { poolerParameters, reportedSettings } from '../console/driver-settings.js';
import type { ConsoleTools } from '../console/run-command.js';
import type { Backend } from '../servers/backend.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { borrow } from '../servers/borrow.js';
import { sendCancel } from '../servers/canceller.js';
import type { LoggedClient } from '../servers/connection-log.js';
import { openReplication } from '../servers/open-replication.js';
import type { ReplicationBackend } from '../servers/replication-backend.js';
import type { PoolEntry } from './pool-registry.js';
import type { PoolerState, Visitor } from './pooler-state.js';

/** Views and commands for a console client. */
export type ToolsFor = (role: ConsoleTools['role']) => ConsoleTools;

const applicationName = 'application_name';
/** TLS for cancel requests to peers: none, since the poolers are next to each other, and a key can only cancel. */
const noTls: DialTls = { mode: 'disable', context: new TlsContext('client', {}) };
const longestCancelMs = 60_000;
/** PgBouncer's console user for the owner of the process. */
const ownConsoleUser = 'pgbouncer';

/** Login timeout while few file descriptors are left, which are needed for the console and for servers. */
const shortLoginMs = 1_000;

/** Time that a login waits for a server that could check its startup settings. */
const patienceMs = 250;

const noFiles = fatal(
  SqlState.tooManyConnections,
  'the pooler has no files left for another connection',
  'Raise the limit of open files of its process, or close connections.',
);

export class ClientLogins {
  readonly #pooler: PoolerState;
  readonly #toolsFor: ToolsFor;
  /** Refusals that the server caused, whatever error it has sent. */
  readonly #withoutServer = new WeakSet<Refusal>();

  constructor(pooler: PoolerState, toolsFor: ToolsFor) {
    this.#pooler = pooler;
    this.#toolsFor = toolsFor;
  }

  /** A connection was accepted. `hasRoom`: file descriptors are left. */
  connected(transport: Transport, hasRoom: boolean, readAhead = nothingRead): void {
    const pooler = this.#pooler;
    const visitor: Visitor = { id: pooler.nextId(), transport, connectedAt: Date.now() - readAhead.waitedMs };
    pooler.visitors.add(visitor);
    runStartupHandshake(transport, this.#hallFor(visitor, hasRoom), readAhead).finally(() =>
      pooler.visitors.delete(visitor),
    );
  }

  #hallFor(visitor: Visitor, hasRoom: boolean): HandshakeHost {
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
      requirementOf: (applicant) => this.#requirementOf(applicant, visitor),
      // The console is no database of a server, even where `*` is configured.
      loginTools: ({ database, isConsole }): LoginTools =>
        auth.toolsFor(isConsole ? undefined : databaseFor(config, database)),
      admit: (applicant, login) =>
        applicant.isConsole
          ? this.#admitToConsole(applicant, visitor)
          : this.#admit(applicant, login, visitor),
      cancel: (request) => this.#cancel(request, visitor),
      refused: (why) => this.#refused(visitor, why),
      word: pooler.wording,
    };
  }

  #requirementOf(
    { transport, user, database, isConsole, settings, scope, replication }: Applicant,
    visitor: Visitor,
  ): AuthRequirement {
    const pooler = this.#pooler;
    visitor.transport = transport;
    visitor.loginScope = scope;
    visitor.user = user;
    visitor.database = database;
    visitor.applicationName = settings.get(applicationName) ?? '';
    if (replication !== undefined) visitor.replication = replication.kind;
    pooler.connections.loginBegan(visitor);
    if (isConsole && this.#isOwnConsoleUser(user, transport)) return { method: 'trust', map: undefined };
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

  /** As with PgBouncer, the owner of the process is a console administrator under this name through the Unix socket. */
  #isOwnConsoleUser(user: string, transport: Transport): boolean {
    if (!this.#pooler.isPgBouncer || user !== ownConsoleUser || !transport.isUnix) return false;
    return peerOf(transport)?.userId === process.getuid?.();
  }

  async #admit(applicant: Applicant, login: Login, visitor: Visitor): Promise<Admission> {
    const pooler = this.#pooler;
    const database = databaseFor(pooler.config, applicant.database);
    if (database === undefined) throw noDatabase(applicant.database);
    if (pooler.disabledDatabases.has(database.name)) throw disabled(database.name);
    if (pooler.isNewDatabase(database.name)) pooler.connections.databaseFound(visitor);
    const { maxUserClientConnections, maxDbClientConnections } = clientLimitsFor(
      pooler.config,
      database,
      applicant.user,
    );
    const leave = await this.#takePlace(applicant.user, database.name, {
      total: pooler.config.limits.maxClientConn,
      ofUser: maxUserClientConnections,
      ofDatabase: maxDbClientConnections,
    });
    try {
      return await this.#admitTo(database, applicant, login, visitor, leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #admitTo(
    database: DatabaseConfig,
    applicant: Applicant,
    login: Login,
    visitor: Visitor,
    leave: () => void,
  ): Promise<Admission> {
    const { pools } = this.#pooler;
    const user = database.user ?? applicant.user;
    const leaveGate = await this.#pooler.gates.clients.enter(database, user, applicant.scope);
    const entry = pools.get(database, user);
    let server: ReplicationBackend | undefined;
    try {
      noteCredentials(entry, database, login);
      if (applicant.replication !== undefined)
        server = await this.#openReplication(applicant, applicant.replication, entry, visitor);
      const startup = await this.#startupOf(applicant, entry, visitor);
      applicant.scope.throwIfOver();
      this.#expectStillWelcome(entry, applicant);
      return this.#admission(applicant, visitor, entry, startup, leave, server);
    } catch (error) {
      server?.close();
      pools.refused(entry, error);
      if (error instanceof Refusal || applicant.scope.isOver) throw error;
      this.#expectStillWelcome(entry, applicant);
      const why = asError(error);
      const refusal = new Refusal(refusalOf(entry.pool, why), why.message);
      this.#withoutServer.add(refusal);
      throw refusal;
    } finally {
      leaveGate?.();
    }
  }

  /** Since the login began, a reload or a shutdown may have started. */
  #expectStillWelcome({ pool }: PoolEntry, applicant: Applicant): void {
    const parting = this.#pooler.isShuttingDown ? shuttingDown : this.#pooler.partingFor(applicant, pool);
    if (parting !== undefined) throw new Refusal(parting);
  }

  /** Takes a place in this process and, with several processes, in the shared count. */
  async #takePlace(user: string, database: string, quotas: ClientQuotas): Promise<() => void> {
    const { limits, shared } = this.#pooler;
    const leave = limits.take(user, database, quotas);
    if (shared === undefined) return leave;
    try {
      const leaveAll = await shared.places.take(user, database);
      return () => {
        leave();
        leaveAll();
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #startupOf(
    { settings, scope, transport, replication }: Applicant,
    { pool, known }: PoolEntry,
    visitor: Visitor,
  ): Promise<StartupSettings> {
    // A server connection of its own has begun with them.
    let wanted = replication === undefined ? settings : new Map<string, string>();
    if (replication === undefined && this.#pooler.config.pooling.applicationNameAddHost) {
      const { remoteAddress, remotePort } = transport;
      const name = settings.get(applicationName) ?? 'app';
      wanted = new Map(settings).set(applicationName, `${name} - ${remoteAddress}:${remotePort}`);
    }
    const timeoutMs = pool.limits.queryWaitTimeout || Number.POSITIVE_INFINITY;
    // As with PgBouncer, new clients also wait while the server is unreachable.
    const isPatient = this.#pooler.isPgBouncer;
    const wait = async <T>(use: (backend: Backend) => Promise<T>): Promise<T> => {
      visitor.waitsFor = { pool, since: systemClock.now() };
      try {
        return await borrow(pool, { timeoutMs, signal: scope.signal, isPatient }, use);
      } finally {
        visitor.waitsFor = undefined;
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
          return await borrow(pool, { timeoutMs, signal }, use);
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
    visitor: Visitor,
  ): Promise<ReplicationBackend> {
    const isPatient = this.#pooler.isPgBouncer;
    const { outage } = pool;
    if (outage !== undefined && !isPatient) throw outage;
    const timeoutMs = pool.limits.queryWaitTimeout || Number.POSITIVE_INFINITY;
    const parameters = new Map(settings).set('replication', word);
    visitor.waitsFor = { pool, since: systemClock.now() };
    try {
      return await openReplication(pool, { timeoutMs, signal: scope.signal, isPatient }, parameters);
    } finally {
      visitor.waitsFor = undefined;
    }
  }

  #admission(
    { user, database, hasLongKeys, transport, replication }: Applicant,
    { id, connectedAt }: Visitor,
    { pool }: PoolEntry,
    startup: StartupSettings,
    leave: () => void,
    server: ReplicationBackend | undefined,
  ): Admission {
    const pooler = this.#pooler;
    const client = { id, user, database, transport, connectedAt };
    let session: ClientSession | undefined;
    const key = pooler.keys.register({ cancel: async () => session?.cancel() }, hasLongKeys);
    let isLogged = false;
    const ending = (why: string): void => {
      if (!isLogged) pooler.connections.disconnected(client, why);
      isLogged = true;
    };
    const ended = (why: string): void => {
      leave();
      pooler.keys.forget(key.processId);
      pool.clients--;
      pooler.left(session as ClientSession);
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
        limits: () =>
          user === pool.user ? pool.limits : limitsForClient(pool.limits, pooler.config.users.get(user)),
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
    const told = server?.parameters ?? startup.told;
    const parameters = pooler.isPgBouncer
      ? new Map([...told, ...poolerParameters(pool.limits.poolMode, maxPreparedStatements)])
      : told;
    return { parameters, key, notice: noticeOf(pooler.config.admin.loginNotifyMessage), begin };
  }

  async #admitToConsole(applicant: Applicant, visitor: Visitor): Promise<Admission> {
    const pooler = this.#pooler;
    const { user, database, hasLongKeys, transport } = applicant;
    const { adminUsers, statsUsers } = pooler.config.admin;
    const isAdmin = adminUsers.includes(user) || this.#isOwnConsoleUser(user, transport);
    const role = isAdmin ? 'admin' : statsUsers.includes(user) ? 'stats' : undefined;
    if (role === undefined) throw notForTheConsole(user);
    const leave = await this.#takePlace(user, database, consoleQuotasFor(pooler.config, user));
    if (applicant.scope.isOver) leave();
    applicant.scope.throwIfOver();
    const client = { id: visitor.id, user, database, transport, connectedAt: visitor.connectedAt };
    let session: AdminSession | undefined;
    const key = pooler.keys.register({ cancel: async () => session?.cancel() }, hasLongKeys);
    const keeper: AdminKeeper = {
      consoleEnded: (ended) => {
        leave();
        pooler.keys.forget(key.processId);
        pooler.consoles.delete(ended);
        if (pooler.isPgBouncer) pooler.connections.disconnected(client, 'the client said goodbye');
      },
      commandCame: () => pooler.consoleCommands++,
      commandGiven: (_, command) =>
        pooler.isPgBouncer
          ? pooler.log('info', `${command} command issued`)
          : pooler.log('info', `console: ${command}`, { user }),
      commandFailed: (_, command, error) =>
        pooler.log('error', `console: ${command} failed`, { error: String(error) }),
    };
    const begin = (rest: Buffer): void => {
      session = new AdminSession(transport, this.#toolsFor(role), keeper);
      pooler.consoleLogins++;
      pooler.consoles.set(session, visitor);
      pooler.logins.succeeded++;
      pooler.connections.connected(client);
      if (rest.length > 0) session.bytesCame(rest, 0, rest.length);
    };
    const parameters = pooler.isPgBouncer
      ? new Map([...reportedSettings, ...poolerParameters('statement', 0)])
      : reportedSettings;
    return { parameters, key, notice: undefined, begin };
  }

  async #cancel(request: CancelRequest, visitor: Visitor): Promise<void> {
    visitor.isCancelling = true;
    await this.cancel(request);
  }

  /** Cancels by a key of this process or another one. */
  async cancel(key: BackendKey): Promise<void> {
    const { keys, shared, config } = this.#pooler;
    const client = keys.find(key);
    if (client !== undefined) await client.cancel();
    else if (config.listen.peerId > 0 && peerOfKey(key) !== config.listen.peerId)
      await this.#cancelAtPeer(key);
    else await shared?.cancelElsewhere(key);
  }

  /** Resolves when the pooler that issued the key has hung up, which it does when it is done. */
  async #cancelAtPeer(key: BackendKey): Promise<void> {
    const { config, log, peerRequests } = this.#pooler;
    const peerId = peerOfKey(key);
    const peer = config.listen.peers.get(peerId);
    const next = keyForPeer(key);
    if (peer === undefined || next === undefined) return;
    const { host, port, poolSize = config.pooling.poolSize } = peer;
    const underWay = peerRequests.get(peerId) ?? 0;
    // Limit the connections to a peer, however many requests a client sends.
    if (underWay >= 2 * poolSize) return;
    peerRequests.set(peerId, underWay + 1);
    const at = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
    try {
      const timeoutMs = config.timeouts.cancelWaitTimeout || longestCancelMs;
      await sendCancel({ ...at, port, tls: noTls, timeoutMs }, next);
    } catch (error) {
      log('warn', `a cancel request could not be passed on to peer ${peerId}`, { error: String(error) });
    } finally {
      peerRequests.set(peerId, (peerRequests.get(peerId) ?? 1) - 1);
    }
  }

  #refused(visitor: Visitor, why: Refusal): void {
    const { connections, logins } = this.#pooler;
    logins.failed[this.#withoutServer.has(why) ? 'no_server' : loginFailureOf(why.fields)]++;
    connections.refused(visitor, why.fields, why.detail);
  }

  /** A connected client is told an error of the pooler's. */
  #failed(client: LoggedClient, pool: BackendPool, error: ErrorFields): void {
    pool.tally.ownErrorCame(error.code, ownErrorReasonOf(error));
    this.#pooler.connections.failed(client, error);
  }
}

/** A client's credentials are valid for the server only for the same user. */
function noteCredentials(entry: PoolEntry, { user }: DatabaseConfig, login: Login): void {
  if (user !== undefined && user !== login.user) return;
  const credentials = credentialsOfLogin(login);
  if (credentials.kind !== 'none') entry.shownCredentials = credentials;
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

function notForTheConsole(user: string): Refusal {
  return new Refusal(
    fatal(
      SqlState.invalidAuthorization,
      `user "${shown(user)}" may not use the console`,
      'Users in admin_users or stats_users of the pooler may.',
      'not allowed',
    ),
  );
}
