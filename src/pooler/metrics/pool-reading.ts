/** What metrics say of each pool at one moment, with one look at every client. */
import type { PoolTotals } from '../../core/pool-stats.js';
import type { BackendPool } from '../servers/backend-pool.js';
import type { EngineCounts } from '../servers/engine-generations.js';

/** What a client that is let in can be doing. */
export type CountedState = 'active' | 'waiting' | 'idle';

export interface PoolReading {
  readonly pool: BackendPool;
  readonly clients: Record<CountedState, number>;
  /** By the reason. */
  readonly pinned: Map<string, number>;
  longestWaitMs: number;
  /** Names that clients have given to statements, and what servers keep for them. */
  clientStatements: number;
  readonly serverStatements: number;
  readonly servers: EngineCounts;
  readonly totals: PoolTotals;
}
