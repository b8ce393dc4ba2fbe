// The smallest of many, without sorting all of them.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { smallest } from '../../src/kernel/smallest.js';

describe('The smallest of many', () => {
  it('are in front, whatever the order was, and nothing is lost', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer(), { maxLength: 60 }), fc.nat({ max: 65 }), (numbers, count) => {
        const items = [...numbers];
        smallest(items, count, (a, b) => a < b);
        const sorted = [...numbers].sort((a, b) => a - b);
        expect(items.slice(0, count).sort((a, b) => a - b)).toEqual(sorted.slice(0, count));
        expect([...items].sort((a, b) => a - b)).toEqual(sorted);
      }),
      { numRuns: 500 },
    );
  });

  it('take a time that grows with the number of items, also where they are in order', () => {
    for (const items of [
      Array.from({ length: 1_000 }, (_, n) => n),
      Array.from({ length: 1_000 }, (_, n) => -n),
    ]) {
      let comparisons = 0;
      smallest(items, 300, (a, b) => {
        comparisons++;
        return a < b;
      });
      expect(comparisons).toBeLessThan(8_000);
    }
  });
});
