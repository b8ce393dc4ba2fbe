/**
 * What repeated dial failures mean for the next dial.
 *
 *     closed --failure--> closed, next dial after a backoff
 *     closed --the threshold's failure in a row--> open: no dial until the backoff is over
 *     open --backoff over--> half-open: one probe at a time --success--> closed
 *                                                           \-failure--> open, longer
 *
 * While it is open, a caller that nothing else could serve is told so at once instead of after its timeout.
 */
import type { Random } from '../kernel/random.js';
import { type BackoffPolicy, backoffDelay } from './backoff.js';

/** closed: dialing works; open: it keeps failing; half-open: one probe is allowed. */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerPolicy extends BackoffPolicy {
  /** Failures in a row that open it. */
  readonly threshold: number;
}

export class Breaker {
  readonly #policy: BreakerPolicy;
  readonly #random: Random;
  #failures = 0;
  #retryAt = Number.NEGATIVE_INFINITY;
  #lastError: Error | undefined;

  constructor(policy: BreakerPolicy, random: Random) {
    this.#policy = policy;
    this.#random = random;
  }

  /** Failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** No dial before this time. */
  get retryAt(): number {
    return this.#retryAt;
  }

  /** Why the last dial failed; undefined after a success. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  state(now: number): BreakerState {
    if (this.#failures < this.#policy.threshold) return 'closed';
    return now < this.#retryAt ? 'open' : 'half-open';
  }

  /** Whether a dial may begin while `underWay` others are going on. */
  allows(now: number, underWay: number): boolean {
    if (now < this.#retryAt) return false;
    return this.#failures < this.#policy.threshold || underWay === 0;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#retryAt = Number.NEGATIVE_INFINITY;
    this.#lastError = undefined;
  }

  failed(error: Error, now: number): void {
    this.#failures++;
    this.#lastError = error;
    // Several dials of one wave fail together; they may move the retry away, never closer.
    this.#retryAt = Math.max(this.#retryAt, now + backoffDelay(this.#policy, this.#failures, this.#random));
  }
}
