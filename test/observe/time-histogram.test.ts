/** Times by how long they were: nothing is lost, and nothing is counted twice. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TimeHistogram, timeBounds } from '../../src/observe/time-histogram.js';

test('a histogram of times counts each time under every bound that is not shorter', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 100_000, noNaN: true })), (times) => {
      const histogram = new TimeHistogram();
      for (const time of times) histogram.record(time);
      const upTo = timeBounds.map((bound) => times.filter((time) => time <= bound).length);
      expect(histogram.cumulative()).toEqual(upTo);
      expect(histogram.count).toBe(times.length);
      expect(histogram.sumMs).toBe(times.reduce((sum, time) => sum + time, 0));
    }),
  );
});

test('a histogram of times has bounds that grow', () => {
  expect([...timeBounds].sort((a, b) => a - b)).toEqual(timeBounds);
  expect(new Set(timeBounds).size).toBe(timeBounds.length);
});
