// Thousands of users: what Prometheus gets stays as long as `metrics_max_pools` says, sums are right and never fall, and clients are
// served in between.
import { setImmediate as nextRound } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { familyTexts } from '../../../src/observe/metric-text.js';
import type { FamilyReading } from '../../../src/pooler/metrics/family-reading.js';
import { readShares } from '../../../src/pooler/metrics/family-readings.js';
import { readPool } from '../../../src/pooler/metrics/pool-reading.js';
import { PoolSeries } from '../../../src/pooler/metrics/pool-series.js';
import type { BackendPool } from '../../../src/pooler/servers/backend-pool.js';
import { Pauses } from '../../../src/runtime/pauses.js';
import { systemClock } from '../../../src/runtime/system.js';
import { parseMetrics, type Scrape } from './scrape.js';
import { unconnectedPool } from './unconnected-pool.js';

const users = 3_000;
const most = 200;
const others = { user: '(others)' };

/** Pools of users that have asked as often as their number says. */
function poolsOf(count: number, from = 0): BackendPool[] {
  return Array.from({ length: count }, (_, n) => {
    const pool = unconnectedPool(`user_${from + n}`);
    ask(pool, from + n);
    return pool;
  });
}

function ask({ tally }: BackendPool, times: number): void {
  for (let n = 0; n < times; n++) tally.queryTimes.record(1);
  tally.errorCame('22012');
}

const textOf = (families: readonly FamilyReading[]): string =>
  families.flatMap((family) => [...familyTexts(family, family.groups)]).join('');

async function scrapeOf(series: PoolSeries, pools: readonly BackendPool[], limit = most): Promise<Scrape> {
  return parseMetrics(textOf(await series.read(pools, limit)));
}

test('metrics of thousands of users have the series of 200 and one of all others, whose sums are right', async () => {
  const pools = poolsOf(users);
  const clients = { states: { active: 1, waiting: 0, idle: 2 }, pinned: {}, statements: 0 };
  const reading = (pool: BackendPool) =>
    readPool(pool, { ...clients, longestWaitMs: pool.tally.queryTimes.count });
  const text = textOf(await new PoolSeries().read(pools, most, reading));
  const of = parseMetrics(text);
  expect(new Set(of.lines.map(({ labels }) => labels['user'])).size).toBe(most + 1);
  expect(of.value('headgate_pooler_clients', { ...others, state: 'idle' })).toBe(2 * (users - most));
  expect(of.value('headgate_pooler_longest_wait_seconds', others)).toBe((users - 1) / 1_000);
  const sum = pools.slice(most).reduce((all, { tally }) => all + tally.queryTimes.count, 0);
  expect(of.value('headgate_pooler_queries_total', others)).toBe(sum);
  expect(of.value('headgate_pooler_query_seconds_bucket', { ...others, le: '0.001' })).toBe(sum);
  expect(of.value('headgate_pooler_query_seconds_bucket', { ...others, le: '0.0005' })).toBe(0);
  expect(of.value('headgate_pooler_query_seconds_sum', others)).toBeCloseTo(sum / 1_000);
  expect(of.value('headgate_pooler_server_errors_total', { ...others, class: '22' })).toBe(users - most);
  expect(of.value('headgate_pooler_server_errors_total', { ...others, class: '53' })).toBe(0);
  const few = textOf(await new PoolSeries().read(pools.slice(0, most + 1), most, reading));
  expect(of.lines.length).toBe(parseMetrics(few).lines.length);
  expect(text.length).toBeLessThan(1.05 * few.length);
});

