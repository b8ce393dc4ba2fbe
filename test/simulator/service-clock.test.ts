import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ServiceAlarm, ServiceClock } from '../../src/simulator/time/service-clock.js';
import { Timeline } from '../../src/simulator/time/timeline.js';

test('a clock runs as fast as its drift says, from where its skew puts it, and is never negative', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -86_400_000, max: 86_400_000 }),
      fc.double({ min: -0.5, max: 0.5, noNaN: true }),
      (skewMs, drift) => {
        const timeline = new Timeline();
        const clock = new ServiceClock(timeline, skewMs, drift);
        const straight = new ServiceClock(timeline, 0, 0);
        const start = clock.now();
        expect(start - straight.now()).toBe(skewMs);
        expect(start).toBeGreaterThan(0);
        timeline.runUntil(10_000);
        expect(clock.now() - start).toBeCloseTo(10_000 * (1 + drift), 3);
      },
    ),
  );
});

function ringTimes(drift: number, delays: readonly number[]): { asked: number; rang: number }[] {
  const timeline = new Timeline();
  const clock = new ServiceClock(timeline, 0, drift);
  const rings: { asked: number; rang: number }[] = [];
  const left = [...delays];
  let asked = 0;
  const alarm = new ServiceAlarm(
    timeline,
    clock,
    () => {
      rings.push({ asked, rang: clock.now() });
      setNext();
    },
    (action) => action(),
  );
  const setNext = (): void => {
    const delay = left.shift();
    if (delay === undefined) return;
    asked = clock.now() + delay;
    alarm.set(asked);
  };
  setNext();
  timeline.runUntil(1e9);
  return rings;
}

test('an alarm rings once for each setting, at most a millisecond late, never early, and time always moves on', () => {
  const drifts = fc.double({ min: -0.5, max: 0.5, noNaN: true });
  const delays = fc.array(fc.double({ min: -5, max: 1_000, noNaN: true }), { maxLength: 20 });
  fc.assert(
    fc.property(drifts, delays, (drift, waits) => {
      const rings = ringTimes(drift, waits);
      expect(rings.length).toBe(waits.length);
      rings.forEach(({ asked, rang }, index) => {
        const wait = waits[index] as number;
        // Rounding in the last place is within the granularity that the alarm admits to.
        expect(rang - asked).toBeGreaterThan(-1e-3);
        if (wait > 0) expect(rang - asked).toBeLessThanOrEqual(1.001);
        expect(rang - (asked - wait)).toBeGreaterThan(0.99);
      });
    }),
  );
});

test('an alarm that comes up while its process stands still does not ring if it was set anew before that goes on', () => {
  const timeline = new Timeline();
  const clock = new ServiceClock(timeline, 0, 0);
  const backlog: (() => void)[] = [];
  const rings: number[] = [];
  const alarm = new ServiceAlarm(
    timeline,
    clock,
    () => rings.push(timeline.now),
    (action) => backlog.push(action),
  );
  alarm.set(clock.now() + 10);
  timeline.runUntil(20);
  alarm.set(clock.now() + 30);
  for (const action of backlog.splice(0)) action();
  expect(rings).toEqual([]);
  timeline.runUntil(60);
  for (const action of backlog.splice(0)) action();
  expect(rings).toEqual([60]);
});
