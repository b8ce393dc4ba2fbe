// A token bucket never gives out more than its burst and what flowed in since.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../src/core/token-bucket.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';

const pauses = fc.oneof(fc.nat({ max: 500 }), fc.double({ min: 0, max: 20, noNaN: true }));
/** So much later than told an urgent one may come. */
const graceMs = 100;

test('A token bucket gives, in every window of time, at most burst + rate x time, over all callers', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 1_000, noNaN: true }),
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.tuple(pauses, fc.boolean()), { maxLength: 200 }),
      (rate, burst, asks) => {
        const bucket = new TokenBucket({ rate, burst });
        const taken: number[] = [];
        let now = 12_345.678;
        for (const [pause, isUrgent] of asks) {
          now += pause;
          if (bucket.take(now, isUrgent) === 0) taken.push(now);
        }
        for (let first = 0; first < taken.length; first++) {
          for (let last = first; last < taken.length; last++) {
            const time = (taken[last] as number) - (taken[first] as number);
            expect(last - first + 1).toBeLessThanOrEqual(burst + (rate * time) / 1_000 + 1e-6);
          }
        }
      },
    ),
  );
});

test('A token bucket gives a permit to a caller that returns after the named time, which is never zero', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 1_000, noNaN: true }),
      fc.integer({ min: 1, max: 5 }),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      (rate, burst, start) => {
        const bucket = new TokenBucket({ rate, burst });
        let now = start;
        for (let n = 0; n < 20; n++) {
          const wait = bucket.take(now);
          if (wait === 0) continue;
          expect(wait).toBeGreaterThan(0);
          now += wait;
          expect(bucket.take(now)).toBe(0);
        }
      },
    ),
  );
});

