/**
 * Log events of connections in Headgate's words: a message with fields. `pgbouncer-log.ts` has the same events in PgBouncer's
 * words, which existing rules and exporters look for.
 */
import type { Transport } from '../../net/transport.js';
import { errorFields } from '../../observe/error-text.js';
import { Repetition } from '../../observe/repetition.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { OwnQueryError } from '../errors.js';
import type { LogDetails, PoolerLog } from '../log.js';
import type { Settings } from '../settings/settings.js';

/** A client connection. */
export interface LoggedClient {
  readonly id: number;
  /** Undefined until the client has sent it. */
  readonly user?: string | undefined;
  readonly database?: string | undefined;
  /** `logical` or `physical`. */
  readonly replication?: string | undefined;
  readonly transport: Transport;
  /** In milliseconds since 1970. */
  readonly connectedAt: number;
}

/** A server connection. */
export interface LoggedServer {
  readonly id: number;
  readonly ends: Pick<Transport, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>;
  readonly openedAt: number;
  readonly isReplication?: boolean;
}

/** Log of one pool. It remembers what it has logged. */
export interface ServerLog {
  /** The socket is connected; nothing was sent yet. */
  connected(server: LoggedServer): void;
  opened(dialMs: number): void;
  /** A host could not be used. */
  hostFailed(server: LoggedServer, error: Error): void;
  /** No host could be used, or no connection may be opened. */
  openingFailed(cause: string, error: Error): void;
  closed(server: LoggedServer, reason: string): void;
  connectQueryFailed(error: OwnQueryError): void;
  /** A connection of the pool's reserve is being opened. */
  reserveTaken(): void;
  /** The connection is given the settings of its next client. Undefined where that is not logged. */
  readonly settingsBrought?: (server: LoggedServer, from: Settings, to: Settings) => void;
}

export interface ConnectionLog {
  /** A client has sent its user and database. */
  loginBegan(client: LoggedClient): void;
  connected(client: LoggedClient): void;
  disconnected(client: LoggedClient, why: string): void;
  /** A client is refused with this error. `detail` is for the log alone. */
  refused(client: LoggedClient, error: ErrorFields, detail: string | undefined): void;
  /** A connected client is told this error. */
  failed(client: LoggedClient, error: ErrorFields): void;
  /** A database that matches `*` is used for the first time. */
  databaseFound(client: LoggedClient): void;
  servers(database: string, user: string): ServerLog;
}

/** Closures that were asked for, and that every connection comes to. The others are worth a log entry. */
const ordinaryEnds = [
  'idle_timeout',
  'max_lifetime',
  'max_uses',
  'over_limit',
  'drained',
  'evicted',
  'replication_ended',
];

/** A query that has not failed for this long counts as fixed or unused: the next failure is logged as the first. */
const quietMs = 60_000;

export function connectionLog(log: PoolerLog, config: () => PoolerConfig): ConnectionLog {
  const tell = (message: string, client: LoggedClient, more: LogDetails = {}): void => {
    const { user, database, transport } = client;
    const { remoteAddress: from, remotePort: port, tls } = transport;
    const { version, serverName: sni } = tls ?? {};
    log('info', message, { user, database, from, port, tls: version, sni, ...more });
  };
  return {
    loginBegan() {},
    databaseFound() {},
    connected(client) {
      if (config().logging.connections) tell('client connected', client);
    },
    disconnected(client, why) {
      if (!config().logging.disconnections) return;
      tell('client disconnected', client, {
        reason: why,
        duration_ms: Math.round(Date.now() - client.connectedAt),
      });
    },
    refused({ user, database, transport: { remoteAddress: from } }, { message }, detail) {
      if (config().logging.poolerErrors)
        log('warn', 'client refused', { user, database, from, reason: message, detail });
    },
    failed({ user, database }, { message, code }) {
      if (config().logging.poolerErrors)
        log('warn', 'client told an error', { user, database, code, reason: message });
    },
    servers: (database, user) => serverLog(log, config, { database, user }),
  };
}

function serverLog(log: PoolerLog, config: () => PoolerConfig, pool: LogDetails): ServerLog {
  const failures = new Repetition<string>();
  const failedQueries = new Repetition<string>(quietMs);
  return {
    connected() {},
    hostFailed() {},
    reserveTaken() {},
    opened(dialMs) {
      failures.end();
      if (config().logging.connections)
        log('info', 'server connection opened', { ...pool, duration_ms: Math.round(dialMs) });
    },
    openingFailed(cause, error) {
      const attempt = failures.add(cause);
      if (attempt === undefined) return;
      log(cause === 'lease_acquire' ? 'debug' : 'error', 'server connection failed', {
        ...pool,
        cause,
        ...errorFields(error),
        attempt,
      });
    },
    closed(_, reason) {
      if (config().logging.disconnections)
        log(ordinaryEnds.includes(reason) ? 'debug' : 'info', 'server connection closed', {
          ...pool,
          reason,
        });
    },
    connectQueryFailed(error) {
      const { code } = error.fields;
      const attempt = failedQueries.add(code);
      if (attempt === undefined) return;
      log('warn', 'connect_query failed, server connection used nevertheless', {
        ...pool,
        ...errorFields(error),
        code,
        attempt,
      });
    },
  };
}
