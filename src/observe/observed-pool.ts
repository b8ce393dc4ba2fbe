/** A pool that can be observed. */
import type { PoolStats } from '../core/pool-stats.js';

/** A `Pool` or a `PromisePool`. */
export interface ObservedPool {
  readonly name: string;
  stats(): PoolStats;
  /** Limits above the pool. Those in DynamoDB are exposed with the pool. */
  readonly leases?: unknown;
  readonly rateLimiter?: unknown;
}
