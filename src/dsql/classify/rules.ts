/**
 * The rules by which one error, without its causes, is classified; the first that matches wins. Texts are compared at their
 * beginning and without regard to case, because the server's have changed more than once.
 */
import type { Conflict, ErrorClass, ErrorRemedy } from './error-class.js';

/** One error, as far as it can be read. */
export interface ErrorFacts {
  /** Five characters that are a SQLSTATE, whichever property they were found in. */
  readonly sqlState: string | undefined;
  /** Any other `code`: Node's, Prisma's or Headgate's. */
  readonly code: string | undefined;
  readonly message: string;
  /** Reason of a `DsqlConnectError`. */
  readonly reason: string | undefined;
}

/** Every condition that is given must hold. */
export interface ErrorRule {
  readonly class: ErrorClass;
  readonly conflict?: Conflict;
  readonly remedy?: ErrorRemedy;
  readonly sqlState?: RegExp;
  readonly code?: RegExp;
  readonly text?: RegExp;
  readonly reason?: RegExp;
  /** A cause that has a class of its own decides. */
  readonly defersToCause?: boolean;
  /** For the table of the documentation. */
  readonly shown: string;
}

export const errorRules: readonly ErrorRule[] = [
  // Answers of the server.
  {
    class: 'retryable',
    conflict: 'schema',
    sqlState: /^(40001|OC001)$/,
    text: /\(OC001\)|^schema has been updated/i,
    shown: '40001 `... (OC001)`',
  },
  {
    class: 'retryable',
    conflict: 'data',
    sqlState: /^(40001|OC000)$/,
    shown: '40001 `... (OC000)`, any other 40001',
  },
  { class: 'retryable', conflict: 'schema', sqlState: /^OC001$/, shown: 'the code `OC001`' },
  { class: 'retryable', conflict: 'data', sqlState: /^40P01$/, shown: '40P01 (deadlock, PostgreSQL)' },
  { class: 'outcome_unknown', sqlState: /^(40003|08007)$/, shown: '40003, 08007' },
  { class: 'unsupported_feature', sqlState: /^0A000$/, shown: '0A000' },
  {
    class: 'unsupported_feature',
    sqlState: /^42704$/,
    text: /^type "(small|big)?serial" does not exist/i,
    shown: '42704 `type "serial" does not exist`',
  },
  { class: 'connection_limit', sqlState: /^53300$/, shown: '53300' },
  { class: 'rate_limit', sqlState: /^53400$/, shown: '53400' },
  { class: 'transaction_limit', sqlState: /^(54000|53200)$/, shown: '54000, 53200' },
  {
    class: 'unavailable',
    sqlState: /^08006$/,
    text: /^unable to accept connection, waking up/i,
    shown: '08006 `unable to accept connection, waking up ...`',
  },
  {
    class: 'auth',
    sqlState: /^08006$/,
    text: /^unable to accept connection, access denied/i,
    shown: '08006 `unable to accept connection, access denied`',
  },
  { class: 'auth', sqlState: /^28/, shown: '28000, 28P01' },
  {
    class: 'unavailable',
    sqlState: /^XX000$/,
    text: /^server unavailable/i,
    shown: 'XX000 `server unavailable`',
  },
  { class: 'permanent', sqlState: /^08P01$/, shown: '08P01' },
  { class: 'unavailable', sqlState: /^(08|57P0[1-3]$)/, shown: 'other 08..., 57P01, 57P02, 57P03' },
  { class: 'permanent', sqlState: /./, shown: 'any other SQLSTATE' },

  // Headgate's own errors.
  { class: 'condition_failed', code: /^HG_CONDITION_FAILED$/, shown: '`ConditionFailedError`' },
  {
    class: 'retryable',
    conflict: 'data',
    code: /^HG_OPTIMISTIC_CONFLICT$/,
    shown: '`OptimisticConflictError`',
  },
  {
    class: 'outcome_unknown',
    code: /^HG_COMMIT_OUTCOME_UNKNOWN$/,
    shown: '`CommitOutcomeUnknownError`',
  },
  { class: 'outcome_unknown', code: /^HG_DSQL_STATEMENT_TIMEOUT$/, shown: '`StatementTimeoutError`' },
  {
    class: 'connection_limit',
    code: /^HG_DSQL_CONNECT$/,
    reason: /^too_many_connections$/,
    shown: '`DsqlConnectError`: `too_many_connections`',
  },
  {
    class: 'rate_limit',
    code: /^HG_DSQL_CONNECT$/,
    reason: /^rate_exceeded$/,
    shown: '`DsqlConnectError`: `rate_exceeded`',
  },
  {
    class: 'auth',
    remedy: 'later',
    code: /^HG_DSQL_CONNECT$/,
    reason: /^token_unavailable$/,
    shown: '`DsqlConnectError`: `token_unavailable`',
  },
  {
    class: 'auth',
    code: /^HG_DSQL_CONNECT$/,
    reason: /^(token_expired|not_authorized)$/,
    shown: '`DsqlConnectError`: `token_expired`, `not_authorized`',
  },
  {
    class: 'unavailable',
    code: /^HG_DSQL_CONNECT$/,
    reason: /^(waking_up|network)$/,
    shown: '`DsqlConnectError`: `waking_up`, `network`',
  },
  { class: 'permanent', code: /^HG_DSQL_CONNECT$/, shown: '`DsqlConnectError`: all else' },
  {
    class: 'unavailable',
    code: /^(HG_CONNECT_FAILED|HG_DIAL_TIMEOUT|HG_CHECK_TIMEOUT|HG_LEASE_COORDINATOR)$/,
    defersToCause: true,
    shown: '`ConnectFailedError`, `DialTimeoutError`, `CheckTimeoutError`, `LeaseCoordinatorError`',
  },
  {
    class: 'connection_limit',
    code: /^(HG_RESERVOIR_EMPTY|HG_LEASE_LIMIT)$/,
    defersToCause: true,
    shown: '`ReservoirEmptyError`, `LeaseLimitError`',
  },
  {
    class: 'connection_limit',
    remedy: 'never',
    code: /^HG_ACQUIRE_TIMEOUT$/,
    defersToCause: true,
    shown: '`AcquireTimeoutError`, when opening does not fail: the caller has waited as long as it may',
  },
  {
    class: 'permanent',
    code: /^HG_TRANSACTION_RETRIES_EXHAUSTED$/,
    remedy: 'never',
    defersToCause: true,
    shown: '`TransactionRetriesExhaustedError` without a cause',
  },
  {
    class: 'permanent',
    code: /^HG_TRANSACTION_ROLLED_BACK$/,
    defersToCause: true,
    shown: '`TransactionRolledBackError` without a cause',
  },
  { class: 'permanent', code: /^HG_/, shown: 'any other error of Headgate' },

  // Prisma.
  { class: 'retryable', conflict: 'data', code: /^P2034$/, defersToCause: true, shown: 'Prisma P2034' },
  { class: 'auth', code: /^(P1000|P1010)$/, shown: 'Prisma P1000, P1010' },
  { class: 'unavailable', code: /^(P1001|P1002|P1008|P1017)$/, shown: 'Prisma P1001, P1002, P1008, P1017' },
  { class: 'connection_limit', remedy: 'never', code: /^P2024$/, shown: 'Prisma P2024' },
  { class: 'connection_limit', code: /^P2037$/, shown: 'Prisma P2037' },
  {
    class: 'connection_limit',
    code: /^P2028$/,
    text: /unable to start a transaction in the given time/i,
    remedy: 'never',
    shown: 'Prisma P2028 `Unable to start a transaction ...`',
  },
  { class: 'permanent', code: /^P[1-6]\d{3}$/, defersToCause: true, shown: 'any other error of Prisma' },

  // Sockets, and texts of node-postgres.
  {
    class: 'unavailable',
    code: /^(ECONN(REFUSED|RESET|ABORTED)|EHOST(UNREACH|DOWN)|ENET(UNREACH|DOWN)|ENOTFOUND|EAI_\w+|ETIMEDOUT|EPIPE|ERR_SOCKET_CLOSED|ERR_STREAM_DESTROYED)$/,
    shown: 'socket errors (`ECONNRESET`, `ETIMEDOUT`, `ENOTFOUND`, ...)',
  },
  {
    class: 'permanent',
    code: /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/,
    shown: 'TLS errors',
  },
  {
    class: 'unavailable',
    text: /^(connection terminated|client has encountered a connection error|client was closed and is not queryable|client network socket disconnected)/i,
    shown: '`Connection terminated ...`, `Client ... is not queryable`',
  },
  { class: 'outcome_unknown', text: /^query read timeout/i, shown: '`Query read timeout` (`query_timeout`)' },
  {
    class: 'connection_limit',
    remedy: 'never',
    text: /^timeout exceeded when trying to connect/i,
    shown: '`timeout exceeded when trying to connect` (pg.Pool)',
  },
  {
    class: 'permanent',
    text: /^cannot use a pool after calling end on the pool/i,
    shown: '`Cannot use a pool after calling end on the pool`',
  },

  // A wrapper that kept nothing but the text.
  {
    class: 'retryable',
    conflict: 'data',
    text: /conflicts with another transaction.{0,40}\(OC000\)/i,
    defersToCause: true,
    shown: 'a text with `(OC000)`',
  },
  {
    class: 'retryable',
    conflict: 'schema',
    text: /schema has been updated by another.{0,40}\(OC001\)/i,
    defersToCause: true,
    shown: 'a text with `(OC001)`',
  },
];

/** The first rule that holds for an error. */
export function ruleFor(facts: ErrorFacts): ErrorRule | undefined {
  return errorRules.find(
    (rule) =>
      holds(rule.sqlState, facts.sqlState) &&
      holds(rule.code, facts.code) &&
      holds(rule.text, facts.message) &&
      holds(rule.reason, facts.reason),
  );
}

function holds(condition: RegExp | undefined, value: string | undefined): boolean {
  return condition === undefined || (value !== undefined && condition.test(value));
}
