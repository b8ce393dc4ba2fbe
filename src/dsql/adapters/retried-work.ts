/** Transactions of an ORM as attempts: the ORM begins, commits and rolls back, and is called again after a conflict. */
import { OptionReader } from '../../kernel/option-reader.js';
import { classifyError } from '../classify/classify-error.js';
import { TransactionRolledBackError } from '../transaction/errors.js';
import { insideTransaction, refuseNesting } from '../transaction/nesting.js';
import { transactionsOf } from '../transaction/pool-transactions.js';
import { readRetryOptions } from '../transaction/retry-options.js';
import { type Attempt, type RunAttempt, retryTransaction } from '../transaction/retry-transaction.js';
import type { AdapterOptions } from './adapter-options.js';
import { OrmCheckout } from './orm-checkout.js';

/** Runs one transaction of the ORM around a function, as the ORM's own method does. */
export type Begin<Tx, T> = (work: (transaction: Tx) => Promise<T>) => Promise<T>;

/** Retries the transactions of one object of an ORM. */
export class RetriedWork {
  readonly #pool: object;
  readonly #options: AdapterOptions;

  /** `standIn`: what the transactions have in common where no pool is given. */
  constructor(standIn: object, options: AdapterOptions) {
    checkOptions(options);
    this.#pool = options.pool ?? standIn;
    this.#options = options;
  }

  /** `work` runs once in each attempt. */
  run<Tx, T>(begin: Begin<Tx, T>, work: (transaction: Tx) => T | Promise<T>): Promise<T> {
    const inside = (transaction: Tx): Promise<T> => insideTransaction(this.#pool, () => work(transaction));
    return this.#retry(async (attempt) => {
      const checkout = new OrmCheckout(this.#pool, attempt.signal);
      const value = await checkout.run(() => runAround(attempt, checkout, begin, inside));
      if (!checkout.isRolledBack) return value;
      attempt.rolledBack();
      throw new TransactionRolledBackError(checkout.firstError);
    }, this.#options.verify);
  }

  /**
   * Statements without a function between them: the ORM does not tell when COMMIT is sent. Each failure is taken for one of COMMIT,
   * as far as it could be. `verify` is of no use: with a lost answer, the results are lost, too. Nor is `OrmCheckout`: Prisma sends the
   * batches of one turn of the event loop in the asynchronous context of the first.
   */
  runBatch<T>(send: () => Promise<T>): Promise<T> {
    return this.#retry((attempt) => runUnseen(attempt, send), undefined);
  }

  async #retry<T>(run: RunAttempt<T>, verify: AdapterOptions['verify']): Promise<T> {
    refuseNesting(this.#pool);
    const { pool: _pool, verify: _verify, ...options } = this.#options;
    const context = transactionsOf(this.#pool).context(options.operation);
    return retryTransaction(run, options, { ...context, verify });
  }
}

async function runAround<Tx, T>(
  attempt: Attempt<T>,
  checkout: OrmCheckout,
  begin: Begin<Tx, T>,
  work: (transaction: Tx) => Promise<T>,
): Promise<T> {
  let thrown: { readonly error: unknown } | undefined;
  try {
    return await begin(async (transaction) => {
      attempt.began();
      checkout.isComplete = true;
      try {
        const value = await work(transaction);
        attempt.committing(value);
        return value;
      } catch (error) {
        thrown = { error };
        throw error;
      }
    });
  } catch (error) {
    // A rollback that fails hides the error that was the reason for it.
    throw thrown === undefined ? error : thrown.error;
  }
}

async function runUnseen<T>(attempt: Attempt<T>, send: () => Promise<T>): Promise<T> {
  attempt.committing(undefined as T);
  try {
    return await send();
  } catch (error) {
    if (isFromPool(error)) attempt.rolledBack();
    throw error;
  }
}

/** True if the pool had no connection to lend, so that nothing was sent. */
function isFromPool(error: unknown): boolean {
  const { code } = Object(classifyError(error).error) as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('HG_');
}

/** Wrong options are refused when the adapter is made, not at its first transaction. */
function checkOptions({ pool, verify, ...options }: AdapterOptions): void {
  readRetryOptions(options);
  const read = new OptionReader({ pool, verify });
  read.object<object>('pool', []);
  read.callback('verify', false);
  read.throwIfAnyProblem("the adapter's options");
}
