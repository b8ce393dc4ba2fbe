// How many connections should have been replaced by now, so that no time comes at which more end than can be opened.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ExpiryCalendar } from '../../src/core/expiry-calendar.js';

const lifetimeMs = 25_600;
/** A life has 256 days. */
const dayMs = 100;

/** The number from the exact endings: of those that end by any time, all but what can be opened until then. */
function exactlyOverdue(endings: readonly number[], now: number, perMs: number): number {
  let overdue = 0;
  for (const end of endings) {
    const ended = endings.filter((other) => other <= end).length;
    overdue = Math.max(overdue, ended - (end - now) * perMs);
  }
  return overdue;
}

function calendarOf(endings: readonly number[]): ExpiryCalendar {
  const calendar = new ExpiryCalendar(lifetimeMs);
  for (const end of endings) calendar.add(end);
  return calendar;
}

function ask(calendar: ExpiryCalendar, endings: readonly number[], now: number, perMs: number): number {
  return endings.length === 0 ? 0 : calendar.overdue(now, Math.min(...endings), perMs);
}

const ending = fc.double({ min: 0, max: 2 * lifetimeMs, noNaN: true });
const rate = fc.constantFrom(0.0005, 0.003, 0.01, 0.1, 2);

test('The overdue number is that of the exact endings, and no more than that of one day later', () => {
  fc.assert(
    fc.property(fc.array(ending, { maxLength: 60 }), ending, rate, (endings, now, perMs) => {
      const overdue = ask(calendarOf(endings), endings, now, perMs);
      expect(overdue).toBeGreaterThanOrEqual(exactlyOverdue(endings, now, perMs) - 1e-6);
      expect(overdue).toBeLessThanOrEqual(Math.ceil(exactlyOverdue(endings, now + dayMs, perMs) + 1e-6));
    }),
    { numRuns: 500 },
  );
});

test('The overdue number is 0 while there is time to replace all of a crowd, and grows by one each time that one could be opened', () => {
  // A hundred end together; ten a second can be opened, so the first must go ten seconds before.
  const crowd = Array.from({ length: 100 }, () => 20_000);
  const calendar = calendarOf(crowd);
  const perMs = 10 / 1_000;
  expect(
    [9_000, 10_000, 10_100, 11_000, 15_000, 20_000].map((now) => calendar.overdue(now, 20_000, perMs)),
  ).toEqual([0, 0, 1, 10, 50, 100]);
});

test('The overdue number is 0 where endings are as far apart as openings', () => {
  const spread = Array.from({ length: 100 }, (_, n) => 10_000 + n * 200);
  const calendar = calendarOf(spread);
  for (let now = 0; now < 9_700; now += 50) expect(calendar.overdue(now, 10_000, 6 / 1_000)).toBe(0);
});

test('The overdue number is seen behind a quiet time: a few that end early do not hide a crowd that ends later', () => {
  const endings = [5_000, ...Array.from({ length: 40 }, () => 12_000)];
  const calendar = calendarOf(endings);
  // Forty-one are to be replaced by the twelfth second: at four a second from 1.75 s on.
  expect(calendar.overdue(1_700, 5_000, 4 / 1_000)).toBe(0);
  expect(calendar.overdue(2_200, 5_000, 4 / 1_000)).toBe(2);
});

test('The end of the crowd that something is overdue for is no earlier than the endings that make it so, and those alone make it so', () => {
  fc.assert(
    fc.property(fc.array(ending, { minLength: 1, maxLength: 60 }), ending, rate, (endings, now, perMs) => {
      const calendar = calendarOf(endings);
      const overdue = ask(calendar, endings, now, perMs);
      if (overdue === 0) return;
      const crowd = endings.filter((end) => end <= calendar.crowdEndsBy);
      expect(crowd).not.toEqual([]);
      expect(ask(calendarOf(crowd), crowd, now, perMs)).toBe(overdue);
      // One day later nothing is overdue for what ends then.
      for (const end of endings) {
        if (end <= calendar.crowdEndsBy + dayMs) continue;
        const ended = endings.filter((other) => other <= end).length;
        expect(ended - (end - now) * perMs).toBeLessThanOrEqual(1e-6);
      }
    }),
    { numRuns: 500 },
  );
});

