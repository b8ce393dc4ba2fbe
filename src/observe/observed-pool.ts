/** What a pool must have to be looked at from outside. */
import type { PoolStats } from '../core/pool-stats.js';

/** A `Pool` or a `PromisePool`. */
export interface ObservedPool {
  readonly name: string;
  stats(): PoolStats;
}
