/** Errors that the pooler tells connected clients. Texts include numbers, and what to do where something can be done. */

import { AcquireTimeoutError, ConnectFailedError, PoolClosedError } from '../../core/errors.js';
import { formatDuration } from '../../kernel/duration.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { ServerAuthenticationError } from '../auth/errors.js';
import { BackendRefusedError, WrongServerError } from '../errors.js';
import type { OwnError } from '../own-error.js';
import type { BackendPool } from '../servers/backend-pool.js';

/** `asPgBouncer`: PgBouncer's text for the same error. */
export function fatal(code: string, message: string, hint?: string, asPgBouncer?: string): OwnError {
  return {
    severity: 'FATAL',
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(asPgBouncer === undefined ? {} : { pgbouncer: { message: asPgBouncer } }),
  };
}

export const shuttingDown: ErrorFields = fatal(
  SqlState.adminShutdown,
  'the pooler is shutting down',
  'Connect again: another pooler, or this one once it is back, will serve you.',
  'server shutting down',
);

/** The pooler ends with clients still connected. */
export const shutDown: ErrorFields = fatal(
  SqlState.adminShutdown,
  'the pooler is shutting down',
  'Connect again: another pooler, or this one once it is back, will serve you.',
  'database removed',
);

export const serverReplaced: ErrorFields = fatal(
  SqlState.adminShutdown,
  'terminating connection: its server connection is to be replaced',
  'Connect again.',
  'database configuration changed',
);

export const inFailedTransaction: ErrorFields = {
  severity: 'ERROR',
  code: SqlState.inFailedSqlTransaction,
  message: 'current transaction is aborted, commands ignored until end of transaction block',
};

export const canceledWhileWaiting: ErrorFields = {
  severity: 'ERROR',
  code: SqlState.queryCanceled,
  message: 'canceling statement due to user request, before a server connection was free',
};

/** Error for a client that waited in vain for a server connection. The client stays connected, unless the pooler shuts down. */
export function noServer(pool: BackendPool, error: Error): OwnError {
  if (error instanceof PoolClosedError) return shuttingDown;
  const pgbouncer = { message: 'query_wait_timeout' };
  if (error instanceof AcquireTimeoutError && error.cause instanceof Error && pool.isFailing)
    return {
      hint: 'query_wait_timeout ended the wait for a server that can not be connected to.',
      ...refusalOf(pool, error.cause),
      severity: 'ERROR',
      pgbouncer,
    };
  if (error instanceof AcquireTimeoutError)
    return {
      severity: 'ERROR',
      code: SqlState.tooManyConnections,
      message: `no server connection was free for ${pool.name}: ${error.message}`,
      ...(pool.shortage === undefined ? {} : { detail: `${pool.shortage}.` }),
      hint:
        pool.shortage === undefined
          ? 'query_wait_timeout ended the wait. Transactions may be long, or default_pool_size too small.'
          : 'query_wait_timeout ended the wait. SHOW SHARES on the console says who has what.',
      pgbouncer,
    };
  return { ...refusalOf(pool, error), severity: 'ERROR' };
}

/** PgBouncer's words for a server connection that could not be opened, where the server has sent no error. */
function pgbouncerCause(error: Error): string {
  if (error instanceof ServerAuthenticationError) return 'wrong password type';
  return error instanceof WrongServerError
    ? 'server does not satisfy target_session_attrs'
    : 'connect failed';
}

/** Why no server connection can be opened; the server's own error where it has sent one. */
export function refusalOf(pool: BackendPool, error: Error): OwnError {
  const cause = error instanceof ConnectFailedError && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof BackendRefusedError) {
    const { code, message, detail, hint } = cause.fields;
    // A missing database is not the pooler's fault: the client gets the server's error unchanged.
    const isUnchanged = code === SqlState.invalidCatalogName;
    return {
      severity: 'FATAL',
      code,
      message: isUnchanged ? message : `the server refused the connection of the pooler: ${message}`,
      ...(detail === undefined ? {} : { detail }),
      ...(hint === undefined ? {} : { hint }),
      pgbouncer: { message, code },
    };
  }
  if (error instanceof AcquireTimeoutError) return { ...noServer(pool, error), severity: 'FATAL' };
  return fatal(
    SqlState.cannotConnect,
    `no server connection for ${pool.name}: ${cause.message}`,
    undefined,
    pgbouncerCause(cause),
  );
}

export function lostServer(error: Error): ErrorFields {
  return fatal(
    SqlState.connectionFailure,
    `the server connection was lost: ${error.message}`,
    'Whether the last statement took effect is not known.',
    'server conn crashed?',
  );
}

