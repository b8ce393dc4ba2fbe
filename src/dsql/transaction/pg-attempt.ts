/** One attempt on a client of node-postgres: check out, BEGIN, the function, COMMIT, give back. */

import { HeadgateError } from '../../kernel/errors.js';
import { systemAlarm, systemClock } from '../../runtime/system.js';
import { classifyError } from '../classify/classify-error.js';
import { TransactionMisuseError, TransactionRolledBackError } from './errors.js';
import { GuardedClient, leavesNoAnswer } from './guarded-client.js';
import { insideTransaction } from './nesting.js';
import {
  type CheckedOutClient,
  checkOut,
  type TransactionClient,
  type TransactionPool,
} from './pg-shapes.js';
import type { Attempt } from './retry-transaction.js';

/** A ROLLBACK that takes longer is given up, together with its connection. */
const rollbackLimitMs = 5_000;
/** Answer to a statement after one that has failed. */
const transactionHasFailed = '25P02';

/** How a transaction begins and ends. */
export interface TransactionBounds {
  readonly begin: string;
  readonly end: 'COMMIT' | 'ROLLBACK';
}

export async function runPgAttempt<T>(
  pool: TransactionPool,
  bounds: TransactionBounds,
  fn: (client: TransactionClient) => T | Promise<T>,
  attempt: Attempt<T>,
): Promise<T> {
  const session = new Session(await checkOut(pool, attempt.signal), attempt.signal);
  try {
    const value = await session.run(bounds, (client) => insideTransaction(pool, () => fn(client)), attempt);
    session.giveBack();
    return value;
  } catch (error) {
    await session.undo(error);
    throw session.explain(error);
  }
}

/** One checkout, and what is known about its connection. */
class Session {
  readonly #client: CheckedOutClient;
  readonly #guard: GuardedClient;
  readonly #signal: AbortSignal;
  #isGivenBack = false;
  #lostError: Error | undefined;

  constructor(client: CheckedOutClient, signal: AbortSignal) {
    this.#client = client;
    this.#guard = new GuardedClient(client);
    this.#signal = signal;
    client.on?.('error', this.#lost);
    signal.addEventListener('abort', this.#stopped, { once: true });
  }

  async run<T>(
    { begin, end }: TransactionBounds,
    fn: (client: TransactionClient) => Promise<T>,
    attempt: Attempt<T>,
  ): Promise<T> {
    await this.#client.query(begin);
    attempt.began();
    const value = await fn(this.#guard.client);
    this.#guard.close();
    this.#checkOpen();
    if (end === 'COMMIT') attempt.committing(value);
    const { command } = await this.#client.query(end);
    if (command === 'ROLLBACK' && end === 'COMMIT') {
      attempt.rolledBack();
      throw new TransactionRolledBackError(this.#guard.firstError);
    }
    return value;
  }

  /** True if there is still something to commit, as far as the client tells. */
  #checkOpen(): void {
    if (this.#lostError !== undefined) throw this.#lostError;
    const status = this.#client.getTransactionStatus?.();
    if (status === 'I') throw new TransactionMisuseError('ended_inside');
    if (status === 'E') throw new TransactionRolledBackError(this.#guard.firstError);
  }

  /** Rolls back and gives the client back; one that can't roll back is discarded. Never rejects. */
  async undo(error: unknown): Promise<void> {
    this.#guard.close();
    if (this.#isGivenBack) return;
    if (this.#lostError !== undefined || this.#guard.isLost || leavesNoAnswer(error)) {
      this.giveBack(asError(error));
      return;
    }
    if (this.#client.getTransactionStatus?.() === 'I') {
      this.giveBack();
      return;
    }
    const limit = systemAlarm(() => this.giveBack(new Error('ROLLBACK was not answered in time')));
    limit.set(systemClock.now() + rollbackLimitMs, true);
    await this.#client.query('ROLLBACK').then(
      () => this.giveBack(),
      (failure: unknown) => this.giveBack(asError(failure)),
    );
    limit.clear();
  }

  giveBack(error?: Error): void {
    if (this.#isGivenBack) return;
    this.#isGivenBack = true;
    this.#guard.close();
    this.#signal.removeEventListener('abort', this.#stopped);
    this.#client.release(error);
    // A socket that fails while it is closed says so yet.
    if (error === undefined) this.#client.removeListener?.('error', this.#lost);
  }

  /** The error that made this one happen, where it says less. */
  explain(error: unknown): unknown {
    const lost = this.#lostError;
    // A limit of Headgate has closed the connection.
    if (lost instanceof HeadgateError && leavesNoAnswer(error)) return lost;
    const { sqlState, error: decisive } = classifyError(error);
    const { firstError } = this.#guard;
    if (sqlState !== transactionHasFailed || firstError === undefined) return error;
    const { remedy } = classifyError(firstError);
    return remedy === 'retry' || remedy === 'later' || decisive === error ? firstError : error;
  }

  readonly #lost = (error: Error): void => {
    this.#lostError ??= error;
  };

  /** The caller has stopped waiting: closing the connection ends what the server does for it. */
  readonly #stopped = (): void => {
    this.giveBack(new Error('The transaction was ended by its caller.'));
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
