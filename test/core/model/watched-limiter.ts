// A rate limiter that remembers what it answered, and is out of order now and then.
import type { RateLimiter } from '../../../src/core/rate-limiter.js';
import { TokenBucket } from '../../../src/core/token-bucket.js';

const limiterBroken = new Error('the rate limiter is out of order');

export class WatchedLimiter implements RateLimiter {
  readonly rate: number;
  readonly burst: number;
  readonly #bucket: TokenBucket;
  /** A permit was taken at each of these times. */
  readonly grantedAt: number[] = [];
  /** Until when the last answer told the pool to wait. */
  waitUntil = Number.NEGATIVE_INFINITY;
  failures = 0;
  failuresInARow = 0;
  lastFailureAt = Number.NEGATIVE_INFINITY;
  /** Whether it throws this time, and how long it makes the pool wait for nothing. */
  throws: () => boolean = () => false;
  stalls: () => number = () => 0;

  constructor(rate: number, burst: number) {
    this.rate = rate;
    this.burst = burst;
    this.#bucket = new TokenBucket({ rate, burst });
  }

  take(now: number): number {
    if (this.throws()) {
      this.failures++;
      this.failuresInARow++;
      this.lastFailureAt = now;
      throw limiterBroken;
    }
    this.failuresInARow = 0;
    const wait = this.stalls() || this.#bucket.take(now);
    this.waitUntil = wait === 0 ? Number.NEGATIVE_INFINITY : now + wait;
    if (wait === 0) this.grantedAt.push(now);
    return wait;
  }
}
