/** Rate limits for opening server connections: one token bucket per server, shared by all pools of that server. */
import type { RateLimiter } from '../../core/rate-limiter.js';
import { TokenBucket, type TokenBucketOptions, type TokenBucketStats } from '../../core/token-bucket.js';
import type { PoolerConfig } from '../config/pooler-config.js';

/** Limiters by server as configured: `db.example:5432`. The same server gives the same limiter. */
export interface ConnectionRates {
  /** Undefined: connections may be opened at any time. */
  limiterOf(server: string): RateLimiter | undefined;
}

/** Rate and burst from the configuration. */
export function ratesOf({ dsql }: Pick<PoolerConfig, 'dsql'>): TokenBucketOptions {
  return { rate: dsql.connectionRate, burst: dsql.connectionBurst };
}

export class LocalRates implements ConnectionRates {
  readonly #options: TokenBucketOptions;
  readonly #buckets = new Map<string, TokenBucket>();

  /** A rate of 0 is no limit. */
  constructor(options: TokenBucketOptions) {
    this.#options = options;
  }

  /** Statistics of the servers that were asked about. */
  stats(now: number): ({ readonly server: string } & TokenBucketStats)[] {
    return Array.from(this.#buckets, ([server, bucket]) => ({ server, ...bucket.stats(now) }));
  }

  limiterOf(server: string): TokenBucket | undefined {
    if (this.#options.rate === 0) return undefined;
    const bucket = this.#buckets.get(server) ?? new TokenBucket(this.#options);
    this.#buckets.set(server, bucket);
    return bucket;
  }
}
