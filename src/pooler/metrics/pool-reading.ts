/** What metrics say of each pool at one moment, with one look at every client. */
import type { PoolTotals } from '../../core/pool-stats.js';
import { systemClock } from '../../runtime/system.js';
import { clientStateOf } from '../process/console-records.js';
import type { PoolerState } from '../process/pooler-state.js';
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

export function readPools(pooler: PoolerState): PoolReading[] {
  const readings = new Map<BackendPool, PoolReading>();
  for (const pool of pooler.pools.pools()) readings.set(pool, readingOf(pool));
  const now = systemClock.now();
  for (const session of pooler.sessions) {
    const reading = readings.get(session.pool);
    if (reading === undefined) continue;
    const { pin, statements, waitingSince } = session;
    const state = clientStateOf(session) as CountedState;
    reading.clients[state]++;
    reading.clientStatements += statements.size;
    if (pin !== undefined) reading.pinned.set(pin, (reading.pinned.get(pin) ?? 0) + 1);
    if (state === 'waiting') reading.longestWaitMs = Math.max(reading.longestWaitMs, now - waitingSince);
  }
  return [...readings.values()];
}

function readingOf(pool: BackendPool): PoolReading {
  let serverStatements = 0;
  for (const { statements } of pool.backends()) serverStatements += statements.size;
  return {
    pool,
    clients: { active: 0, waiting: 0, idle: 0 },
    pinned: new Map(),
    longestWaitMs: 0,
    clientStatements: 0,
    serverStatements,
    servers: pool.counts(),
    totals: pool.totals(),
  };
}
