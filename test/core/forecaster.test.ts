// A forecast raises demand to what is usual at this time and to where it is going; it never lowers it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DemandProfile } from '../../src/core/demand-profile.js';
import { DemandTrend } from '../../src/core/demand-trend.js';
import { Forecaster } from '../../src/core/forecaster.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Days on which 40 are needed from nine to ten, and 5 at all other times. */
function afterDays(days: number, forecaster = new Forecaster()): Forecaster {
  for (let now = 0; now < days * day; now += 5 * minute) {
    const timeOfDay = now % day;
    forecaster.record('office', timeOfDay >= 9 * hour && timeOfDay < 10 * hour ? 40 : 5, now);
  }
  return forecaster;
}

test('A forecast is at least what was measured and within its bounds, whatever was recorded', () => {
  const records = fc.array(fc.tuple(fc.nat({ max: 200 }), fc.nat({ max: 3 * day })), { maxLength: 40 });
  const maximums = fc.option(fc.nat({ max: 300 }), { nil: undefined });
  fc.assert(
    fc.property(
      records,
      fc.nat({ max: 200 }),
      fc.nat({ max: day }),
      maximums,
      (script, measured, later, maximum) => {
        const forecaster = new Forecaster({ mostTimes: 2 });
        let now = 0;
        for (const [demand, pause] of script) {
          now += pause;
          forecaster.record('a', demand, now);
        }
        const { demand, reason } = forecaster.estimate('a', measured, now + later, maximum);
        expect(Number.isInteger(demand)).toBe(true);
        expect(demand).toBeGreaterThanOrEqual(measured);
        expect(demand).toBeLessThanOrEqual(
          Math.max(measured, Math.min(2 * Math.max(1, measured), maximum ?? 1e9)),
        );
        expect(reason === 'measured').toBe(demand === measured);
      },
    ),
  );
});

test('A forecast is the measured demand, where no history is known', () => {
  expect(new Forecaster().estimate('a', 7, 0)).toEqual({ demand: 7, reason: 'measured' });
});

test('A forecast rises to the usual demand of this time of the day, shortly before it is needed', () => {
  const forecaster = afterDays(2);
  const at = (time: number): unknown => forecaster.estimate('office', 25, 2 * day + time, 100);
  expect(at(8 * hour + 58 * minute)).toEqual({ demand: 25, reason: 'measured' });
  expect(at(8 * hour + 59 * minute)).toEqual({ demand: 40, reason: 'time_of_day' });
  expect(at(9 * hour + 30 * minute)).toEqual({ demand: 40, reason: 'time_of_day' });
  expect(at(10 * hour)).toEqual({ demand: 25, reason: 'measured' });
});

test('A forecast rises to no more than twice the measured demand, and to no more than the maximum', () => {
  const forecaster = afterDays(2);
  const atNine = 2 * day + 9 * hour;
  expect(forecaster.estimate('office', 6, atNine).demand).toBe(12);
  expect(forecaster.estimate('office', 0, atNine).demand).toBe(2);
  expect(forecaster.estimate('office', 30, atNine, 35).demand).toBe(35);
  expect(forecaster.estimate('office', 30, atNine, 10).demand).toBe(30);
  expect(afterDays(2, new Forecaster({ mostTimes: 10 })).estimate('office', 6, atNine).demand).toBe(40);
});

test('A forecast forgets demand that is no longer usual, also while nothing is recorded', () => {
  const forecaster = afterDays(3);
  forecaster.record('office', 5, 13 * day);
  expect(forecaster.estimate('office', 30, 13 * day + 9 * hour).reason).toBe('measured');
});

test('A forecast knows weekends, with a period of a week', () => {
  const forecaster = new Forecaster({ period: '7d', slot: '1h' });
  for (let now = 0; now < 14 * day; now += hour)
    forecaster.record('a', now % (7 * day) < 5 * day ? 30 : 2, now);
  expect(forecaster.estimate('a', 20, 14 * day + 9 * hour)).toEqual({ demand: 30, reason: 'time_of_day' });
  expect(forecaster.estimate('a', 20, 19 * day + 9 * hour).reason).toBe('measured');
});

test('A forecast raises to where demand is going', () => {
  const forecaster = new Forecaster({ lookahead: '20s' });
  [10, 12, 14, 16, 18].forEach((demand, n) => {
    forecaster.record('a', demand, n * 10_000);
  });
  expect(forecaster.estimate('a', 18, 40_000)).toEqual({ demand: 22, reason: 'trend' });
});

