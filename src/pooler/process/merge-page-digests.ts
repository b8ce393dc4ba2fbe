/** Merges the digests of several workers: sums, and the busiest entries of all. */
import type { PoolRecord, StatementRecord } from '../../dashboard/observation.js';
import type { Digest, DigestCounters } from './page-digest.js';
import { addCounts } from './page-digest-sums.js';
import { mergeStatements } from './page-statements.js';

export interface MergedDigest
  extends Omit<Digest, 'lives' | 'statements' | 'worker' | 'cpuMs' | 'memoryBytes'> {
  readonly lives: readonly Digest['lives'][];
  readonly statements: readonly StatementRecord[] | undefined;
}

export function mergeDigests(all: readonly Digest[], top: number): MergedDigest {
  return {
    callers: sumEach(
      all.map(({ callers }) => callers),
      { active: 0, waiting: 0, idle: 0 },
    ),
    connections: sumEach(
      all.map(({ connections }) => connections),
      { opening: 0, idle: 0, active: 0, checking: 0, closing: 0 },
    ),
    counters: mergeCounters(all.map(({ counters }) => counters)),
    loggingIn: all.reduce((sum, { loggingIn }) => sum + loggingIn, 0),
    longestWaitMs: Math.max(0, ...all.map(({ longestWaitMs }) => longestWaitMs)),
    ...mergePools(all, top),
    pinCount: all.reduce((sum, { pinCount }) => sum + pinCount, 0),
    pinsByReason: sumRecords(all.map(({ pinsByReason }) => pinsByReason)),
    longestPins: oldest(
      all.flatMap(({ longestPins }) => longestPins),
      top,
    ),
    running: oldest(
      all.flatMap(({ running }) => running),
      top,
    ),
    statements: mergeStatements(
      all.map(({ statements }) => statements),
      top,
    ),
    lives: all.map(({ lives }) => lives),
    dialError: all.find(({ dialError }) => dialError !== undefined)?.dialError,
  };
}

function oldest<One extends { readonly since: number }>(all: readonly One[], top: number): One[] {
  return [...all].sort((one, other) => one.since - other.since).slice(0, top);
}

function mergePools(all: readonly Digest[], top: number): Pick<Digest, 'pools' | 'poolCount'> {
  const byName = new Map<string, PoolRecord>();
  let shown = 0;
  for (const pool of all.flatMap(({ pools }) => pools)) {
    shown++;
    const key = JSON.stringify([pool.user, pool.database]);
    const known = byName.get(key);
    byName.set(key, known === undefined ? pool : addPools(known, pool));
  }
  const pools = [...byName.values()].sort(
    (one, other) => other.waiting - one.waiting || other.active - one.active || other.queries - one.queries,
  );
  // A pool in several workers counts once. For pools that are not among the busiest, that is unknown.
  const count = all.reduce((sum, { poolCount }) => sum + poolCount, 0);
  return { pools: pools.slice(0, top), poolCount: count - (shown - byName.size) };
}

function addPools(one: PoolRecord, other: PoolRecord): PoolRecord {
  const add = (first: readonly number[], second: readonly number[]): number[] => {
    const sum = [...first];
    addCounts(sum, second);
    return sum;
  };
  return {
    ...one,
    active: one.active + other.active,
    waiting: one.waiting + other.waiting,
    idle: one.idle + other.idle,
    connections: one.connections + other.connections,
    // The size applies to all workers together.
    limit: Math.max(one.limit, other.limit),
    longestWaitMs: Math.max(one.longestWaitMs, other.longestWaitMs),
    shortage: one.shortage ?? other.shortage,
    queries: one.queries + other.queries,
    errors: one.errors + other.errors,
    queryTimes: add(one.queryTimes, other.queryTimes),
    waitTimes: add(one.waitTimes, other.waitTimes),
  };
}

function mergeCounters(all: readonly DigestCounters[]): DigestCounters {
  const sum = (key: 'queries' | 'transactions' | 'opened' | 'openFailures' | 'waitTimeouts'): number =>
    all.reduce((total, one) => total + one[key], 0);
  const times = (key: 'queryTimes' | 'waitTimes'): number[] => {
    const total: number[] = [];
    for (const one of all) addCounts(total, one[key]);
    return total;
  };
  return {
    queries: sum('queries'),
    transactions: sum('transactions'),
    opened: sum('opened'),
    openFailures: sum('openFailures'),
    waitTimeouts: sum('waitTimeouts'),
    receivedBytes: all.reduce((total, one) => total + one.receivedBytes, 0),
    sentBytes: all.reduce((total, one) => total + one.sentBytes, 0),
    errors: sumRecords(all.map(({ errors }) => errors)),
    discards: sumRecords(all.map(({ discards }) => discards)),
    queryTimes: times('queryTimes'),
    waitTimes: times('waitTimes'),
  };
}

function sumRecords(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const one of all) for (const [key, count] of Object.entries(one)) sum[key] = (sum[key] ?? 0) + count;
  return sum;
}

function sumEach<Counts extends object>(all: readonly Counts[], none: Counts): Counts {
  const sum = { ...none } as Record<string, number>;
  for (const one of all)
    for (const [key, count] of Object.entries(one)) sum[key] = (sum[key] ?? 0) + (count as number);
  return sum as Counts;
}
