/** Log events of connections in PgBouncer's words, so that rules written for its log keep working. */
import { DialFailedError } from '../../net/errors.js';
import { peerOf } from '../../net/socket-peer.js';
import { ServerAuthenticationError } from '../auth/errors.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import { BackendRefusedError, LoginEndedError, WrongServerError } from '../errors.js';
import type { PoolerLog } from '../log.js';
import { wordings } from '../own-error.js';
import type { ConnectionLog, LoggedClient, LoggedServer, ServerLog } from './connection-log.js';
import { settingsApplied } from './pgbouncer-settings.js';

const inItsWords = wordings.pgbouncer;

/** By Headgate's reason to discard a server connection. */
const closings: Readonly<Record<string, string>> = {
  idle_timeout: 'server idle timeout',
  max_lifetime: 'server lifetime over',
  max_uses: 'server lifetime over',
  over_limit: 'too many servers in the pool',
  drained: 'database configuration changed',
  lease_recalled: 'evicted',
  lease_lost: 'evicted',
  failed_check: 'test query failed',
  evicted: 'evicted for pool_size',
  replication_ended: 'replication client was closed',
};

const crashed = 'server conn crashed?';

/** By Headgate's reason why a client has disconnected. */
const leavings: Readonly<Record<string, string>> = {
  'the client said goodbye': 'client close request',
  'the client hung up': 'client unexpected eof',
};

export function pgbouncerLog(log: PoolerLog, config: () => PoolerConfig): ConnectionLog {
  const closing = (client: LoggedClient, reason: string): void => {
    if (config().logging.disconnections)
      log('info', `${nameOf(client)} closing because: ${reason} (age=${ageOf(client.connectedAt)}s)`);
  };
  const poolerError = (client: LoggedClient, message: string): void => {
    if (config().logging.poolerErrors) log('warn', `${nameOf(client)} pooler error: ${message}`);
  };
  return {
    loginBegan(client) {
      if (!config().logging.connections) return;
      const { user = '', database = '', transport } = client;
      const { tls } = transport;
      log(
        'info',
        `${nameOf(client)} login attempt: db=${database} user=${user} tls=${
          tls === undefined ? 'no' : `${tls.version}/${tls.cipher}`
        } replication=${client.replication ?? 'no'}`,
      );
    },
    connected() {},
    disconnected(client, why) {
      closing(client, leavings[why] ?? why);
    },
    refused(client, error, detail) {
      const { message } = inItsWords(error);
      if (detail !== undefined && detail !== message) log('info', `${nameOf(client)} ${detail}`);
      closing(client, message);
      poolerError(client, message);
    },
    failed(client, error) {
      poolerError(client, inItsWords(error).message);
    },
    databaseFound(client) {
      log('info', `${nameOf(client)} registered new auto-database: db=${client.database ?? ''}`);
    },
    servers: (database, user) => serversOf(log, config, database, user),
  };
}

function serversOf(log: PoolerLog, config: () => PoolerConfig, database: string, user: string): ServerLog {
  const nameOfServer = ({ id, ends }: LoggedServer): string =>
    `${pointer('S', id)}: ${database}/${user}@${addressOf(ends.remoteAddress, ends.remotePort)}`;
  const closing = (server: LoggedServer, reason: string): void => {
    if (config().logging.disconnections)
      log('info', `${nameOfServer(server)} closing because: ${reason} (age=${ageOf(server.openedAt)}s)`);
  };
  return {
    connected(server) {
      if (!config().logging.connections) return;
      const { localAddress, localPort } = server.ends;
      const from = localAddress === 'unix' ? '' : ` (from ${addressOf(localAddress, localPort)})`;
      log('info', `${nameOfServer(server)} new connection to server${from}`);
    },
    opened() {},
    hostFailed(server, error) {
      if (error instanceof BackendRefusedError) {
        const { severity, message } = error.fields;
        log('warn', `server login failed: ${severity} ${message}`);
      } else log('warn', `${nameOfServer(server)} ${textOf(error)}`);
      closing(server, openingReason(error, server));
    },
    openingFailed() {},
    closed(server, reason) {
      closing(server, closings[reason] ?? crashed);
    },
    connectQueryFailed({ fields }) {
      log('warn', `S: error while executing exec_on_query: ${fields.severity} ${fields.message}`);
    },
    settingsBrought(server, from, to) {
      if (config().logging.level === 'debug')
        log('debug', `${nameOfServer(server)} varcache_apply: ${settingsApplied(from, to, user)}`);
    },
    reserveTaken() {
      log('warn', `${database}/${user} taking connection from reserve_pool`);
    },
  };
}

/** Reason that PgBouncer would log for a connection that could not be opened. */
function openingReason(error: Error, { ends, isReplication }: LoggedServer): string {
  if (error instanceof BackendRefusedError)
    return isReplication === true ? 'login failed' : error.fields.message;
  if (error instanceof ServerAuthenticationError) return 'failed to answer authreq';
  if (error instanceof WrongServerError) return 'server does not satisfy target_session_attrs';
  if (error instanceof LoginEndedError) return 'connect timeout';
  if (!(error instanceof DialFailedError)) return 'connect failed';
  // Connected, and then silent: the local port is known.
  if (ends.localPort > 0 && error.reason !== 'network' && error.reason !== 'tls') return 'connect timeout';
  const code = codeOf(error);
  return code === 'ENOTFOUND' || code === 'EAI_AGAIN' ? 'server DNS lookup failed' : 'connect failed';
}

function codeOf(error: Error): string | undefined {
  return (error.cause as NodeJS.ErrnoException | undefined)?.code;
}

function textOf(error: Error): string {
  if (error instanceof DialFailedError && error.reason === 'tls') return tlsTextOf(error);
  return error.cause instanceof Error ? `${error.message} ${error.cause.message}` : error.message;
}

/** Codes of Node for a certificate that was verified and is not good. */
const badCertificate = /^(?!ERR_)\w*(?:CERT|ISSUER|CRL|SIGNATURE|CHAIN)\w*$/;

function tlsTextOf(error: Error): string {
  let cause: unknown = error;
  while (cause instanceof Error && codeOfError(cause) === undefined) cause = cause.cause;
  const isBad = badCertificate.test(codeOfError(cause) ?? '');
  const why = cause instanceof Error ? cause.message : error.message;
  return `TLS handshake error: handshake failed: ${isBad ? `certificate verify failed: ${why}` : why}`;
}

function codeOfError(error: unknown): string | undefined {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  // Headgate's own errors have a code as well.
  return typeof code === 'string' && !code.startsWith('HG_') ? code : undefined;
}

function nameOf({ id, database = '(nodb)', user = '(nouser)', transport }: LoggedClient): string {
  return `${pointer('C', id)}: ${database}/${user}@${addressOfClient(transport)}`;
}

function addressOfClient(transport: LoggedClient['transport']): string {
  const { isUnix, remoteAddress, remotePort } = transport;
  if (!isUnix) return addressOf(remoteAddress, remotePort);
  const peer = peerOf(transport);
  return `unix${peer === undefined ? '' : `(${peer.processId})`}:${remotePort}`;
}

function addressOf(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Pointer as SHOW CLIENTS and SHOW SERVERS print it. */
function pointer(type: 'C' | 'S', id: number): string {
  return `${type}-0x${type === 'C' ? 'c' : '5'}${id.toString(16).padStart(8, '0')}`;
}

function ageOf(since: number): number {
  return Math.max(0, Math.floor((Date.now() - since) / 1_000));
}
