import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecentWaits, WaitHistogram } from '../../src/simulator/measures/wait-histogram.js';

const waits = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0.001, max: 1e7, noNaN: true })), {
  minLength: 1,
  maxLength: 300,
});

function exact(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil(part * sorted.length - 1e-9)) - 1] as number;
}

test('a percentile is at most one percent too high, and never too low', () => {
  fc.assert(
    fc.property(waits, fc.constantFrom(0.01, 0.5, 0.9, 0.99, 0.999, 1), (values, part) => {
      const histogram = new WaitHistogram();
      for (const value of values) histogram.record(value, false);
      const truth = exact(values, part);
      const told = histogram.percentile(part);
      expect(told).toBeGreaterThanOrEqual(truth * (1 - 1e-9));
      expect(told).toBeLessThanOrEqual(truth * 1.0101);
    }),
  );
});

test('failed callers are in the histogram of waits, and are counted apart', () => {
  const histogram = new WaitHistogram();
  for (let n = 0; n < 9; n++) histogram.record(0, false);
  histogram.record(5_000, true);
  expect(histogram.summary()).toEqual({ callers: 10, failed: 1, p50: 0, p90: 0, p99: 5_000, max: 5_000 });
});

test('without a caller there is nothing to wait for', () => {
  expect(new WaitHistogram().summary()).toEqual({ callers: 0, failed: 0, p50: 0, p90: 0, p99: 0, max: 0 });
});

test('the waits since the last look have their exact 99th percentile, and are forgotten then', () => {
  fc.assert(
    fc.property(waits, (values) => {
      const recent = new RecentWaits();
      for (const value of values) recent.record(value);
      expect(recent.takeP99()).toBeCloseTo(exact(values, 0.99), 2);
      expect(recent.takeP99()).toBe(0);
    }),
  );
});
