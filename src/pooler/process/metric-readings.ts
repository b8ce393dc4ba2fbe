/** Reads the present metrics of the process and the clients of its pools. */

import type { Pauses } from '../../runtime/pauses.js';
import { systemClock } from '../../runtime/system.js';
import type { CountedState, PoolClients } from '../metrics/pool-reading.js';
import type { LoopDelay, ProcessReading } from '../metrics/process-reading.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { clientStateOf } from './console-records.js';
import type { PoolerState } from './pooler-state.js';

export function stateOf({ isShuttingDown, state }: PoolerState): ProcessReading['state'] {
  return isShuttingDown ? 'shutting_down' : state;
}

export function readProcess(pooler: PoolerState, version: string, loop: LoopDelay): ProcessReading {
  const { user, system } = process.cpuUsage();
  return {
    version,
    state: stateOf(pooler),
    startedAtMs: Date.now() - process.uptime() * 1_000,
    clients: pooler.sessions.size,
    clientLimit: pooler.config.limits.maxClientConn,
    loggingIn: pooler.pendingClients.size,
    consoles: pooler.consoles.size,
    pools: pooler.pools.size,
    logins: pooler.logins,
    memory: process.memoryUsage(),
    cpuMicros: user + system,
    loopDelay: loop.read(),
  };
}

interface Counted extends PoolClients {
  readonly states: Record<CountedState, number>;
  readonly pinned: Record<string, number>;
  longestWaitMs: number;
  statements: number;
}

/** Clients of each pool that has any, counted in one pass over all clients. Clients are served meanwhile. */
export async function readClients(
  pooler: PoolerState,
  pauses: Pauses,
): Promise<ReadonlyMap<BackendPool, PoolClients>> {
  const byPool = new Map<BackendPool, Counted>();
  const now = systemClock.now();
  for (const session of pooler.sessions) {
    const { pool, pin, namedStatements, times } = session;
    let of = byPool.get(pool);
    if (of === undefined) {
      of = { states: { active: 0, waiting: 0, idle: 0 }, pinned: {}, longestWaitMs: 0, statements: 0 };
      byPool.set(pool, of);
    }
    const state = clientStateOf(session) as CountedState;
    of.states[state]++;
    of.statements += namedStatements;
    if (pin !== undefined) of.pinned[pin] = (of.pinned[pin] ?? 0) + 1;
    if (state === 'waiting') of.longestWaitMs = Math.max(of.longestWaitMs, now - times.waitingSince);
    const pause = pauses.afterStep();
    if (pause !== undefined) await pause;
  }
  return byPool;
}