test('each pool is read once for all its metrics, and no more than 16 of them before clients are served when time is up', async () => {
  const pools = poolsOf(500, 1);
  let now = 0;
  const spy = vi.spyOn(systemClock, 'now').mockImplementation(() => {
    now += 1_000;
    return now;
  });
  onTestFinished(() => spy.mockRestore());
  const reads = new Map<BackendPool, number>();
  let piece = 0;
  let longest = 0;
  let isOver = false;
  const served = (async () => {
    while (!isOver) {
      await nextRound();
      piece = 0;
    }
  })();
  await new PoolSeries().read(pools, most, (pool) => {
    piece++;
    longest = Math.max(longest, piece);
    reads.set(pool, (reads.get(pool) ?? 0) + 1);
    return readPool(pool);
  });
  isOver = true;
  await served;
  expect([...reads.values()]).toEqual(pools.map(() => 1));
  expect(longest).toBeLessThanOrEqual(16);
});

test('counters of the others never fall: not when pools are forgotten, get series of their own, or lose them', async () => {
  const series = new PoolSeries();
  const pools = poolsOf(20, 1);
  const counts: number[] = [];
  const look = async (limit: number): Promise<Scrape> => {
    const of = await scrapeOf(series, pools, limit);
    counts.push(of.value('headgate_pooler_queries_total', others));
    expect(of.value('headgate_pooler_query_seconds_count', others)).toBe(counts.at(-1));
    expect(of.value('headgate_pooler_query_seconds_bucket', { ...others, le: '+Inf' })).toBe(counts.at(-1));
    return of;
  };
  const forget = (at: number, count: number): void => {
    for (const pool of pools.splice(at, count)) series.forgotten(pool);
  };
  await look(5);
  forget(10, 3);
  await look(5);
  // Pools with series of their own give place to the oldest of the others.
  forget(0, 2);
  const after = await look(5);
  expect(after.value('headgate_pooler_queries_total', { user: 'user_7' })).toBe(7);
  await look(9);
  await look(2);
  const total = 6 + 7 + 8 + 9 + 10 + 11 + 12 + 13 + 14 + 15 + 16 + 17 + 18 + 19 + 20;
  expect(counts).toEqual([total, total, total, total, total]);
  ask(pools.at(-1) as BackendPool, 4);
  ask(pools[2] as BackendPool, 3);
  ask(pools[0] as BackendPool, 100);
  await look(2);
  expect(counts.at(-1)).toBe(total + 7);
  forget(0, pools.length);
  await look(2);
  // Two had series of their own.
  expect(counts.at(-1)).toBe(total + 7);
});

test('without more pools than allowed there is no sum, also after some were forgotten', async () => {
  const series = new PoolSeries();
  const pools = poolsOf(3);
  await scrapeOf(series, pools);
  for (const pool of pools.splice(0, 2)) series.forgotten(pool);
  const { lines } = await scrapeOf(series, pools);
  expect([...new Set(lines.map(({ labels }) => labels['user']))]).toEqual(['user_2']);
});

test('a pool that is forgotten while it is read is counted once', async () => {
  const series = new PoolSeries();
  const pools = poolsOf(10, 1);
  await series.read(pools, 2);
  const last = pools.at(-1) as BackendPool;
  const during = await series.read(pools, 2, (pool) => {
    if (pool === pools[5]) series.forgotten(last);
    return readPool(pool);
  });
  const now = parseMetrics(textOf(during)).value('headgate_pooler_queries_total', others);
  expect(now).toBe(3 + 4 + 5 + 6 + 7 + 8 + 9 + 10);
  const next = await scrapeOf(series, pools.slice(0, -1), 2);
  expect(next.value('headgate_pooler_queries_total', others)).toBe(now);
});

test('shares of 10,000 users have the series of 200', async () => {
  const user = { held: 1, demand: 2, share: 3, weight: 1, recalled: 0, waitedMs: 0, min: 0, max: 9 };
  const budget = { budget: 'total', capacity: 100, held: 50, exceeded: 0, peak: 60, waiting: 0, recalls: 0 };
  const users = Array.from({ length: 10_000 }, (_, n) => ({ ...user, user: `user_${n}` }));
  const reading = { most, budgets: [{ ...budget, users }], changes: new Map() };
  const families = await readShares(reading as unknown as Parameters<typeof readShares>[0], new Pauses());
  for (const { groups } of families)
    for (const { values } of groups) expect(values.length).toBeLessThanOrEqual(most);
});
