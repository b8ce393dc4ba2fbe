/** The delay between retries: grows with each failure, with jitter, so that clients that failed together do not retry together. */
import type { Random } from '../kernel/random.js';

export interface BackoffPolicy {
  /** Ceiling of the first delay in milliseconds; it doubles with each further failure. */
  readonly base: number;
  /** The ceiling never grows past this. */
  readonly cap: number;
}

/** Full jitter: uniform between 0 and a ceiling that doubles from `base` to `cap`. `failures` counts from 1. */
export function backoffDelay(policy: BackoffPolicy, failures: number, random: Random): number {
  const ceiling = Math.min(policy.cap, policy.base * 2 ** Math.min(failures - 1, 52));
  return random.next() * ceiling;
}

/** The failures of one kind since it last worked, and when it may be tried again. */
export class Backoff {
  readonly #policy: BackoffPolicy;
  readonly #random: Random;
  failures = 0;
  retryAt = -Infinity;
  lastError: Error | undefined;

  constructor(policy: BackoffPolicy, random: Random) {
    this.#policy = policy;
    this.#random = random;
  }

  failed(error: Error, now: number): void {
    this.failures++;
    this.lastError = error;
    // Several attempts of one wave fail together; they may move the retry away, never closer.
    this.retryAt = Math.max(this.retryAt, now + backoffDelay(this.#policy, this.failures, this.#random));
  }

  /** Failed, and an event will tell when to try again. */
  suspended(error: Error): void {
    this.failures++;
    this.lastError = error;
    this.retryAt = -Infinity;
  }

  /** Allows a retry now, because something has changed. Earlier failures still count. */
  hurry(): void {
    this.retryAt = -Infinity;
  }

  succeeded(): void {
    this.failures = 0;
    this.retryAt = -Infinity;
    this.lastError = undefined;
  }
}
