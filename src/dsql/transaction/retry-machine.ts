/**
 * Decides what comes after an attempt. No clock, timer or I/O of its own.
 *
 *     attempt --succeeded--> done
 *     attempt --failed-----> retry (after a delay) | verify | throw the error | exhausted | outcome unknown
 *     verify  --committed--> done
 *     verify  --not--------> as after `failed`, without doubt about this attempt
 *     verify  --no answer--> outcome unknown
 *
 * Doubt: an attempt whose COMMIT was not answered may have been committed, and may yet be. With a `verify`, it is asked
 * after every later failure, too. Without one, no end but a commit can take the doubt away: it ends as outcome unknown.
 */
import { backoffDelay } from '../../core/backoff.js';
import type { Random } from '../../kernel/random.js';
import type { ErrorClassification } from '../classify/error-class.js';
import type { ExhaustedReason, TransactionPhase } from './errors.js';
import type { RetryPolicy } from './retry-options.js';

export type NextStep =
  | { readonly next: 'retry'; readonly delayMs: number }
  | { readonly next: 'verify' | 'throw' | 'outcome_unknown' | 'committed' }
  | { readonly next: 'exhausted'; readonly reason: ExhaustedReason };

/** An attempt that failed. */
export interface FailedAttempt {
  readonly failure: ErrorClassification;
  readonly phase: TransactionPhase;
  readonly tookMs: number;
}

export class RetryMachine {
  readonly #policy: RetryPolicy;
  readonly #canVerify: boolean;
  readonly #random: Random;
  readonly #retryUntil: number;
  #conflicts = 0;
  #outages = 0;
  /** The failure that is being decided about. */
  #failed: FailedAttempt | undefined;
  #isLost = false;
  /** Attempts begun. */
  attempts = 0;
  /** An attempt may have been committed though its answer was lost. */
  isInDoubt = false;

  constructor(policy: RetryPolicy, canVerify: boolean, random: Random, now: number) {
    this.#policy = policy;
    this.#canVerify = canVerify;
    this.#random = random;
    this.#retryUntil = now + policy.retryFor;
  }

  /** The number of the attempt that begins. */
  begin(): number {
    return ++this.attempts;
  }

  failed(attempt: FailedAttempt, now: number): NextStep {
    const { failure, phase } = attempt;
    this.#failed = attempt;
    this.#isLost = phase === 'committing' && leavesOutcomeUnknown(failure);
    if (this.#isLost) this.isInDoubt = true;
    if (this.isInDoubt && this.#canVerify) return { next: 'verify' };
    if (this.#isLost && !this.#policy.idempotent) return { next: 'outcome_unknown' };
    return this.#again(now);
  }

  /** `verify` answered; undefined when it could not be asked. */
  verified(wasCommitted: boolean | undefined, now: number): NextStep {
    if (wasCommitted === undefined) return { next: 'outcome_unknown' };
    return wasCommitted ? { next: 'committed' } : this.#again(now);
  }

  /** The budget has no room for a request of this transaction. */
  refused(): NextStep {
    return this.#end({ next: 'exhausted', reason: 'budget' });
  }

  /** The wait for the budget took too long. */
  isTooLate(now: number): boolean {
    return now > this.#retryUntil;
  }

  get retryUntil(): number {
    return this.#retryUntil;
  }

  tooLate(): NextStep {
    return this.#end({ next: 'exhausted', reason: 'time' });
  }

  #again(now: number): NextStep {
    const { failure, tookMs } = this.#failed as FailedAttempt;
    if (!this.#isLost && failure.remedy !== 'retry' && failure.remedy !== 'later')
      return this.#end({ next: 'throw' });
    if (this.attempts >= this.#policy.maxAttempts)
      return this.#end({ next: 'exhausted', reason: 'attempts' });
    const delayMs = this.#delay(failure, tookMs);
    return now + delayMs > this.#retryUntil ? this.tooLate() : { next: 'retry', delayMs };
  }

  /**
   * After a conflict, the first ceiling is at least as long as the attempt took: the winner was not done earlier. A conflict of
   * schemas is cured by the first retry, because the session has read the catalog anew.
   */
  #delay(failure: ErrorClassification, tookMs: number): number {
    const { conflictBackoff, outageBackoff } = this.#policy;
    if (failure.class !== 'retryable')
      return Math.max(failure.retryAfterMs ?? 0, backoffDelay(outageBackoff, ++this.#outages, this.#random));
    const base = Math.max(conflictBackoff.base, tookMs);
    const delay = backoffDelay({ base, cap: conflictBackoff.cap }, ++this.#conflicts, this.#random);
    return failure.conflict === 'schema' && this.#conflicts === 1 ? 0 : delay;
  }

  #end(step: NextStep): NextStep {
    return this.isInDoubt && !this.#canVerify ? { next: 'outcome_unknown' } : step;
  }
}

/** States in which the server may fail after it has committed. */
const uncertainStates = /^(XX|08|57P0|58|40003$)/;

/** True if COMMIT may have taken effect in spite of this answer: there was none, or one that says nothing about it. */
export function leavesOutcomeUnknown(failure: ErrorClassification): boolean {
  switch (failure.class) {
    case 'outcome_unknown':
    case 'unavailable':
    case 'unknown':
      return true;
    default:
      return failure.sqlState !== undefined && uncertainStates.test(failure.sqlState);
  }
}