export function settingsNotRestored(error: ErrorFields): ErrorFields {
  return fatal(
    error.code,
    `the settings of the session could not be brought to this server: ${error.message}`,
    undefined,
    'invalid server parameter',
  );
}

export function transactionInStatementMode(): ErrorFields {
  return fatal(
    SqlState.featureNotSupported,
    'transactions of several statements are not possible with pool_mode statement',
    undefined,
    'transaction blocks not allowed in statement pooling mode',
  );
}

export function noCopyMessage(type: number): ErrorFields {
  const shown = type.toString(16).toUpperCase().padStart(2, '0');
  return fatal(SqlState.protocolViolation, `unexpected message type 0x${shown} during COPY from stdin`);
}

export function simpleQueryRefused(): ErrorFields {
  return fatal(
    SqlState.featureNotSupported,
    'simple queries are switched off here (disable_pqexec)',
    undefined,
    'PQexec disallowed',
  );
}

/** Errors of the timeouts, by the option that sets them. */
export const timeouts = {
  query: (ms: number): ErrorFields =>
    fatal(
      SqlState.queryCanceled,
      `terminating connection: a query ran longer than ${formatDuration(ms)} (query_timeout)`,
      undefined,
      'query timeout',
    ),
  queryWait: (ms: number): ErrorFields =>
    fatal(
      SqlState.queryCanceled,
      `terminating connection: a query waited for a server connection for longer than ${formatDuration(ms)} (query_timeout)`,
      undefined,
      'query_timeout',
    ),
  transaction: (ms: number): ErrorFields =>
    fatal(
      SqlState.transactionTimeout,
      `terminating connection: a transaction took longer than ${formatDuration(ms)} (transaction_timeout)`,
      undefined,
      'transaction timeout',
    ),
  idleTransaction: (ms: number): ErrorFields =>
    fatal(
      SqlState.idleInTransactionTimeout,
      `terminating connection: idle in a transaction for longer than ${formatDuration(ms)} (idle_transaction_timeout)`,
      undefined,
      'idle transaction timeout',
    ),
  clientWrite: (ms: number): ErrorFields =>
    fatal(
      SqlState.operatorIntervention,
      `terminating connection: nothing of the answer was read for longer than ${formatDuration(ms)} (client_write_timeout)`,
    ),
  clientIdle: (ms: number): ErrorFields =>
    fatal(
      SqlState.idleSessionTimeout,
      `terminating connection: idle for longer than ${formatDuration(ms)} (client_idle_timeout)`,
      undefined,
      'client_idle_timeout',
    ),
};

/** Notice for a client that waits for long. */
export function waitNotice(pool: BackendPool, waitedMs: number): OwnError {
  const { inUse, limit, waiting } = pool.stats();
  const numbers = pool.shortage ?? `${inUse} of ${limit} are in use`;
  return {
    severity: 'NOTICE',
    code: SqlState.successfulCompletion,
    pgbouncer: {
      message: 'No server connection available in postgres backend, client being queued',
      code: SqlState.successfulCompletion,
    },
    message:
      `waiting for a server connection for ${formatDuration(Math.round(waitedMs / 100) * 100)}: ` +
      `${numbers}, ${waiting} clients wait`,
  };
}

/** PostgreSQL's own error, field by field: drivers recognise it by its routine, and prepare the statement again. */
export const outdatedStatement: ErrorFields = {
  severity: 'ERROR',
  code: SqlState.featureNotSupported,
  message: 'cached plan must not change result type',
  file: 'plancache.c',
  routine: 'RevalidateCachedQuery',
};

export const noUnnamed: ErrorFields = {
  severity: 'ERROR',
  code: SqlState.invalidStatementName,
  message: 'unnamed prepared statement does not exist',
};

export function tooLongStatement(bytes: number, most: number): ErrorFields {
  return {
    severity: 'ERROR',
    code: SqlState.programLimitExceeded,
    message: `a statement of ${bytes} bytes is too long to be prepared under a name: the most is ${most}`,
    hint: 'Prepare it without a name, or raise max_prepared_statement_size of the pooler.',
  };
}

export function tooManyStatements(count: number, bytes: number, most: number): ErrorFields {
  return {
    severity: 'ERROR',
    code: SqlState.configurationLimitExceeded,
    message: `too many prepared statements: this client has ${count}, which take ${bytes} of ${most} bytes`,
    hint: 'Close statements that are not used any more, or raise max_client_statements_size of the pooler.',
  };
}

/** The meaning of a statement is unknown, and its server has another one by now. */
export const forgottenUnnamed: ErrorFields = {
  ...noUnnamed,
  detail: 'It was run in the batch of its Parse, and another client has used its server connection since.',
  hint: 'Send Parse again, or give the statement a name. From now on the pooler keeps such statements for the clients of this pool.',
};
