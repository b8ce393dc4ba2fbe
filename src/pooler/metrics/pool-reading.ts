/** Present metrics of each pool, read in one pass over all clients. */
import type { PoolTotals } from '../../core/pool-stats.js';
import type { BackendPool } from '../servers/backend-pool.js';
import type { EngineCounts } from '../servers/engine-generations.js';

/** States of a connected client. */
export type CountedState = 'active' | 'waiting' | 'idle';

export interface PoolReading {
  readonly pool: BackendPool;
  readonly clients: Record<CountedState, number>;
  /** Number of pinned clients, by reason. */
  readonly pinned: Map<string, number>;
  longestWaitMs: number;
  /** Statements named by clients, and statements kept on servers. */
  clientStatements: number;
  readonly serverStatements: number;
  readonly servers: EngineCounts;
  readonly totals: PoolTotals;
}
