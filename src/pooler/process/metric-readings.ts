/** Reads the present metrics of the process and its pools in one pass over all clients. */
import { systemClock } from '../../runtime/system.js';
import type { CountedState, PoolReading } from '../metrics/pool-reading.js';
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
    loggingIn: pooler.visitors.size,
    consoles: pooler.consoles.size,
    logins: pooler.logins,
    memory: process.memoryUsage(),
    cpuMicros: user + system,
    loopDelay: loop.read(),
  };
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
