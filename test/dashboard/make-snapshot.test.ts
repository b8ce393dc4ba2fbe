// Rates, percentiles, fairness, and lists that stay short however many users there are.
import { expect, test } from 'vitest';
import { EventLog } from '../../src/dashboard/event-log.js';
import { jainOf } from '../../src/dashboard/jain.js';
import { sampleOf, watchedSections } from '../../src/dashboard/make-snapshot.js';
import { percentilesBetween, Recent } from '../../src/dashboard/time-window.js';
import { TimeHistogram } from '../../src/observe/time-histogram.js';
import { budget, noTimes, observation, pool, share } from './observations.js';

function timesOf(values: readonly number[]): number[] {
  const histogram = new TimeHistogram();
  for (const value of values) histogram.record(value);
  let below = 0;
  const classes = histogram.cumulative().map((upTo) => {
    const count = upTo - below;
    below = upTo;
    return count;
  });
  return [...classes, histogram.count - below];
}

test('the sections of a snapshot rates are what changed by the seconds in between', () => {
  const { counters } = observation();
  const before = observation({ at: 1_000, counters: { ...counters, queries: 100 } });
  const now = observation({ at: 3_000, counters: { ...counters, queries: 150 } });
  expect(watchedSections(before, now).now.queriesPerSecond).toBe(25);
  expect(watchedSections(undefined, now).now.queriesPerSecond).toBe(0);
});

test('the sections of a snapshot with 10,000 users, twelve are shown and the others are one sum', () => {
  const users = Array.from({ length: 10_000 }, (_, i) =>
    share(`user-${i}`, { held: i % 7, demand: 7, share: 7 }),
  );
  const held = users.reduce((sum, user) => sum + user.held, 0);
  const sections = watchedSections(undefined, observation({ budgets: [budget({ users, held })] }));
  const [shown] = sections.budgets;
  expect(shown?.users).toHaveLength(12);
  expect(shown?.others?.count).toBe(9_988);
  const sum = (shown?.users ?? []).reduce((total, user) => total + user.held, shown?.others?.held ?? 0);
  expect(sum).toBe(held);
  expect(JSON.stringify({ ...sections, sample: sampleOf(sections) }).length).toBeLessThan(10_000);
});

test('a pool that began within the window has numbers from its beginning, unless it may have been left out before', () => {
  const times = timesOf([1, 2, 3, 400]);
  const now = observation({
    at: 10_000,
    pools: [pool('web', { queries: 40, queryTimes: times })],
    poolCount: 1,
  });
  const before = observation({ at: 0, pools: [], poolCount: 0 });
  const [row] = watchedSections(before, now).pools.rows;
  expect(row?.queriesPerSecond).toBe(4);
  expect(row?.query?.count).toBe(4);
  const [unknown] = watchedSections({ ...before, poolCount: 5 }, now).pools.rows;
  expect([unknown?.queriesPerSecond, unknown?.query]).toEqual([0, null]);
});

test('users that a budget does not list are counted among the others', () => {
  const users = [share('a', { held: 3, demand: 3, share: 10 }), share('b', { held: 0, demand: 0, share: 1 })];
  const listed = { ...budget({ users }), unlisted: { count: 9_998, share: 40 } };
  const [section] = watchedSections(undefined, observation({ budgets: [listed] })).budgets;
  expect(section?.users.map(({ user }) => user)).toEqual(['a', 'b']);
  expect(section?.others).toEqual({ held: 0, demand: 0, share: 40, recalled: 0, waitedMs: 0, count: 9_998 });
  const [without] = watchedSections(undefined, observation({ budgets: [budget({ users })] })).budgets;
  expect(without?.others).toBeNull();
});

test('the sections of a snapshot rows of pools are sorted by name, so that they do not jump', () => {
  const pools = [pool('web', { active: 9 }), pool('api'), pool('batch', { waiting: 3 })];
  const { rows } = watchedSections(undefined, observation({ pools, poolCount: 3 })).pools;
  expect(rows.map(({ user }) => user)).toEqual(['api', 'batch', 'web']);
});

test('percentiles they are those of the window, and not of all times', () => {
  const before = timesOf(new Array(1_000).fill(5_000));
  const now = timesOf([...new Array(1_000).fill(5_000), ...new Array(100).fill(2)]);
  const found = percentilesBetween(before, now);
  expect(found?.count).toBe(100);
  expect(found?.p99).toBeGreaterThan(1);
  expect(found?.p99).toBeLessThanOrEqual(2.5);
});

test('percentiles where nothing happened there are none, also when a pool was forgotten', () => {
  expect(percentilesBetween(noTimes, noTimes)).toBeUndefined();
  expect(percentilesBetween(timesOf([1, 2, 3]), noTimes)).toBeUndefined();
});

test('percentiles the window keeps one value from just before it', () => {
  const recent = new Recent<number>();
  for (let second = 0; second <= 30; second++) recent.add(second * 1_000, second);
  expect(recent.first?.value).toBe(20);
});

test('the Jain index is 1 where all users have what they want, and where no user waits', () => {
  expect(
    jainOf([share('a', { held: 3, demand: 3, share: 10 }), share('b', { held: 1, demand: 9, share: 10 })]),
  ).toBe(1);
});

test('the Jain index it falls where one user waits below its share', () => {
  const served = share('a', { held: 10, demand: 20, share: 10, waitedMs: 5 });
  const starved = share('b', { held: 0, demand: 20, share: 10, waitedMs: 5_000 });
  expect(jainOf([served, starved])).toBe(0.5);
});

test('the Jain index leaves out users that neither hold nor wait', () => {
  expect(jainOf([share('a', { demand: 5, share: 5 })])).toBeUndefined();
});

test('the log of events the same event is counted, whatever its port, and one that floods does not hide the others', () => {
  const events = new EventLog();
  events.note(1, 'warn', 'client refused', { user: 'a', port: 1 });
  for (let i = 0; i < 500; i++) events.note(2, 'error', 'connection failed', { port: i });
  expect(events.latest(10)).toEqual([
    { at: 2, level: 'error', message: 'connection failed', details: '', count: 500 },
    { at: 1, level: 'warn', message: 'client refused', details: 'user=a', count: 1 },
  ]);
});

test('the log of events it keeps a hundred different events at most', () => {
  const events = new EventLog();
  for (let i = 0; i < 5_000; i++) events.note(i, 'warn', `event ${i}`);
  expect(events.latest(10_000)).toHaveLength(100);
});
