import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SeededRandom } from '../../src/kernel/random.js';
import type { Delay } from '../../src/simulator/scenario/scenario.js';
import { Chance, draw } from '../../src/simulator/time/chance.js';

const first = (seed: number, name: string): number[] => {
  const stream = new Chance(seed).stream(name);
  return Array.from({ length: 8 }, () => stream.next());
};

test('the same seed and name give the same numbers, and another seed or name gives others', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), fc.string(), fc.string(), (seed, otherSeed, name, otherName) => {
      expect(first(seed, name)).toEqual(first(seed, name));
      if (seed !== otherSeed) expect(first(seed, name)).not.toEqual(first(otherSeed, name));
      if (name !== otherName) expect(first(seed, name)).not.toEqual(first(seed, otherName));
    }),
  );
});

test('draws of one random stream change no other', () => {
  const chance = new Chance(7);
  const one = chance.stream('orders-1/network');
  const other = chance.stream('orders-2/network');
  const alone = first(7, 'orders-2/network');
  for (let n = 0; n < 1_000; n++) one.next();
  expect(Array.from({ length: 8 }, () => other.next())).toEqual(alone);
});

function drawn(delay: Delay): number[] {
  const random = new SeededRandom(3);
  return Array.from({ length: 20_000 }, () => draw(delay, random)).sort((a, b) => a - b);
}

test('a lognormal delay has the middle and the 99th percentile that it was given', () => {
  const delays = drawn({ kind: 'lognormal', medianMs: 50, p99Ms: 400 });
  expect(delays[10_000]).toBeGreaterThan(48);
  expect(delays[10_000]).toBeLessThan(52);
  expect(delays[19_800]).toBeGreaterThan(360);
  expect(delays[19_800]).toBeLessThan(440);
});

test('an exponential delay has the mean that it was given, and a uniform one stays within its bounds', () => {
  const mean = drawn({ kind: 'exponential', meanMs: 20 }).reduce((sum, ms) => sum + ms / 20_000, 0);
  expect(mean).toBeGreaterThan(19);
  expect(mean).toBeLessThan(21);
  const uniform = drawn({ kind: 'uniform', fromMs: 5, toMs: 9 });
  expect(uniform[0]).toBeGreaterThanOrEqual(5);
  expect(uniform[19_999]).toBeLessThan(9);
});

test('a delay is never negative and always a number', () => {
  const time = fc.double({ min: 0, max: 1e6, noNaN: true });
  const delays = fc.oneof(
    fc.record({ kind: fc.constant('fixed' as const), ms: time }),
    fc.record({ kind: fc.constant('exponential' as const), meanMs: time }),
    fc.record({ kind: fc.constant('uniform' as const), fromMs: time, toMs: time }),
    fc.record({ kind: fc.constant('lognormal' as const), medianMs: time, p99Ms: time }),
  );
  fc.assert(
    fc.property(delays, fc.nat(), (delay, seed) => {
      expect(draw(delay, new SeededRandom(seed))).toBeGreaterThanOrEqual(0);
    }),
  );
});
