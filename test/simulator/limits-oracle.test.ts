// The server's judgement of the rate, against its definition and against the limiter that it judges.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../src/core/token-bucket.js';
import { SlidingWindow } from '../../src/simulator/measures/sliding-window.js';
import { Admission } from '../../src/simulator/server/admission.js';

const gaps = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 });

function timesOf(gapsMs: readonly number[]): number[] {
  let now = 0;
  return gapsMs.map((gap) => {
    now += gap;
    return now;
  });
}

test('the window sees the most within any second, wherever that second begins', () => {
  fc.assert(
    fc.property(gaps, (gapsMs) => {
      const window = new SlidingWindow();
      const times = timesOf(gapsMs);
      let peak = 0;
      for (const [index, time] of times.entries()) {
        window.add(time);
        const within = times.slice(0, index + 1).filter((earlier) => earlier > time - 1_000).length;
        peak = Math.max(peak, within);
        expect(window.count(time)).toBe(within);
        expect(window.peak).toBe(peak);
      }
    }),
  );
});

test('a burst on both sides of the turn of a second is seen as one', () => {
  const window = new SlidingWindow();
  for (let n = 0; n < 100; n++) window.add(999);
  for (let n = 0; n < 100; n++) window.add(1_001);
  expect(window.peak).toBe(200);
});

test('the server lets in what a bucket holds and what has been added to it, and nothing more', () => {
  const rates = fc.constantFrom(1, 5, 10, 100);
  fc.assert(
    fc.property(gaps, rates, fc.integer({ min: 1, max: 20 }), (gapsMs, perSecond, burst) => {
      const admission = new Admission(perSecond, burst);
      // The definition, in thousandths of a permit so that all numbers are whole.
      let permits = burst * 1_000;
      let last = 0;
      for (const now of timesOf(gapsMs)) {
        permits = Math.min(burst * 1_000, permits + (now - last) * perSecond);
        last = now;
        const isLetIn = permits >= 1_000;
        if (isLetIn) permits -= 1_000;
        expect(admission.admits(now)).toBe(isLetIn);
      }
    }),
  );
});

test('a client that keeps to a limiter of the same size is never refused, when limiter and server see the same times', () => {
  fc.assert(
    fc.property(gaps, fc.integer({ min: 1, max: 20 }), (gapsMs, burst) => {
      const limiter = new TokenBucket({ rate: 7, burst });
      const admission = new Admission(7, burst);
      for (const now of timesOf(gapsMs)) {
        if (limiter.take(now) === 0) expect(admission.admits(now)).toBe(true);
      }
    }),
  );
});

test('a client that keeps to a limiter of twice the size is refused', () => {
  const limiter = new TokenBucket({ rate: 7, burst: 10 });
  const admission = new Admission(7, 5);
  const verdicts: boolean[] = [];
  while (limiter.take(0) === 0) verdicts.push(admission.admits(0));
  expect(verdicts.filter((isLetIn) => isLetIn)).toHaveLength(5);
  expect(verdicts.filter((isLetIn) => !isLetIn)).toHaveLength(5);
});
