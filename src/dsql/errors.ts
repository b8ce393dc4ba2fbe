/** Errors on the way to a cluster, and of the limits kept for it. No message carries a token. */
import { formatDuration } from '../kernel/duration.js';
import { HeadgateError } from '../kernel/errors.js';

/**
 * Why a cluster could not be connected to.
 *
 * - `too_many_connections`, `rate_exceeded`: a quota of the cluster.
 * - `token_expired`: the server found the token too old, also when it was new.
 * - `not_authorized`: the credentials may not connect, or not as this user.
 * - `waking_up`: the cluster was idle and is being started.
 * - `no_sni`: something on the way took the server's name out of the TLS handshake.
 * - `token_unavailable`: there was no token to connect with.
 * - `tls`: the server's certificate or the handshake.
 * - `network`: the server was not reached, or hung up.
 * - `refused`: all else that the server said.
 * - `other`: all else.
 */
export type ConnectFailure =
  | 'too_many_connections'
  | 'rate_exceeded'
  | 'token_expired'
  | 'not_authorized'
  | 'waking_up'
  | 'no_sni'
  | 'token_unavailable'
  | 'tls'
  | 'network'
  | 'refused'
  | 'other';

/** The remedy: `later` after a while, `fresh_token` a new token, `never` nothing but a change by a person. */
export type ConnectRemedy = 'later' | 'fresh_token' | 'never';

/** A cluster could not be connected to; `reason` says why in a word, `advice` what to do, `cause` is the error as it came. */
export class DsqlConnectError extends HeadgateError {
  readonly reason: ConnectFailure;
  readonly remedy: ConnectRemedy;
  readonly advice: string;
  /** The server's answer, where there was one. */
  readonly sqlState: string | undefined;
  readonly hint: string | undefined;

  constructor(
    reason: ConnectFailure,
    { remedy, advice }: { readonly remedy: ConnectRemedy; readonly advice: string },
    cause: Error,
  ) {
    const { code, hint, severity } = cause as { code?: unknown; hint?: unknown; severity?: unknown };
    const said = typeof hint === 'string' && hint !== '' ? ` (${hint})` : '';
    super('HG_DSQL_CONNECT', `${reason}: ${String(cause.message).replace(/\.$/, '')}${said}. ${advice}`, {
      cause,
    });
    this.reason = reason;
    this.remedy = remedy;
    this.advice = advice;
    this.sqlState = typeof severity === 'string' && typeof code === 'string' ? code : undefined;
    this.hint = typeof hint === 'string' ? hint : undefined;
  }
}

/** `@aws-sdk/dsql-signer` is not installed, and no other source of tokens was given. */
export class SignerMissingError extends HeadgateError {
  constructor(cause: unknown) {
    super(
      'HG_DSQL_SIGNER_MISSING',
      'Tokens are signed by @aws-sdk/dsql-signer, which could not be loaded: install it, or give a tokenProvider.',
      { cause },
    );
  }
}

/** A statement took longer than `statementTimeoutMillis`. Its connection was closed; whether it took effect is unknown. */
export class StatementTimeoutError extends HeadgateError {
  constructor(limitMs: number) {
    super(
      'HG_DSQL_STATEMENT_TIMEOUT',
      `The statement took longer than ${formatDuration(limitMs)}, and its connection was closed. ` +
        'Outside a transaction, and for COMMIT, whether it took effect is unknown.',
    );
  }
}

/** A transaction was left alone for longer than `idleInTransactionTimeoutMillis`. Its connection was closed. */
export class IdleInTransactionError extends HeadgateError {
  constructor(limitMs: number) {
    super(
      'HG_DSQL_IDLE_IN_TRANSACTION',
      `The transaction was idle for longer than ${formatDuration(limitMs)}, and its connection was closed: ` +
        'nothing of it was kept.',
    );
  }
}
