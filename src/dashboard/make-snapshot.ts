/** Makes what the page is sent of two observations: rates and percentiles are what changed between them. */
import { FirstFew } from '../kernel/first-few.js';
import { timeBounds } from '../observe/time-histogram.js';
import { jainOf } from './jain.js';
import type { BudgetRecord, Observation, PoolRecord, ShareRecord } from './observation.js';
import type {
  BudgetSample,
  BudgetSection,
  HistorySample,
  NowSection,
  Percentiles,
  PoolRow,
  Snapshot,
} from './snapshot.js';
import { percentilesBetween } from './time-window.js';
import type { Lately } from './verdict.js';

/** Users of a budget that are shown by name, and budgets. */
const topUsers = 12;
const topBudgets = 8;

type Watched = Pick<
  Snapshot,
  'now' | 'budgets' | 'pools' | 'pins' | 'reservoirs' | 'lives' | 'rates' | 'rebalances' | 'fleet' | 'workers'
> &
  Pick<Snapshot, 'statements' | 'running'>;

/** The part of an observation that is compared with a later one. Several are kept, so it has no users. */
export type Earlier = Pick<Observation, 'at' | 'counters' | 'pools' | 'poolCount' | 'reservoirs'>;

/** `before`: what was seen at the beginning of the window; undefined at first. */
export function watchedSections(before: Earlier | undefined, now: Observation): Watched {
  return {
    now: nowSection(before, now),
    budgets: now.budgets.slice(0, topBudgets).map(budgetSection),
    pools: { count: now.poolCount, rows: poolRows(before, now) },
    pins: now.pins,
    reservoirs: now.reservoirs,
    lives: now.lives ?? null,
    rates: now.rates,
    rebalances: now.rebalances,
    fleet: now.fleet,
    workers: now.workers,
    statements: now.statements ?? null,
    running: now.running,
  };
}

export function latelyOf(before: Earlier | undefined, now: Observation): Lately {
  const empty = (of: Earlier): number => of.reservoirs.reduce((sum, { foundEmpty }) => sum + foundEmpty, 0);
  return {
    openFailures: now.counters.openFailures - (before?.counters.openFailures ?? now.counters.openFailures),
    waitTimeouts: now.counters.waitTimeouts - (before?.counters.waitTimeouts ?? now.counters.waitTimeouts),
    foundEmpty: before === undefined ? 0 : empty(now) - empty(before),
  };
}

function nowSection(before: Earlier | undefined, now: Observation): NowSection {
  const { at, callers, connections, counters } = now;
  const rate = rateOver(before?.at, at);
  const { queries, transactions, opened, openFailures, waitTimeouts } = counters;
  const then = before?.counters;
  return {
    at,
    callers,
    connections,
    queriesPerSecond: rate(then?.queries, queries),
    transactionsPerSecond: rate(then?.transactions, transactions),
    openedPerSecond: rate(then?.opened, opened),
    errorsPerSecond: rate(then && sumOf(then.errors), sumOf(counters.errors)),
    receivedPerSecond: rate(then?.receivedBytes, counters.receivedBytes),
    sentPerSecond: rate(then?.sentBytes, counters.sentBytes),
    query: percentiles(then?.queryTimes, counters.queryTimes),
    wait: percentiles(then?.waitTimes, counters.waitTimes),
    totals: { queries, transactions, opened, openFailures, waitTimeouts },
  };
}

/** Without a beginning there is no window yet. */
function percentiles(before: readonly number[] | undefined, now: readonly number[]): Percentiles | null {
  return before === undefined ? null : (percentilesBetween(before, now) ?? null);
}

/** Sums fall when a pool is forgotten. */
function rateOver(from: number | undefined, to: number): (before: number | undefined, now: number) => number {
  const seconds = from === undefined ? 0 : (to - from) / 1_000;
  return (before, now) => (seconds <= 0 || before === undefined ? 0 : Math.max(0, now - before) / seconds);
}

