/** The limit of a pool with a reserve: its size, or size and reserve. */
import type { PoolCounts } from '../../core/pool-counts.js';

export interface ReserveSettings {
  readonly poolSize: number;
  readonly reservePoolSize: number;
}

interface LimitedPool {
  readonly limit: number;
  stats(): Pick<PoolCounts, 'inUse' | 'live' | 'waiting'>;
}

/**
 * The reserve opens when a client has waited for `afterMs` (0: never), until the pool is back at its size.
 * `keepsOpen`: connections of the reserve stay until they are idle for too long.
 */
export function limitWithReserve(
  pool: LimitedPool,
  { poolSize, reservePoolSize }: ReserveSettings,
  afterMs: number,
  waitedMs: number,
  keepsOpen = false,
): number {
  if (reservePoolSize === 0 || afterMs === 0) return poolSize;
  if (waitedMs >= afterMs) return poolSize + reservePoolSize;
  if (pool.limit <= poolSize) return pool.limit;
  const { inUse, live, waiting } = pool.stats();
  const isBack = waiting === 0 && (keepsOpen ? live : inUse) <= poolSize;
  return isBack ? poolSize : pool.limit;
}
