// A seeded source of randomness: the same each time, and random enough.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SeededRandom } from '../../src/kernel/random.js';

function draw(seed: number, count: number): number[] {
  const random = new SeededRandom(seed);
  return Array.from({ length: count }, () => random.next());
}

test('Seeded randomness is in [0, 1) and the same for the same seed', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (seed) => {
      const numbers = draw(seed, 50);
      expect(numbers).toEqual(draw(seed, 50));
      expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
    }),
  );
});

test('Seeded randomness starts differently for neighbouring seeds, and for seeds that differ in the upper half only', () => {
  const firsts = new Set<number>();
  for (let seed = 0; seed < 1_000; seed++) firsts.add(draw(seed, 1)[0] as number);
  for (let high = 1; high <= 1_000; high++) firsts.add(draw(high * 2 ** 32, 1)[0] as number);
  expect(firsts.size).toBe(2_000);
});

test('Seeded randomness is spread evenly', () => {
  const buckets = Array<number>(20).fill(0);
  for (const number of draw(1, 20_000)) {
    const bucket = Math.floor(number * 20);
    buckets[bucket] = (buckets[bucket] as number) + 1;
  }
  const chiSquare = buckets.reduce((sum, count) => sum + (count - 1_000) ** 2 / 1_000, 0);
  // 19 degrees of freedom: above 43.8 once in a thousand times. The seed is fixed, so this does not change.
  expect(chiSquare).toBeLessThan(43.8);
});

test('Seeded randomness gives the same numbers on every machine', () => {
  expect(draw(42, 3)).toMatchInlineSnapshot(`
      [
        0.4306323879864067,
        0.9833491817116737,
        0.027688013156875968,
      ]
    `);
});
