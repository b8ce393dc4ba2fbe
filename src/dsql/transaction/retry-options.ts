/** How a transaction is retried, as callers say it and as the decisions need it. */
import type { BackoffPolicy } from '../../core/backoff.js';
import type { Duration } from '../../kernel/duration.js';
import { OptionReader } from '../../kernel/option-reader.js';
import type { RetryBudget } from './retry-budget.js';

/** Options of `transaction` that have to do with retries. */
export interface RetryOptions {
  /** Name in metrics. Only the first 100 names of a pool are kept; the others become `other`. Default: `transaction`. */
  readonly operation?: string | undefined;
  /** Attempts, the first one included. Default: 20. */
  readonly maxAttempts?: number | undefined;
  /** No retry begins later than this after the call. Default: 30 s. */
  readonly retryFor?: Duration | undefined;
  /** The whole call ends by then, even in the middle of an attempt. Default: none. */
  readonly deadline?: Duration | undefined;
  /** Ends the call. During COMMIT, its outcome is unknown then. */
  readonly signal?: AbortSignal | undefined;
  /** Waits after a conflict: at random, up to a ceiling that doubles from `backoffBase` to `backoffCap`. Default: 10 ms, 1 s. */
  readonly backoffBase?: Duration | undefined;
  readonly backoffCap?: Duration | undefined;
  /** Waits when the server can't be reached. Default: 100 ms, 5 s. */
  readonly outageBackoffBase?: Duration | undefined;
  readonly outageBackoffCap?: Duration | undefined;
  /** Run it again, too, when it may already have been committed. Default: false. */
  readonly idempotent?: boolean | undefined;
  /** Default: one for each pool. */
  readonly budget?: RetryBudget | undefined;
}

/** Checked options, in milliseconds. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly retryFor: number;
  readonly deadline: number;
  readonly conflictBackoff: BackoffPolicy;
  readonly outageBackoff: BackoffPolicy;
  readonly idempotent: boolean;
}

const never = Number.POSITIVE_INFINITY;

/** `known`: further options, which are read elsewhere. */
export function readRetryOptions(options: RetryOptions, known: readonly string[] = []): RetryPolicy {
  const read = new OptionReader(options);
  const policy: RetryPolicy = {
    maxAttempts: read.integer('maxAttempts', 20, { min: 1, max: 1_000, orInfinity: true }),
    retryFor: read.duration('retryFor', 30_000, never),
    deadline: read.duration('deadline', never, never),
    conflictBackoff: {
      base: read.duration('backoffBase', 10, 0),
      cap: read.duration('backoffCap', 1_000, 0),
    },
    outageBackoff: {
      base: read.duration('outageBackoffBase', 100, 0),
      cap: read.duration('outageBackoffCap', 5_000, 0),
    },
    idempotent: read.boolean('idempotent', false),
  };
  if (options.operation !== undefined && typeof options.operation !== 'string')
    read.problem('operation', 'must be a text');
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal))
    read.problem('signal', 'must be an AbortSignal');
  read.object<RetryBudget>('budget', ['request', 'committed']);
  for (const name of ['operation', 'signal', ...known]) read.has(name);
  read.refuseUnknown();
  read.throwIfAnyProblem("the transaction's options");
  return policy;
}
