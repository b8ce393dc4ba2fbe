/**
 * The consequences of repeated dial failures for the next dial.
 *
 *     closed --failure--> closed, next dial after a backoff
 *     closed --the threshold's failure in a row--> open: no dial until the backoff is over
 *     open --backoff over--> half_open: one probe at a time --success--> closed
 *                                                           \-failure--> open, longer
 *
 * While the breaker is open, a caller that no existing connection could serve fails at once instead of after its
 * timeout.
 */
import type { Random } from '../kernel/random.js';
import { Backoff, type BackoffPolicy } from './backoff.js';
import type { RefillCause } from './reasons.js';

/** closed: dialing works; open: it keeps failing; half_open: one probe is allowed. */
export type BreakerState = 'closed' | 'open' | 'half_open';

export interface BreakerPolicy extends BackoffPolicy {
  /** Failures in a row that open it. */
  readonly threshold: number;
}

/** Causes of a failed dial. Each cause has its own delay, which grows with failures of that cause. */
export type DialFailureCause = Exclude<RefillCause, 'lease_acquire'>;

export class Breaker {
  readonly #policy: BreakerPolicy;
  readonly #backoffs: Readonly<Record<DialFailureCause, Backoff>>;
  #failures = 0;
  #lastError: Error | undefined;

  constructor(policy: BreakerPolicy, random: Random) {
    this.#policy = policy;
    this.#backoffs = {
      rate_limit: new Backoff(policy, random),
      token_provider: new Backoff(policy, random),
      connection_open: new Backoff(policy, random),
    };
  }

  /** Failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** No dial before this time. */
  get retryAt(): number {
    const { rate_limit, token_provider, connection_open } = this.#backoffs;
    return Math.max(rate_limit.retryAt, token_provider.retryAt, connection_open.retryAt);
  }

  /** Why the last dial failed; undefined after a success. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  state(now: number): BreakerState {
    if (this.#failures < this.#policy.threshold) return 'closed';
    return now < this.retryAt ? 'open' : 'half_open';
  }

  /** True if a dial may begin while `underWay` others are under way. */
  allows(now: number, underWay: number): boolean {
    if (this.#failures === 0) return true;
    return now >= this.retryAt && (this.#failures < this.#policy.threshold || underWay === 0);
  }

  succeeded(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#lastError = undefined;
    for (const backoff of Object.values(this.#backoffs)) backoff.succeeded();
  }

  failed(error: Error, now: number, cause: DialFailureCause): void {
    this.#failures++;
    this.#lastError = error;
    this.#backoffs[cause].failed(error, now);
  }
}
