/**
 * A token bucket: `rate` permits a second on average, at most `burst` at once. When the server refuses that speed, the
 * bucket halves its speed, and recovers with each connection that is opened.
 *
 * Where several pools share a bucket, an urgent pool that is told to wait has one permit kept for it, until shortly
 * after the time at which it should ask again. Pools are not told apart: the one kept permit goes to the first urgent
 * pool that asks.
 */
import { OptionReader } from '../kernel/option-reader.js';
import type { RateLimiter } from './rate-limiter.js';

/** The rate, and the burst. */
export interface TokenBucketOptions {
  /** Permits added per second. */
  readonly rate: number;
  /** Permits it holds when full; it starts full. */
  readonly burst: number;
}

/** The numbers of one moment. */
export interface TokenBucketStats {
  /** Permits added per second at the present speed, and at full speed. */
  readonly rate: number;
  readonly fullRate: number;
  /** Permits that it holds. */
  readonly tokens: number;
  readonly burst: number;
  /** Number of times the server refused the speed of opening; refusals at about the same time count once. */
  readonly refused: number;
}

/** Without this margin, a caller that returns after exactly the time it was told could be told to wait 0 ms. */
const roundingError = 1e-6;

/** Rounding error of times in milliseconds, for the time until which a permit is kept. */
const clockErrorMs = 1e-3;
/** How late an urgent pool may return for its kept permit: programs are busy, and timers late. */
const graceMs = 100;

const slowest = 1 / 64;
/** The part of the full speed that is recovered with each opened connection. */
const recovery = 1 / 50;
/** Dials that were under way together are refused together: that is one refusal. */
const oneWaveMs = 1_000;

/**
 * Limits how fast connections are opened. One bucket may be shared by several pools.
 *
 * @example
 * ```ts
 * import { Pool, TokenBucket } from 'headgate';
 *
 * const pool = new Pool({ max: 50, rateLimiter: new TokenBucket({ rate: 10, burst: 100 }) });
 * ```
 */
export class TokenBucket implements RateLimiter {
  readonly #tokensPerMs: number;
  readonly #burst: number;
  #tokens: number;
  #countedAt = Number.NaN;
  /** The current part of the full speed. */
  #speed = 1;
  #refusals = 0;
  #slowedAt = -Infinity;
  /** Until this time, one permit is kept for an urgent pool. */
  #keptUntil = -Infinity;

  constructor(options: TokenBucketOptions) {
    const read = new OptionReader(options);
    const rate = read.positive('rate');
    const burst = read.integer('burst', 0, { min: 1 });
    if (options.burst === undefined)
      read.problem('burst', 'is missing: it must be a whole number of at least 1');
    read.refuseUnknown();
    read.throwIfAnyProblem();
    this.#tokensPerMs = rate / 1_000;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** Permits a second at the present speed. */
  get rate(): number {
    return this.#tokensPerMs * this.#speed * 1_000;
  }

  /** The permits held and the speed at this moment. */
  stats(now: number): TokenBucketStats {
    this.#refill(now);
    return {
      rate: this.rate,
      fullRate: this.#tokensPerMs * 1_000,
      tokens: Math.max(0, this.#tokens),
      burst: this.#burst,
      refused: this.#refusals,
    };
  }

  take(now: number, isUrgent = false): number {
    this.#refill(now);
    const keptForMs = isUrgent ? 0 : this.#keptUntil - this.#countedAt;
    const isKept = keptForMs > clockErrorMs;
    if (this.#tokens >= (isKept ? 2 : 1) - roundingError) {
      this.#tokens -= 1;
      if (isUrgent) this.#keptUntil = -Infinity;
      return 0;
    }
    const waitMs = this.#msUntil(1);
    if (isUrgent) this.#keptUntil = this.#countedAt + waitMs + graceMs;
    // The kept permit will be taken or given up: the first of the two leaves one for others.
    return isKept ? Math.max(waitMs, Math.min(this.#msUntil(2), keptForMs)) : waitMs;
  }

  refused(now: number): void {
    if (now - this.#slowedAt < oneWaveMs) return;
    this.#refusals += 1;
    this.#refill(now);
    this.#slowedAt = now;
    this.#speed = Math.max(slowest, this.#speed / 2);
    // Saved permits would be refused as well.
    this.#tokens = Math.min(this.#tokens, 0);
  }

  opened(): void {
    this.#speed = Math.min(1, this.#speed + recovery);
  }

  /** Time until the bucket holds this many permits, if none is taken. */
  #msUntil(tokens: number): number {
    if (tokens > this.#burst) return Infinity;
    return (tokens - this.#tokens) / (this.#tokensPerMs * this.#speed);
  }

  #refill(now: number): void {
    // A clock that stands still or goes back adds nothing.
    if (now > this.#countedAt) {
      this.#tokens = Math.min(
        this.#burst,
        this.#tokens + (now - this.#countedAt) * this.#tokensPerMs * this.#speed,
      );
      this.#countedAt = now;
    } else if (Number.isNaN(this.#countedAt)) {
      this.#countedAt = now;
    }
  }
}
