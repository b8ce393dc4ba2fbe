/** Counts the events of a pool's transactions, by operation. Bounded: operations and classes beyond a limit are counted as `other`. */
import { onMessages } from './pool-messages.js';
import { TimeHistogram } from './time-histogram.js';

/** Operations that have series of their own. */
const mostOperations = 50;
const mostErrorClasses = 30;
/** Retries after this attempt and later ones are counted together. */
const lastAttempt = 10;

/** Classes of errors that have a series from the first transaction of an operation on, at 0: those of `classifyError`. */
const knownErrorClasses = [
  'retryable',
  'condition_failed',
  'unsupported_feature',
  'connection_limit',
  'rate_limit',
  'transaction_limit',
  'auth',
  'unavailable',
  'outcome_unknown',
  'permanent',
  'unknown',
] as const;

/** The label of transactions that are not named. */
const unnamedOperation = 'transaction';

/** The label for a retry after this attempt. */
function attemptLabel(attempt: number): string {
  return attempt < lastAttempt ? String(attempt) : `${lastAttempt}+`;
}

/** Keeps label values from growing without a limit. */
class BoundedWords {
  readonly #known = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** The word itself, or `other` once there are too many. */
  of(word: string): string {
    if (this.#known.has(word)) return word;
    if (this.#known.size >= this.#most) return 'other';
    this.#known.add(word);
    return word;
  }
}

export class OperationTally {
  conflicts = 0;
  exhausted = 0;
  /** By attempt and by class; every known one is there from the start, so that rates see the first event. */
  readonly retries = new Map(
    Array.from({ length: lastAttempt }, (_, before) => [attemptLabel(before + 1), 0] as const),
  );
  readonly errors = new Map<string, number>(knownErrorClasses.map((word) => [word, 0]));
  readonly latency = new TimeHistogram();
  readonly backoff = new TimeHistogram();
}

/** Records the events of transactions, with label values that are bounded. */
export interface TransactionRecorder {
  conflict(operation: string): void;
  /** For each failed attempt. */
  error(operation: string, errorClass: string): void;
  retry(operation: string, attempt: string, backoffMs: number): void;
  exhausted(operation: string): void;
  ended(operation: string, durationMs: number): void;
}

/** Records the transactions of one pool until the function that it returns is called. */
export function recordTransactions(pool: object, recorder: TransactionRecorder): () => void {
  const operations = new BoundedWords(mostOperations);
  const classes = new BoundedWords(mostErrorClasses);
  return onMessages(pool, {
    'headgate:transaction:conflict': ({ operation }) => recorder.conflict(operations.of(operation)),
    'headgate:transaction:retry': ({ operation: given, attempt, errorClass, backoffMs }) => {
      const operation = operations.of(given);
      recorder.error(operation, classes.of(errorClass));
      recorder.retry(operation, attemptLabel(attempt), backoffMs);
    },
    'headgate:transaction:exhausted': ({ operation }) => recorder.exhausted(operations.of(operation)),
    'headgate:transaction:committed': ({ operation, durationMs }) =>
      recorder.ended(operations.of(operation), durationMs),
    'headgate:transaction:failed': ({ operation: given, errorClass, durationMs }) => {
      const operation = operations.of(given);
      recorder.error(operation, classes.of(errorClass));
      recorder.ended(operation, durationMs);
    },
  });
}

/** The figures that Prometheus reads at every scrape. */
export class TransactionTally implements TransactionRecorder {
  readonly operations = new Map<string, OperationTally>();

  /** `isExpected`: the pool has transactions that retry, so that those without a name have series before the first one. */
  constructor(isExpected = false) {
    if (isExpected) this.#of(unnamedOperation);
  }

  conflict(operation: string): void {
    this.#of(operation).conflicts++;
  }

  error(operation: string, errorClass: string): void {
    increment(this.#of(operation).errors, errorClass);
  }

  retry(operation: string, attempt: string, backoffMs: number): void {
    const tally = this.#of(operation);
    increment(tally.retries, attempt);
    tally.backoff.record(backoffMs);
  }

  exhausted(operation: string): void {
    this.#of(operation).exhausted++;
  }

  ended(operation: string, durationMs: number): void {
    this.#of(operation).latency.record(durationMs);
  }

  #of(operation: string): OperationTally {
    const known = this.operations.get(operation);
    if (known !== undefined) return known;
    const made = new OperationTally();
    this.operations.set(operation, made);
    return made;
  }
}

function increment(counts: Map<string, number>, word: string): void {
  counts.set(word, (counts.get(word) ?? 0) + 1);
}
