/** The in-process answer to "may I open one now?": a token bucket, with defaults that suit one process. */
import { TokenBucket, type TokenBucketOptions } from '../core/token-bucket.js';

/**
 * Limits how fast connections are opened: `rate` a second on average (default 10), at most `burst` at once (default 100).
 * One bucket may be shared by several pools.
 *
 * @example
 * ```ts
 * import { Pool, tokenBucket } from 'headgate';
 *
 * const pool = new Pool({ max: 50, rateLimiter: tokenBucket({ rate: 10, burst: 100 }) });
 * ```
 */
export function tokenBucket(options: Partial<TokenBucketOptions> = {}): TokenBucket {
  const { rate = 10, burst = 100 } = options;
  return new TokenBucket({ ...options, rate, burst });
}
