/** Present metrics of a pool and of its clients. */
import type { PoolTotals } from '../../core/pool-stats.js';
import type { BackendPool } from '../servers/backend-pool.js';
import type { EngineCounts } from '../servers/engine-generations.js';

/** States of a connected client. */
export type CountedState = 'active' | 'waiting' | 'idle';

/** Clients of a pool, counted in one pass over all clients. */
export interface PoolClients {
  readonly states: Readonly<Record<CountedState, number>>;
  /** Number of pinned clients, by reason. */
  readonly pinned: Readonly<Record<string, number>>;
  readonly longestWaitMs: number;
  /** Statements named by clients. */
  readonly statements: number;
}

export interface PoolReading {
  readonly pool: BackendPool;
  readonly clients: PoolClients;
  /** Statements kept on servers. */
  readonly serverStatements: number;
  readonly servers: EngineCounts;
  readonly totals: PoolTotals;
}

const noClients: PoolClients = {
  states: { active: 0, waiting: 0, idle: 0 },
  pinned: {},
  longestWaitMs: 0,
  statements: 0,
};

export function readPool(pool: BackendPool, clients = noClients): PoolReading {
  let serverStatements = 0;
  if (!pool.isUnconnected) for (const { statements } of pool.backends()) serverStatements += statements.size;
  return { pool, clients, serverStatements, servers: pool.counts(), totals: pool.totals() };
}
