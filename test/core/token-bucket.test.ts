// A token bucket never gives out more than its burst and what flowed in since.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenBucket } from '../../src/core/token-bucket.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';

describe('A token bucket', () => {
  it('gives, in every window of time, at most burst + rate x time', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.1, max: 1_000, noNaN: true }),
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.oneof(fc.nat({ max: 500 }), fc.double({ min: 0, max: 20, noNaN: true })), {
          maxLength: 200,
        }),
        (rate, burst, pauses) => {
          const bucket = new TokenBucket({ rate, burst });
          const taken: number[] = [];
          let now = 12_345.678;
          for (const pause of pauses) {
            now += pause;
            if (bucket.take(now) === 0) taken.push(now);
          }
          for (let first = 0; first < taken.length; first++) {
            for (let last = first; last < taken.length; last++) {
              const time = (taken[last] as number) - (taken[first] as number);
              expect(last - first + 1).toBeLessThanOrEqual(burst + (rate * time) / 1_000 + 1e-6);
            }
          }
        },
      ),
    );
  });

  it('gives a permit to whoever comes back after the time it named, and that time is never nothing', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.1, max: 1_000, noNaN: true }),
        fc.integer({ min: 1, max: 5 }),
        fc.double({ min: 0, max: 1e9, noNaN: true }),
        (rate, burst, start) => {
          const bucket = new TokenBucket({ rate, burst });
          let now = start;
          for (let n = 0; n < 20; n++) {
            const wait = bucket.take(now);
            if (wait === 0) continue;
            expect(wait).toBeGreaterThan(0);
            now += wait;
            expect(bucket.take(now)).toBe(0);
          }
        },
      ),
    );
  });

  it('starts full, fills at its rate and holds no more than its burst', () => {
    const bucket = new TokenBucket({ rate: 10, burst: 3 });
    expect([bucket.take(0), bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([0, 0, 0, 100]);
    expect(bucket.take(50)).toBeCloseTo(50);
    expect(bucket.take(100)).toBe(0);
    expect([1, 2, 3, 4].map(() => bucket.take(1_000_000) === 0)).toEqual([true, true, true, false]);
  });

  it('asking in vain costs nothing', () => {
    const bucket = new TokenBucket({ rate: 1, burst: 1 });
    bucket.take(0);
    for (let now = 0; now < 1_000; now += 10) expect(bucket.take(now)).toBeGreaterThan(0);
    expect(bucket.take(1_000)).toBe(0);
  });

  it('takes a clock that stands still or goes back as no time', () => {
    const bucket = new TokenBucket({ rate: 1_000, burst: 1 });
    expect(bucket.take(500)).toBe(0);
    expect(bucket.take(500)).toBeGreaterThan(0);
    expect(bucket.take(100)).toBeGreaterThan(0);
    expect(bucket.take(500)).toBeGreaterThan(0);
    expect(bucket.take(501)).toBe(0);
  });

  it('refuses options that make no sense, all at once', () => {
    const make = (): TokenBucket => new TokenBucket({ rate: 0, burst: 0.5, brust: 3 } as never);
    expect(make).toThrow(PoolOptionsError);
    expect(make).toThrow(
      /rate: must be a number above 0.*burst: must be.*brust: is not an option; did you mean burst/s,
    );
  });
});