function poolRows(before: Earlier | undefined, now: Observation): PoolRow[] {
  const earlier = new Map(before?.pools.map((pool) => [keyOf(pool), pool]));
  // A pool that was not among those of before, of which all are known, has begun to count since.
  const isWhole = before !== undefined && before.poolCount === before.pools.length;
  const rate = rateOver(before?.at, now.at);
  // By name, so that rows do not jump from second to second.
  const sorted = [...now.pools].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  return sorted.map((pool): PoolRow => {
    const then = earlier.get(keyOf(pool)) ?? (isWhole ? nothingYet : undefined);
    const { queries, errors, queryTimes, waitTimes, shortage, ...same } = pool;
    return {
      ...same,
      shortage: shortage ?? null,
      queriesPerSecond: rate(then?.queries, queries),
      errorsPerSecond: rate(then?.errors, errors),
      query: percentiles(then?.queryTimes, queryTimes),
      wait: percentiles(then?.waitTimes, waitTimes),
    };
  });
}

const noTimes = timeBounds.map(() => 0).concat(0);
const nothingYet = { queries: 0, errors: 0, queryTimes: noTimes, waitTimes: noTimes };

function keyOf({ user, database }: PoolRecord): string {
  return JSON.stringify([user, database]);
}

function budgetSection({ users, unlisted, ...budget }: BudgetRecord): BudgetSection {
  const isWhole = users.length <= topUsers;
  const sorted = isWhole ? users : topOf(users);
  const shown = new Set(sorted);
  const rest = isWhole ? [] : users.filter((user) => !shown.has(user));
  return {
    ...budget,
    users: sorted,
    others: othersOf(rest, unlisted),
    demand: users.reduce((sum, { demand }) => sum + demand, 0),
    jain: (budget.parts === 'states' ? undefined : jainOf(users)) ?? null,
  };
}

function othersOf(
  rest: readonly ShareRecord[],
  { count, share }: NonNullable<BudgetRecord['unlisted']> = { count: 0, share: 0 },
): BudgetSection['others'] {
  if (rest.length + count === 0) return null;
  const sums = sumOfShares(rest);
  return { ...sums, share: sums.share + share, count: rest.length + count };
}

/** The users that hold or need most, in the order of their names, so that rows do not jump. */
function topOf(users: readonly ShareRecord[]): ShareRecord[] {
  const weight = ({ held, demand }: ShareRecord): number => Math.max(held, demand) + held / 1e6;
  const top = new FirstFew<ShareRecord>(topUsers, (user) => -weight(user));
  for (const user of users) top.add(user);
  return [...top.list].sort((one, other) => (one.user < other.user ? -1 : 1));
}

function sumOfShares(users: readonly ShareRecord[]): Omit<ShareRecord, 'user' | 'weight'> {
  const sum = (key: 'held' | 'demand' | 'share' | 'recalled'): number =>
    users.reduce((total, user) => total + user[key], 0);
  return {
    held: sum('held'),
    demand: sum('demand'),
    share: sum('share'),
    recalled: sum('recalled'),
    waitedMs: users.reduce((most, { waitedMs }) => Math.max(most, waitedMs), 0),
  };
}

export function sampleOf({ now, budgets }: Watched): HistorySample {
  return {
    at: now.at,
    queriesPerSecond: now.queriesPerSecond,
    waiting: now.callers.waiting,
    active: now.callers.active,
    queryP99: now.query?.p99 ?? null,
    waitP99: now.wait?.p99 ?? null,
    budgets: Object.fromEntries(budgets.map((budget) => [budget.name, budgetSample(budget)])),
  };
}

function budgetSample({ capacity, held, demand, waiting, users }: BudgetSection): BudgetSample {
  const holding = users
    .filter((user) => user.held > 0)
    .map(({ user, held: count }) => [user, count] as const);
  return { capacity, held, demand, waiting, users: Object.fromEntries(holding) };
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
