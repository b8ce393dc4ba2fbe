/** The classes of database errors, and what to do about each. docs/dsql-transactions.md prints this table. */

/**
 * - `retryable`: the transaction lost a conflict (40001); nothing of it was kept.
 * - `condition_failed`: a fenced update found another token.
 * - `unsupported_feature`: DSQL does not have what the statement asks for.
 * - `connection_limit`, `rate_limit`: no connection, because there are too many, or because they are opened too fast.
 * - `transaction_limit`: more rows, bytes, time or objects than DSQL allows.
 * - `auth`: the credentials or the token were refused, or there was no token.
 * - `unavailable`: the server was not reached, hung up, or says that it is unavailable.
 * - `outcome_unknown`: it may have been committed.
 * - `permanent`: the server or the pool refused, and will do so again.
 * - `unknown`: no error of a database, as far as can be told.
 */
export type ErrorClass =
  | 'retryable'
  | 'condition_failed'
  | 'unsupported_feature'
  | 'connection_limit'
  | 'rate_limit'
  | 'transaction_limit'
  | 'auth'
  | 'unavailable'
  | 'outcome_unknown'
  | 'permanent'
  | 'unknown';

/** `data`: another transaction changed the same rows (OC000). `schema`: another one changed the catalog (OC001). */
export type Conflict = 'data' | 'schema';

/**
 * - `retry`: run the whole transaction again.
 * - `later`: run it again after a while.
 * - `find_out`: find out whether it was committed before anything else.
 * - `never`: change the statement, the configuration or the data.
 */
export type ErrorRemedy = 'retry' | 'later' | 'find_out' | 'never';

interface ClassDescription {
  readonly meaning: string;
  /** Unless the rule that matched says otherwise. */
  readonly remedy: ErrorRemedy;
}

export const errorClasses: Readonly<Record<ErrorClass, ClassDescription>> = {
  retryable: { meaning: 'lost a conflict with another transaction; nothing was kept', remedy: 'retry' },
  condition_failed: { meaning: 'a fenced update found another token, or no row', remedy: 'never' },
  unsupported_feature: { meaning: 'DSQL does not have this', remedy: 'never' },
  connection_limit: { meaning: 'no connection: too many are open', remedy: 'later' },
  rate_limit: { meaning: 'no connection: they are opened too fast', remedy: 'later' },
  transaction_limit: { meaning: 'more rows, bytes, time or objects than DSQL allows', remedy: 'never' },
  auth: { meaning: 'credentials or token refused, or no token to be had', remedy: 'never' },
  unavailable: { meaning: 'the server was not reached, hung up, or is unavailable', remedy: 'later' },
  outcome_unknown: { meaning: 'it may have been committed, or not', remedy: 'find_out' },
  permanent: { meaning: 'refused, and will be refused again', remedy: 'never' },
  unknown: { meaning: 'no error of a database, as far as can be told', remedy: 'never' },
};

/** Answer of `classifyError`. */
export interface ErrorClassification {
  readonly class: ErrorClass;
  readonly remedy: ErrorRemedy;
  /** Kind of conflict of a `retryable` error. */
  readonly conflict: Conflict | undefined;
  /** The server's code, where the server answered. */
  readonly sqlState: string | undefined;
  /** Milliseconds to wait at least, where the error tells. */
  readonly retryAfterMs: number | undefined;
  /** The one among the causes that decided. */
  readonly error: unknown;
}