test('A token bucket starts full, fills at its rate and holds no more than its burst', () => {
  const bucket = new TokenBucket({ rate: 10, burst: 3 });
  expect([bucket.take(0), bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([0, 0, 0, 100]);
  expect(bucket.take(50)).toBeCloseTo(50);
  expect(bucket.take(100)).toBe(0);
  expect([1, 2, 3, 4].map(() => bucket.take(1_000_000) === 0)).toEqual([true, true, true, false]);
});

test('A token bucket takes no permit for a refused request', () => {
  const bucket = new TokenBucket({ rate: 1, burst: 1 });
  bucket.take(0);
  for (let now = 0; now < 1_000; now += 10) expect(bucket.take(now)).toBeGreaterThan(0);
  expect(bucket.take(1_000)).toBe(0);
});

test('A token bucket takes a clock that stands still or goes back as no time', () => {
  const bucket = new TokenBucket({ rate: 1_000, burst: 1 });
  expect(bucket.take(500)).toBe(0);
  expect(bucket.take(500)).toBeGreaterThan(0);
  expect(bucket.take(100)).toBeGreaterThan(0);
  expect(bucket.take(500)).toBeGreaterThan(0);
  expect(bucket.take(501)).toBe(0);
});

test('A token bucket goes on at half the speed, with nothing saved up, when the server finds it too fast', () => {
  const bucket = new TokenBucket({ rate: 100, burst: 10 });
  bucket.take(0);
  bucket.refused(0);
  expect(bucket.take(0)).toBe(20);
  expect(bucket.take(20)).toBe(0);
  expect(bucket.take(20)).toBe(20);
});

test('A token bucket takes the refusals of one wave of dials as one, and never stops for good', () => {
  const bucket = new TokenBucket({ rate: 100, burst: 1 });
  bucket.take(0);
  for (let dial = 0; dial < 8; dial++) bucket.refused(dial);
  expect(bucket.take(7)).toBeLessThanOrEqual(20);
  for (let second = 1; second < 100; second++) bucket.refused(second * 1_000);
  expect(bucket.take(99_000)).toBe(640);
});

test('A token bucket gets faster again with each connection that is opened, up to its full speed', () => {
  const bucket = new TokenBucket({ rate: 100, burst: 1 });
  bucket.take(0);
  bucket.refused(0);
  for (let opened = 0; opened < 10; opened++) bucket.opened();
  expect(bucket.take(0)).toBeCloseTo(10 / 0.7);
  for (let opened = 0; opened < 1_000; opened++) bucket.opened();
  expect(bucket.take(0)).toBeCloseTo(10);
});

test('A token bucket says how many permits a second can be counted on at its present speed', () => {
  const bucket = new TokenBucket({ rate: 100, burst: 1 });
  expect(bucket.rate).toBeCloseTo(100);
  bucket.refused(0);
  expect(bucket.rate).toBeCloseTo(50);
  bucket.opened();
  expect(bucket.rate).toBeCloseTo(52);
});

test('A token bucket refuses options that make no sense, all at once', () => {
  const make = (): TokenBucket => new TokenBucket({ rate: 0, burst: 0.5, brust: 3 } as never);
  expect(make).toThrow(PoolOptionsError);
  expect(make).toThrow(
    /rate: must be a number above 0.*burst: must be.*brust: is not an option; did you mean burst/s,
  );
  expect(() => new TokenBucket({ rate: 1 } as never)).toThrow(/burst: is missing/);
});

test('A token bucket that several share keeps the next permit for an urgent one that was told to wait', () => {
  const bucket = new TokenBucket({ rate: 10, burst: 1 });
  bucket.take(0);
  expect(bucket.take(0, true)).toBe(100);
  expect(bucket.take(100)).toBeGreaterThan(0);
  expect(bucket.take(100, true)).toBe(0);
});

test('A token bucket that several share gives permits beyond the reserved one to any of them', () => {
  const bucket = new TokenBucket({ rate: 100, burst: 5 });
  for (let n = 0; n < 5; n++) bucket.take(0);
  expect(bucket.take(0, true)).toBe(10);
  expect(bucket.take(10)).toBeCloseTo(10);
  expect(bucket.take(20)).toBe(0);
  expect(bucket.take(20)).toBeGreaterThan(0);
  expect(bucket.take(20, true)).toBe(0);
});

test('A token bucket that several share keeps nothing any more once an urgent one has taken', () => {
  const bucket = new TokenBucket({ rate: 100, burst: 1 });
  bucket.take(0);
  bucket.take(0, true);
  expect(bucket.take(10, true)).toBe(0);
  expect(bucket.take(20)).toBe(0);
});

test('A token bucket that several share never lets others overtake the urgent ones that come back when they were told to', () => {
  const arrivals = fc.array(
    fc.record({ pause: pauses, what: fc.constantFrom('urgent', 'other', 'other', 'refused') }),
    { maxLength: 150 },
  );
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 1_000, noNaN: true }),
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      arrivals,
      (rate, burst, othersComeFirst, script) => {
        const bucket = new TokenBucket({ rate, burst });
        for (let n = 0; n < burst; n++) bucket.take(0);
        /** When each of the urgent ones that wait was told to come back. */
        let appointments: number[] = [];
        const askUrgently = (now: number): void => {
          const wait = bucket.take(now, true);
          if (wait > 0) appointments.push(now + wait);
        };
        const askAsOther = (now: number): void => {
          const wait = bucket.take(now);
          if (appointments.length > 0) expect(wait).toBeGreaterThan(0);
        };
        const keepAppointments = (until: number): void => {
          for (let at = Math.min(...appointments); at <= until; at = Math.min(...appointments)) {
            if (othersComeFirst) askAsOther(at);
            const due = appointments.filter((appointment) => appointment === at);
            appointments = appointments.filter((appointment) => appointment > at);
            for (const appointment of due) askUrgently(appointment);
            askAsOther(at);
          }
        };
        let now = 0;
        for (const { pause, what } of script) {
          now += pause;
          keepAppointments(now);
          if (what === 'urgent') askUrgently(now);
          else if (what === 'other') askAsOther(now);
          else bucket.refused(now);
        }
        keepAppointments(now + 1e9);
        expect(appointments).toEqual([]);
      },
    ),
  );
});

test('A token bucket that several share has the permit for an urgent one that comes a little late', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 1_000, noNaN: true }),
      fc.integer({ min: 1, max: 4 }),
      fc.double({ min: 0, max: graceMs - 1, noNaN: true }),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 }),
      (rate, burst, lateness, others) => {
        const bucket = new TokenBucket({ rate, burst });
        for (let n = 0; n < burst; n++) bucket.take(0);
        const comesAt = bucket.take(0, true) + lateness;
        for (const part of others.sort((a, b) => a - b)) bucket.take(part * comesAt);
        expect(bucket.take(comesAt, true)).toBe(0);
      },
    ),
  );
});

test('A token bucket that several share holds others up by no more than the wait and a little, when the urgent one never comes', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 1_000, noNaN: true }),
      fc.integer({ min: 1, max: 4 }),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      (rate, burst, start) => {
        const bucket = new TokenBucket({ rate, burst });
        for (let n = 0; n < burst; n++) bucket.take(start);
        const wait = bucket.take(start, true);
        const otherWait = bucket.take(start);
        expect(otherWait).toBeLessThanOrEqual(wait + graceMs + 1e-3);
        expect(bucket.take(start + otherWait)).toBe(0);
      },
    ),
  );
});

test('A token bucket that several share is as fast as before for the others once the time of the one that never came is over', () => {
  const bucket = new TokenBucket({ rate: 10, burst: 1 });
  bucket.take(0);
  const wait = bucket.take(0, true);
  let now = wait + graceMs;
  for (let permits = 0; permits < 5; permits++) {
    expect(bucket.take(now)).toBe(0);
    now += 100;
  }
});
