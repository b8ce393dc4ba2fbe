/** Errors of transactions that are retried. */
import { formatDuration } from '../../kernel/duration.js';
import { HeadgateError } from '../../kernel/errors.js';
import { classifyError } from '../classify/classify-error.js';

/** How far an attempt has come; before `committing`, nothing of it can have been kept. */
export type TransactionPhase = 'connecting' | 'running' | 'committing';

/** `attempts`: as many as allowed. `time`: the next one would begin too late. `budget`: too many others wait to retry. */
export type ExhaustedReason = 'attempts' | 'time' | 'budget';

/** All attempts failed for a reason that a retry may cure. Nothing was kept. `cause` is the last attempt's error. */
export class TransactionRetriesExhaustedError extends HeadgateError {
  readonly attempts: number;
  readonly elapsedMs: number;
  readonly reason: ExhaustedReason;

  constructor(attempts: number, elapsedMs: number, reason: ExhaustedReason, cause: unknown) {
    const tried = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
    super(
      'HG_TRANSACTION_RETRIES_EXHAUSTED',
      `The transaction failed ${tried} in ${formatDuration(Math.round(elapsedMs))}, and nothing of it was kept; ` +
        `the last error: ${messageOf(cause)}. ${exhaustedAdvice[reason]}`,
      { cause },
    );
    this.attempts = attempts;
    this.elapsedMs = elapsedMs;
    this.reason = reason;
  }
}

const exhaustedAdvice: Readonly<Record<ExhaustedReason, string>> = {
  attempts: 'Make transactions shorter, spread hot rows, or raise maxAttempts.',
  time: 'Make transactions shorter, spread hot rows, or raise retryFor.',
  budget: 'Too many transactions wait to be retried: lower the load, or raise the retry budget.',
};

/** The answer to COMMIT was lost: the transaction was committed, or not. `cause` is what came in place of the answer. */
export class CommitOutcomeUnknownError extends HeadgateError {
  readonly attempts: number;
  /** Why `verify` could not answer. */
  readonly verifyError: unknown;

  constructor(attempts: number, cause: unknown, verifyError?: unknown) {
    super(
      'HG_COMMIT_OUTCOME_UNKNOWN',
      `The answer to COMMIT was lost (${messageOf(cause)}): the transaction was committed, or not. ` +
        'Find out before it is run again, or pass verify or idempotent: true.',
      { cause },
    );
    this.attempts = attempts;
    this.verifyError = verifyError;
  }
}

/** The caller's AbortSignal fired before COMMIT was sent; nothing was kept. `cause` is the signal's reason. */
export class TransactionAbortedError extends HeadgateError {
  constructor(reason: unknown) {
    super('HG_TRANSACTION_ABORTED', 'The transaction was ended by its signal, and nothing of it was kept.', {
      cause: reason,
    });
  }
}

/** The transaction's deadline passed before COMMIT was sent; nothing was kept. `cause` is the last error, if any. */
export class TransactionTimeoutError extends HeadgateError {
  readonly attempts: number;

  constructor(deadlineMs: number, attempts: number, cause: unknown) {
    super(
      'HG_TRANSACTION_TIMEOUT',
      `The transaction was not committed within its deadline of ${formatDuration(deadlineMs)} ` +
        `(${attempts === 1 ? '1 attempt' : `${attempts} attempts`}), and nothing of it was kept.`,
      cause === undefined ? undefined : { cause },
    );
    this.attempts = attempts;
  }
}

/** Message of the error that an ORM has wrapped: the wrapper's own text has the statement and its values. */
function messageOf(cause: unknown): string {
  const { error } = classifyError(cause);
  const { message, originalMessage } = Object(error) as { message?: unknown; originalMessage?: unknown };
  const text = message ?? originalMessage ?? error;
  return String(text).slice(0, 300).replace(/\.$/, '');
}

/**
 * - `nested`: a transaction was begun inside another one of the same pool.
 * - `release`: the function gave its client back, or closed it.
 * - `control`: the function sent BEGIN, COMMIT or ROLLBACK itself; it was not executed.
 * - `savepoint`: a transaction of an ORM inside another one, which would be a savepoint.
 * - `ended`: the client was used after its transaction.
 * - `ended_inside`: the function has ended the transaction by a statement that could not be seen beforehand.
 */
export type TransactionMisuse = 'nested' | 'release' | 'control' | 'savepoint' | 'ended' | 'ended_inside';

const misuses: Readonly<Record<TransactionMisuse, string>> = {
  nested:
    'A transaction was begun inside another transaction of the same pool: it would run on another connection, and might wait for ' +
    "its own outer transaction. Use the outer transaction's client.",
  release:
    'The client belongs to its transaction, which gives it back by itself: do not release or close it.',
  control: 'Transactions are begun and ended by transaction(): return to commit, throw to roll back.',
  savepoint:
    'A transaction inside a transaction is a savepoint, which Aurora DSQL does not have. Use the outer transaction: what must ' +
    'be kept or undone together belongs into one.',
  ended:
    'The client was used after its transaction had ended. Await every query before the function returns.',
  ended_inside:
    'The transaction was no longer open when its function returned: the function has committed it or rolled it back itself.',
};

/** The function of a transaction did what it must not do. */
export class TransactionMisuseError extends HeadgateError {
  readonly misuse: TransactionMisuse;

  constructor(misuse: TransactionMisuse) {
    super('HG_TRANSACTION_MISUSE', misuses[misuse]);
    this.misuse = misuse;
  }
}

/** COMMIT rolled back, because a statement had failed and its error was not passed on. `cause` is that error. */
export class TransactionRolledBackError extends HeadgateError {
  constructor(cause: unknown) {
    super(
      'HG_TRANSACTION_ROLLED_BACK',
      'The transaction was rolled back: one of its statements had failed, and its function returned all the same' +
        `${cause === undefined ? '' : ` (${messageOf(cause)})`}. Let errors of statements reach the caller.`,
      cause === undefined ? undefined : { cause },
    );
  }
}
