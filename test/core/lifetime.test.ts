// How long a connection lives.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { drawLifetime } from '../../src/core/lifetime.js';
import { SeededRandom } from '../../src/kernel/random.js';

test('A lifetime lies within half the jitter of the maximum, for every maximum and every jitter', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.double({ min: 0, max: 2, noNaN: true }),
      fc.nat(),
      (maxLifetime, share, seed) => {
        const maxLifetimeJitter = maxLifetime * share;
        const life = drawLifetime({ maxLifetime, maxLifetimeJitter, guardWindow: 0 }, new SeededRandom(seed));
        expect(life).toBeGreaterThanOrEqual(Math.max(0, maxLifetime - maxLifetimeJitter / 2));
        expect(life).toBeLessThanOrEqual(maxLifetime + maxLifetimeJitter / 2);
      },
    ),
  );
});

test('A lifetime reaches both bounds', () => {
  const policy = { maxLifetime: 1_000, maxLifetimeJitter: 200, guardWindow: 0 };
  expect(drawLifetime(policy, { next: () => 0 })).toBe(900);
  expect(drawLifetime(policy, { next: () => 1 - Number.EPSILON })).toBeCloseTo(1_100, 6);
});

test('A lifetime is spread evenly between them', () => {
  const policy = { maxLifetime: 3_600_000, maxLifetimeJitter: 720_000, guardWindow: 0 };
  const random = new SeededRandom(1);
  const buckets = Array<number>(10).fill(0);
  for (let n = 0; n < 10_000; n++) {
    const bucket = Math.floor((drawLifetime(policy, random) - 3_240_000) / 72_000);
    buckets[bucket] = (buckets[bucket] as number) + 1;
  }
  const chiSquare = buckets.reduce((sum, count) => sum + (count - 1_000) ** 2 / 1_000, 0);
  // 9 degrees of freedom: above 27.9 once in a thousand times.
  expect(chiSquare).toBeLessThan(27.9);
});

test('A lifetime without jitter is the maximum, and without a maximum has no end', () => {
  const random = new SeededRandom(1);
  expect(drawLifetime({ maxLifetime: 500, maxLifetimeJitter: 0, guardWindow: 0 }, random)).toBe(500);
  const endless = { maxLifetime: Number.POSITIVE_INFINITY, maxLifetimeJitter: 100, guardWindow: 0 };
  expect(drawLifetime(endless, random)).toBe(Number.POSITIVE_INFINITY);
});
