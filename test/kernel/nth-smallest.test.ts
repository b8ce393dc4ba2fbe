// The n-th smallest of many, without sorting all of them.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nthSmallest } from '../../src/kernel/nth-smallest.js';

test('nthSmallest finds the n-th smallest number, whatever the order was, and loses none', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 60 }),
      fc.nat({ max: 59 }),
      fc.nat({ max: 3 }),
      (numbers, n, beyond) => {
        const nth = 1 + (n % numbers.length);
        const sorted = numbers.toSorted((a, b) => a - b);
        const column = Float64Array.from([...numbers, ...Array(beyond).fill(-1)]);
        expect(nthSmallest(column, numbers.length, nth)).toBe(sorted[nth - 1]);
        expect([...column.subarray(0, numbers.length)].sort((a, b) => a - b)).toEqual(sorted);
        expect([...column.subarray(numbers.length)]).toEqual(Array(beyond).fill(-1));
      },
    ),
    { numRuns: 500 },
  );
});
