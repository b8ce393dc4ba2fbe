// Observations for tests: nothing happens, unless the test says what does.
import type { BudgetRecord, Observation, PoolRecord, ShareRecord } from '../../src/dashboard/observation.js';
import { timeBounds } from '../../src/observe/time-histogram.js';

export const noTimes: readonly number[] = new Array(timeBounds.length + 1).fill(0);

export function observation(more: Partial<Observation> = {}): Observation {
  return {
    at: 1_000_000,
    startedAt: 0,
    version: '1.2.3',
    state: 'active',
    pausedDatabases: [],
    budgets: [],
    callers: { active: 0, waiting: 0, idle: 0, loggingIn: 0, limit: 100, longestWaitMs: 0 },
    connections: { opening: 0, idle: 0, active: 0, checking: 0, closing: 0 },
    counters: {
      ...{ queries: 0, transactions: 0, opened: 0, openFailures: 0, waitTimeouts: 0 },
      ...{ errors: {}, discards: {}, receivedBytes: 0, sentBytes: 0 },
      ...{ queryTimes: noTimes, waitTimes: noTimes },
    },
    pools: [],
    poolCount: 0,
    pins: { count: 0, byReason: {}, longest: [] },
    reservoirs: [],
    lives: undefined,
    rates: [],
    rebalances: [],
    fleet: [],
    workers: [],
    statements: undefined,
    running: [],
    dialError: undefined,
    ...more,
  };
}

export function budget(more: Partial<BudgetRecord> = {}): BudgetRecord {
  return {
    ...{ name: 'total', parts: 'users', capacity: 20, held: 0, exceeded: 0, peak: 0, waiting: 0, recalls: 0 },
    users: [],
    ...more,
  };
}

export function share(user: string, more: Partial<ShareRecord> = {}): ShareRecord {
  return { user, held: 0, demand: 0, share: 0, weight: 1, recalled: 0, waitedMs: 0, ...more };
}

export function pool(user: string, more: Partial<PoolRecord> = {}): PoolRecord {
  return {
    ...{ user, database: 'app', active: 0, waiting: 0, idle: 0, connections: 0, limit: 5, longestWaitMs: 0 },
    ...{
      isPaused: false,
      shortage: undefined,
      queries: 0,
      errors: 0,
      queryTimes: noTimes,
      waitTimes: noTimes,
    },
    ...more,
  };
}