test('The end of the crowd that something is overdue for leaves those alone that end later', () => {
  const endings = [...Array.from({ length: 40 }, () => 12_050), 20_000];
  const calendar = calendarOf(endings);
  expect(calendar.overdue(5_000, 12_050, 4 / 1_000)).toBe(12);
  expect(calendar.crowdEndsBy).toBe(12_100);
});

test('An ending that is taken out counts no more, and leaves nothing behind', () => {
  const calendar = calendarOf([1_000, 1_010, 9_000]);
  calendar.remove(1_010);
  calendar.remove(1_000);
  expect(calendar.size).toBe(1);
  expect(calendar.overdue(2_000, 9_000, 1)).toBe(0);
  calendar.remove(9_000);
  expect(calendar.size).toBe(0);
  expect(calendar.overdue(50_000, 50_000, 0.001)).toBe(0);
});

type Happening =
  | { readonly add: number }
  | { readonly removeAt: number }
  | { readonly look: number; readonly perMs: number };

const history = fc.array(
  fc.oneof(
    fc.record({ add: fc.double({ min: 0, max: lifetimeMs, noNaN: true }) }),
    fc.record({ removeAt: fc.nat(1_000) }),
    fc.record({ look: fc.double({ min: 0, max: 400, noNaN: true }), perMs: rate }),
  ),
  { maxLength: 120 },
);

test('The memory of a calendar of its last look changes no answer: it equals that of a calendar without memory', () => {
  fc.assert(
    fc.property(history, (happenings: readonly Happening[]) => {
      const calendar = new ExpiryCalendar(lifetimeMs);
      const endings: number[] = [];
      let now = 0;
      for (const happening of happenings) {
        if ('add' in happening) {
          endings.push(now + happening.add);
          calendar.add(now + happening.add);
        } else if ('removeAt' in happening) {
          const [gone] = endings.splice(happening.removeAt % (endings.length || 1), 1);
          if (gone !== undefined) calendar.remove(gone);
        } else {
          now += happening.look;
          const { perMs } = happening;
          expect(ask(calendar, endings, now, perMs)).toBe(ask(calendarOf(endings), endings, now, perMs));
        }
        expect(calendar.size).toBe(endings.length);
      }
    }),
    { numRuns: 500 },
  );
});

test('The memory of a calendar of its last look is right about a quiet time: until its end nothing is overdue, and a moment later something is', () => {
  fc.assert(
    fc.property(
      fc.array(ending, { minLength: 1, maxLength: 60 }),
      ending,
      rate,
      fc.double({ min: 0, max: 1, noNaN: true }),
      (endings, now, perMs, part) => {
        const calendar = calendarOf(endings);
        const overdue = ask(calendar, endings, now, perMs);
        const { quietUntil } = calendar;
        if (overdue > 0) {
          expect(quietUntil).toBeLessThanOrEqual(now);
          return;
        }
        const between = now + part * Math.max(0, quietUntil - now);
        if (between < quietUntil) expect(ask(calendarOf(endings), endings, between, perMs)).toBe(0);
        // Where the look was cut short, the quiet time is a lower bound; the look at its end tells more.
        const again = ask(calendar, endings, Math.max(now, quietUntil), perMs);
        expect(calendar.quietUntil).toBeGreaterThanOrEqual(quietUntil - 1e-6);
        if (again === 0) {
          const end = Math.max(calendar.quietUntil, now) + 1 / perMs;
          expect(ask(calendarOf(endings), endings, end, perMs)).toBeGreaterThan(0);
        }
      },
    ),
    { numRuns: 500 },
  );
});