test('A forecast remembers so many users and no more, those heard of last', () => {
  const forecaster = new Forecaster({ maxUsers: 2, slot: '1h' });
  for (const key of ['a', 'b', 'c', 'b']) {
    forecaster.record(key, 50, 0);
    forecaster.record(key, 50, 2 * hour);
  }
  const tomorrow = (key: string): string => forecaster.estimate(key, 40, day).reason;
  expect(['a', 'b', 'c'].map(tomorrow)).toEqual(['measured', 'time_of_day', 'time_of_day']);
  expect(forecaster.size).toBe(2);
  forecaster.forget('b');
  expect(tomorrow('b')).toBe('measured');
  expect(forecaster.size).toBe(1);
});

test('A forecast refuses options that make no sense, all at once', () => {
  const make = (options: object) => (): unknown => new Forecaster(options);
  expect(make({ period: 0, lookahead: 'soon', mostTimes: 0.5, maxUsers: 0, slots: 3 })).toThrow(
    PoolOptionsError,
  );
  expect(make({ period: 0, lookahead: 'soon', mostTimes: 0.5, maxUsers: 0, slots: 3 })).toThrow(
    /period: .*lookahead: .*mostTimes: .*maxUsers: .*slots: .*did you mean slot/s,
  );
  expect(make({ slot: '7m' })).toThrow(/slot: is 420000 ms, which does not divide the period/);
  expect(make({ slot: '5d' })).toThrow(/slot: must divide the period into 1 to 10080 slots, not into 0/);
  expect(make({ slot: '1s' })).toThrow(/slot: must divide the period into 1 to 10080 slots, not into 86400/);
});

test('The profile of a day is, slot by slot, the average of what its days recorded, with the latest counting most', () => {
  const peaks = fc.array(fc.option(fc.nat({ max: 100 }), { nil: undefined }), {
    minLength: 1,
    maxLength: 40,
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), peaks, (slots, script) => {
      const profile = new DemandProfile(slots, 0.25);
      const known = new Map<number, number>();
      const started = script.findIndex((peak) => peak !== undefined);
      script.forEach((peak, slot) => {
        if (peak !== undefined) profile.record(slot, peak);
      });
      const ended = script.length;
      profile.record(ended, 0);
      for (let slot = started; started >= 0 && slot < ended; slot++) {
        const before = known.get(slot % slots);
        const peak = script[slot] ?? 0;
        known.set(slot % slots, before === undefined ? peak : before + (peak - before) * 0.25);
      }
      for (let slot = 0; slot < slots; slot++)
        expect(profile.usual(slot)).toBeCloseTo(known.get(slot) ?? 0, 3);
    }),
  );
});

test('The profile of a day takes the highest demand of a slot, and a clock that goes back as one that stands still', () => {
  const profile = new DemandProfile(4, 0.5);
  for (const [slot, demand] of [
    [1, 3],
    [1, 9],
    [0, 4],
    [2, 1],
    [3, 1],
  ] as const) {
    profile.record(slot, demand);
  }
  expect([0, 1, 2].map((slot) => profile.usual(slot))).toEqual([0, 9, 1]);
});

const trendOf = (...values: number[]): DemandTrend => {
  const trend = new DemandTrend(6);
  values.forEach((value, n) => {
    trend.record(n, value);
  });
  return trend;
};

test('A trend is drawn on where the values rise along a line, exactly', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 100 }),
      fc.integer({ min: 1, max: 20 }),
      fc.nat({ max: 50 }),
      (start, rise, later) => {
        const trend = trendOf(...[0, 1, 2, 3, 4, 5, 6, 7].map((n) => start + n * rise));
        expect(trend.at(7 + later)).toBeCloseTo(start + (7 + later) * rise);
      },
    ),
  );
});

test('A trend is not made by one value, however far off', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 50 }),
      fc.nat({ max: 5 }),
      fc.integer({ min: 1, max: 10_000 }),
      (usual, when, spike) => {
        const values = Array.from({ length: 6 }, (_, n) => (n === when ? usual + spike : usual));
        expect(trendOf(...values).at(20)).toBe(0);
      },
    ),
  );
});

test('A trend is none where demand falls or stays, and none with few values', () => {
  expect(trendOf(9, 8, 7, 6, 5, 4).at(9)).toBe(0);
  expect(trendOf(5, 5, 5, 5, 5, 5).at(9)).toBe(0);
  expect(trendOf(1, 2, 3).at(9)).toBe(0);
});

test('A trend leaves out what is not later than the last', () => {
  const trend = trendOf(1, 2, 3, 4);
  trend.record(3, 500);
  trend.record(2, 900);
  expect(trend.at(4)).toBeCloseTo(5);
});
