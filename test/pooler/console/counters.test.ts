// Averages are those of the last one or two periods, in PgBouncer's units.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  averagesOf,
  type Counters,
  noCounters,
  StatsWindow,
  sumOf,
} from '../../../src/pooler/console/counters.js';
import { countersOf } from './fake-pooler.js';

const counts = fc.nat({ max: 1_000_000_000 });
const anyCounters = fc.record(
  Object.fromEntries(Object.keys(noCounters).map((name) => [name, counts])),
) as unknown as fc.Arbitrary<Counters>;

test('Averages are counts by the second, and times by the query, transaction or wait', () => {
  const before = countersOf({ queries: 100, queryMicros: 5_000, bytesSent: 10 });
  const total = countersOf({
    queries: 160,
    queryMicros: 65_000,
    bytesSent: 10,
    transactions: 7,
    transactionMicros: 71,
    serverAssignments: 2,
    clientLogins: 61,
    waitMicros: 3_001,
    bytesReceived: 999,
    clientParses: 60,
    serverParses: 29,
    binds: 300,
    sessionChecks: 90,
    sessionPins: 31,
    swallowed: 60,
    multiplexed: 900,
    multiplexedAgain: 30,
    longWaits: 60,
  });
  expect(averagesOf(total, before, 30_000)).toEqual({
    serverAssignments: 0,
    clientLogins: 2,
    transactions: 0,
    queries: 2,
    bytesReceived: 33,
    bytesSent: 0,
    transactionMicros: 10,
    queryMicros: 1_000,
    waitMicros: 1_500,
    clientParses: 2,
    serverParses: 0,
    binds: 10,
    sessionChecks: 3,
    sessionPins: 1,
    swallowed: 2,
    multiplexed: 30,
    multiplexedAgain: 1,
    longWaits: 2,
  });
});

test('Averages are whole and never negative, whatever was counted', () => {
  fc.assert(
    fc.property(anyCounters, anyCounters, fc.nat({ max: 1_000_000 }), (total, before, ms) => {
      for (const average of Object.values(averagesOf(total, before, ms))) {
        expect(Number.isInteger(average)).toBe(true);
        expect(average).toBeGreaterThanOrEqual(0);
      }
    }),
  );
});

test('Averages of several databases are those of their sum', () => {
  fc.assert(
    fc.property(fc.array(anyCounters, { maxLength: 5 }), (all) => {
      const sum = sumOf(all);
      for (const name of Object.keys(noCounters) as (keyof Counters)[])
        expect(sum[name]).toBe(all.reduce((total, counters) => total + counters[name], 0));
    }),
  );
});

test('The window of averages reaches back to the last but one period, and forgets what was before', () => {
  const window = new StatsWindow(1_000);
  expect([window.lengthAt(1_500), window.before('app')]).toEqual([500, noCounters]);
  window.roll(61_000, [['app', countersOf({ queries: 10 })]]);
  expect([window.lengthAt(62_000), window.before('app').queries]).toEqual([61_000, 0]);
  window.roll(121_000, [['app', countersOf({ queries: 30 })]]);
  expect([window.lengthAt(122_000), window.before('app').queries]).toEqual([61_000, 10]);
  window.roll(181_000, []);
  expect([window.lengthAt(182_000), window.before('app').queries]).toEqual([61_000, 30]);
  window.roll(241_000, []);
  expect(window.before('app')).toEqual(noCounters);
});

test('The window of averages keeps the counters as they were, even if the same objects count on', () => {
  const window = new StatsWindow(0);
  const counting = { ...noCounters, queries: 1 };
  window.roll(1, [['app', counting]]);
  counting.queries = 2;
  window.roll(2, [['app', counting]]);
  expect(window.before('app').queries).toBe(1);
});
