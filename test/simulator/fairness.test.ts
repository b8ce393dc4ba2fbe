import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jainIndex, maxMinShares } from '../../src/simulator/measures/fairness.js';

const amounts = fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 20 });

test('a fair share is no more than what was asked for, and who has less than that has as much as anyone', () => {
  fc.assert(
    fc.property(amounts, fc.integer({ min: 1, max: 20_000 }), (asked, total) => {
      const shares = maxMinShares(asked, total);
      const sum = shares.reduce((a, b) => a + b, 0);
      const wanted = asked.reduce((a, b) => a + b, 0);
      expect(sum).toBeCloseTo(Math.min(total, wanted), 6);
      const most = Math.max(...shares);
      shares.forEach((share, index) => {
        expect(share).toBeLessThanOrEqual(asked[index] as number);
        if (share < (asked[index] as number) - 1e-9) expect(share).toBeCloseTo(most, 6);
      });
    }),
  );
});

test('fair shares have the index 1, however much some ask for', () => {
  fc.assert(
    fc.property(amounts, fc.integer({ min: 1, max: 20_000 }), (asked, total) => {
      const given = maxMinShares(asked, total);
      const shares = asked.map((amount, index) => ({ asked: amount, given: given[index] as number }));
      expect(jainIndex(shares)).toBeCloseTo(1, 6);
    }),
  );
});

test('where one of four has everything that all four want, the index is a quarter', () => {
  const shares = [100, 0, 0, 0].map((given) => ({ asked: 100, given }));
  expect(jainIndex(shares)).toBeCloseTo(0.25, 9);
});

test('a noisy tenant that takes what the others ask for lowers the index, and one that takes what is left does not', () => {
  const quiet = (given: number) => ({ asked: 10, given });
  expect(jainIndex([{ asked: 1_000, given: 80 }, quiet(10), quiet(10)])).toBeCloseTo(1, 9);
  expect(jainIndex([{ asked: 1_000, given: 98 }, quiet(1), quiet(1)])).toBeLessThan(0.6);
});

test('fairness is even where no client asks, or no client gets anything', () => {
  expect(jainIndex([])).toBe(1);
  expect(jainIndex([{ asked: 0, given: 0 }])).toBe(1);
  expect(
    jainIndex([
      { asked: 5, given: 0 },
      { asked: 9, given: 0 },
    ]),
  ).toBe(1);
});
