// Waiting longer after each failure.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffDelay } from '../../src/core/backoff.js';
import { SeededRandom } from '../../src/kernel/random.js';

describe('A backoff', () => {
  it('lies between 0 and a ceiling that doubles with each failure, up to the cap', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.integer({ min: 1, max: 5_000 }),
        fc.nat(),
        (base, above, failures, seed) => {
          const cap = base + above;
          const delay = backoffDelay({ base, cap }, failures, new SeededRandom(seed));
          const ceiling = Math.min(cap, base * 2 ** (failures - 1));
          expect(delay).toBeGreaterThanOrEqual(0);
          expect(delay).toBeLessThanOrEqual(ceiling);
        },
      ),
    );
  });

  it('reaches its ceiling: full jitter', () => {
    const policy = { base: 100, cap: 1_000 };
    const almostOne = { next: () => 0.999_999 };
    const ceilings = [1, 2, 3, 4, 5, 6].map((failures) =>
      Math.round(backoffDelay(policy, failures, almostOne)),
    );
    expect(ceilings).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(backoffDelay(policy, 6, { next: () => 0 })).toBe(0);
  });

  it('does not run away after very many failures', () => {
    expect(backoffDelay({ base: 100, cap: 10_000 }, 1_000_000, { next: () => 0.5 })).toBe(5_000);
  });
});
