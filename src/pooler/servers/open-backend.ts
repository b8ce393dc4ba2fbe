/** Opens server connections: finds a host that answers, negotiates TLS, logs in, and checks `target_session_attrs`. */
import type { TLSSocket } from 'node:tls';
import { connectTransport, type DialOptions, type DialTls } from '../../net/connect-transport.js';
import { DialFailedError } from '../../net/errors.js';
import type { SocketEnds } from '../../net/socket-ends.js';
import type { SocketTransport } from '../../net/socket-transport.js';
import { otherWayOf } from '../../net/tls-mode.js';
import { asError } from '../../runtime/promise-dialer.js';
import { tlsServerEndPoint } from '../auth/channel-binding.js';
import type { ScramKeyCache } from '../auth/scram-keys.js';
import { ServerAuthentication, type ServerCredentials } from '../auth/server-authentication.js';
import { BackendRefusedError, OwnQueryError, WrongServerError } from '../errors.js';
import type { Settings } from '../settings/settings.js';
import { Backend } from './backend.js';
import { logIn } from './backend-login.js';
import type { Opening } from './opening.js';
import type { ServerAddress, ServerHosts } from './server-hosts.js';
import { askServer } from './server-question.js';
import { ServerStatements } from './server-statements.js';
import { checkReportedTarget, checkTarget, type TargetSession } from './target-session.js';

export type DialedHost = Pick<DialOptions, 'host' | 'port'>;

export interface ServerPlan {
  readonly hosts: ServerHosts;
  readonly tls: DialTls;
  readonly keepAlive: DialOptions['keepAlive'];
  readonly tuning: DialOptions['tuning'];
  readonly connectTimeoutMs: number;
  readonly user: string;
  /** Startup parameters besides the user. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Credentials for the host that is being dialed. */
  readonly credentials: (at: DialedHost) => ServerCredentials | Promise<ServerCredentials>;
  readonly keys: ScramKeyCache;
  readonly allowUnencryptedPasswords: boolean;
  readonly connectQuery: string | undefined;
  /** Called when the connect query fails. The connection is used all the same. */
  readonly connectQueryFailed: (error: OwnQueryError) => void;
  readonly target: TargetSession;
  readonly mostStatements: number;
  readonly mostStatementBytes: number;
  readonly mostParameterBytes: number;
  /** Settings of a new session. */
  readonly settings: Settings;
  /** Runs before clients may use the connection. Rejects if they may not. */
  readonly entered?: (backend: Backend) => Promise<void>;
}

/** Errors that a server sends before it checks credentials: another host may be able to serve. */
const otherMayServe: readonly string[] = ['57P03', '53300', '57P01', '57P02'];

/** Tries the hosts one after the other, as far as that can help. Rejects with the last failure. */
export async function openBackend(plan: ServerPlan, opening: Opening): Promise<Backend> {
  let failure: unknown;
  for (const address of plan.hosts.inOrder()) {
    try {
      opening.tries(address);
      return await openAt(plan, address, opening);
    } catch (error) {
      failure = error;
      opening.watcher?.failed(opening, asError(error));
      plan.hosts.failed(address);
      if (opening.signal.aborted || !canOtherServe(error)) break;
    }
  }
  throw failure;
}

function canOtherServe(error: unknown): boolean {
  if (error instanceof BackendRefusedError) return otherMayServe.includes(error.sqlState);
  return error instanceof DialFailedError || error instanceof WrongServerError;
}

async function openAt(plan: ServerPlan, address: ServerAddress, opening: Opening): Promise<Backend> {
  const dial = dialOf(plan, address);
  const { signal } = opening;
  const connected = (ends: SocketEnds): void => opening.connected(ends);
  const transport = await connectTransport({ ...dial, signal, connected });
  try {
    return await enter(plan, dial, transport, opening);
  } catch (error) {
    const isRefusal = error instanceof BackendRefusedError && error.sqlState.startsWith('28');
    const mode = isRefusal ? otherWayOf(plan.tls.mode, transport.tls !== undefined) : undefined;
    if (mode === undefined || address.path !== undefined) throw error;
    const otherDial = { ...dial, tls: { ...plan.tls, mode } };
    try {
      opening.tries(address);
      return await enter(
        plan,
        otherDial,
        await connectTransport({ ...otherDial, signal, connected }),
        opening,
      );
    } catch {
      // The first failure is the better explanation.
      throw error;
    }
  }
}

/** Options for one host. Several hosts share the connect timeout. */
function dialOf(plan: ServerPlan, { host, port, path }: ServerAddress): DialOptions {
  const { tls, keepAlive, tuning, connectTimeoutMs, hosts } = plan;
  const longestMs = 2 ** 31 - 1;
  const timeoutMs = connectTimeoutMs === 0 ? longestMs : Math.ceil(connectTimeoutMs / hosts.count);
  return { host, port, path, tls, keepAlive, tuning, timeoutMs };
}

async function enter(
  plan: ServerPlan,
  dial: DialOptions,
  transport: SocketTransport,
  opening: Opening,
): Promise<Backend> {
  opening.reached(transport);
  const { id, signal, replication } = opening;
  const { user, keys, settings, parameters, allowUnencryptedPasswords } = plan;
  const credentials = await plan.credentials(dial);
  const authenticator = new ServerAuthentication({
    user,
    credentials,
    keys,
    isEncrypted: transport.tls !== undefined,
    isUnix: transport.isUnix,
    allowUnencryptedPasswords,
    endPoint: endPointOf(transport),
  });
  const startup = new Map([['user', user], ...parameters, ...(replication ?? [])]);
  const { mostParameterBytes } = plan;
  const loggedIn = await logIn({
    transport,
    parameters: startup,
    authenticator,
    mostParameterBytes,
    signal,
  });
  opening.loggedIn(loggedIn.key);
  const statements = new ServerStatements(plan.mostStatements, plan.mostStatementBytes);
  const parts = { id, transport, dial, statements, settings, ...loggedIn };
  const backend = new Backend(parts);
  // Replication has no queries that could be asked first.
  if (replication !== undefined) {
    backend.beginReplication(replication);
    transport.resumeReading();
    try {
      checkReportedTarget(backend, plan.target);
    } catch (error) {
      backend.destroy();
      throw error;
    }
    return backend;
  }
  transport.resumeReading();
  await prepare(backend, plan, signal);
  return backend;
}

/** Runs the connect query and the checks before clients may use a connection. */
async function prepare(
  backend: Backend,
  { target, connectQuery, connectQueryFailed, entered }: ServerPlan,
  signal: AbortSignal,
): Promise<void> {
  const abort = (): void => backend.destroy();
  signal.addEventListener('abort', abort);
  try {
    if (connectQuery) await runConnectQuery(backend, connectQuery, connectQueryFailed);
    // Checked after the connect query, which may change the state that the check is about.
    await checkTarget(backend, target);
    await entered?.(backend);
  } catch (error) {
    backend.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** As with PgBouncer, an error of the connect query does not discard the connection. */
async function runConnectQuery(
  backend: Backend,
  text: string,
  failed: ServerPlan['connectQueryFailed'],
): Promise<void> {
  try {
    await askServer(backend, { what: 'connect_query', text });
  } catch (error) {
    if (!(error instanceof OwnQueryError)) throw error;
    failed(error);
  }
}

/** Endpoint data for channel binding of the login; undefined without TLS. */
function endPointOf({ tls, socket }: SocketTransport): Buffer | undefined {
  if (tls === undefined) return undefined;
  const certificate = (socket as TLSSocket).getPeerX509Certificate();
  return certificate && tlsServerEndPoint(certificate.raw);
}
