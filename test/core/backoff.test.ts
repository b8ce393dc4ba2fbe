// Waiting longer after each failure.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Backoff, backoffDelay } from '../../src/core/backoff.js';
import { SeededRandom } from '../../src/kernel/random.js';

test('A backoff lies between 0 and a ceiling that doubles with each failure, up to the cap', () => {
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

test('A backoff reaches its ceiling: full jitter', () => {
  const policy = { base: 100, cap: 1_000 };
  const almostOne = { next: () => 0.999_999 };
  const ceilings = [1, 2, 3, 4, 5, 6].map((failures) =>
    Math.round(backoffDelay(policy, failures, almostOne)),
  );
  expect(ceilings).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  expect(backoffDelay(policy, 6, { next: () => 0 })).toBe(0);
});

test('A backoff does not run away after very many failures', () => {
  expect(backoffDelay({ base: 100, cap: 10_000 }, 1_000_000, { next: () => 0.5 })).toBe(5_000);
});

describe('What failed several times', () => {
  const policy = { base: 100, cap: 1_000 };
  const down = new Error('down');

  test('A dial may be tried at once at first, and after each failure only after a longer delay', () => {
    const backoff = new Backoff(policy, { next: () => 0.5 });
    expect(backoff.retryAt).toBeLessThan(0);
    const delays = [1, 2, 3, 4, 5, 6].map((failures) => {
      const now = failures * 10_000;
      backoff.failed(down, now);
      expect(backoff).toMatchObject({ failures, lastError: down });
      return backoff.retryAt - now;
    });
    expect(delays).toEqual([50, 100, 200, 400, 500, 500]);
  });

  test('A dial that failed several times is not tried sooner because another attempt of the same wave drew a shorter delay', () => {
    let draw = 1;
    const backoff = new Backoff(policy, { next: () => draw });
    backoff.failed(down, 0);
    draw = 0;
    backoff.failed(down, 5);
    expect(backoff.retryAt).toBe(100);
  });

  test('A dial that failed several times may be tried at once when something changed, but the next failure counts on', () => {
    const backoff = new Backoff(policy, { next: () => 0.5 });
    backoff.failed(down, 0);
    backoff.failed(down, 0);
    backoff.hurry();
    expect(backoff.retryAt).toBeLessThan(0);
    expect(backoff).toMatchObject({ failures: 2, lastError: down });
    backoff.failed(down, 1_000);
    expect(backoff.retryAt).toBe(1_000 + 200);
  });

  test('A failure has no delay of its own while another part sets the time of the next attempt, and counts as a failure', () => {
    const backoff = new Backoff({ base: 100, cap: 1_000 }, { next: () => 1 });
    backoff.failed(new Error('down'), 0);
    backoff.suspended(new Error('none left'));
    expect(backoff).toMatchObject({ failures: 2, retryAt: Number.NEGATIVE_INFINITY });
    expect(backoff.lastError).toEqual(new Error('none left'));
  });

  test('Failures are forgotten with a success', () => {
    const backoff = new Backoff(policy, { next: () => 0.5 });
    for (let n = 0; n < 5; n++) backoff.failed(down, 0);
    backoff.succeeded();
    expect(backoff).toMatchObject({ failures: 0, lastError: undefined });
    expect(backoff.retryAt).toBeLessThan(0);
    backoff.failed(down, 0);
    expect(backoff.retryAt).toBe(50);
  });
});
