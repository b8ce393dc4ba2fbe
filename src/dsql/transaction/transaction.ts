/** `transaction`: a function that runs in a transaction, as often as it takes. */
import { OptionReader } from '../../kernel/option-reader.js';
import { refuseNesting } from './nesting.js';
import { runPgAttempt } from './pg-attempt.js';
import type { TransactionClient, TransactionPool } from './pg-shapes.js';
import { transactionsOf } from './pool-transactions.js';
import type { RetryOptions } from './retry-options.js';
import { type RetryContext, retryTransaction } from './retry-transaction.js';

/** Aurora DSQL has `repeatable read` only, which is its default. */
export type IsolationLevel = 'read committed' | 'repeatable read' | 'serializable';

/** Options of `transaction`. */
export interface TransactionOptions extends RetryOptions {
  /** Default: the server's. */
  readonly isolation?: IsolationLevel | undefined;
  /** The server refuses to change data. Default: false. */
  readonly readOnly?: boolean | undefined;
  /**
   * Tells whether the transaction was committed, when the answer to COMMIT was lost. Gets the client of a new read-only
   * transaction. Look for something that only this transaction writes, such as a row with an id made before the call.
   */
  readonly verify?: ((client: TransactionClient) => Promise<boolean>) | undefined;
}

/**
 * Runs `fn` in a transaction and resolves to what it returns. When the transaction loses a conflict, or its connection
 * before COMMIT, it is rolled back and the whole function runs again on another checkout: it must have no other effects, or ones that
 * can be repeated. An error of `fn` that no retry can cure is thrown as it is.
 *
 * @example
 * ```ts
 * import { transaction } from 'headgate/dsql';
 *
 * const sum = await transaction(pool, async (client) => {
 *   const { rows } = await client.query('SELECT $1::int + 1 AS sum', [41]);
 *   return rows[0].sum;
 * });
 * console.log(sum); // 42
 * ```
 */
export async function transaction<T>(
  pool: TransactionPool,
  fn: (client: TransactionClient) => T | Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const { isolation, readOnly, verify, ...retry } = options;
  const begin = readBegin(options);
  refuseNesting(pool);
  const context = transactionsOf(pool).context(retry.operation);
  // A transaction that changes nothing may be run twice.
  const retryOptions = readOnly ? { ...retry, idempotent: true } : retry;
  return retryTransaction(
    (attempt) => runPgAttempt(pool, { begin, end: 'COMMIT' }, fn, attempt),
    retryOptions,
    {
      ...context,
      verify: verify && ((signal) => askVerify(pool, verify, { ...retry, signal }, context)),
    },
  );
}

const isolations: readonly IsolationLevel[] = ['read committed', 'repeatable read', 'serializable'];

/** The text that begins the transaction. */
function readBegin({ isolation, readOnly, verify }: TransactionOptions): string {
  const read = new OptionReader({ isolation, readOnly, verify });
  const level = isolation && read.oneOf('isolation', 'repeatable read', isolations);
  const isReadOnly = read.boolean('readOnly', false);
  read.callback('verify', false);
  read.throwIfAnyProblem("the transaction's options");
  return `BEGIN${level === undefined ? '' : ` ISOLATION LEVEL ${level.toUpperCase()}`}${isReadOnly ? ' READ ONLY' : ''}`;
}

/** Asks in a transaction of its own, which may be repeated. */
async function askVerify(
  pool: TransactionPool,
  verify: (client: TransactionClient) => Promise<boolean>,
  options: RetryOptions,
  { budget, operation }: RetryContext,
): Promise<boolean> {
  const wasCommitted = await retryTransaction(
    (attempt) => runPgAttempt(pool, { begin: 'BEGIN READ ONLY', end: 'ROLLBACK' }, verify, attempt),
    { ...options, deadline: undefined },
    { budget, operation },
  );
  return wasCommitted === true;
}
