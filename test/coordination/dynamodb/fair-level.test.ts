// Shares of what is not enough for all: callers before ready connections, in proportion to the users behind each claim.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Claim,
  enoughForAll,
  fairLevels,
  type Needs,
  rankOf,
  shareOf,
} from '../../../src/coordination/dynamodb/fair-level.js';

const needs: fc.Arbitrary<Needs> = fc
  .record({
    callers: fc.oneof(fc.constant(0), fc.nat({ max: 30 })),
    ready: fc.oneof(fc.constant(0), fc.nat({ max: 50 })),
    claimants: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 }), fc.constantFrom(0.5, 1.5, 2.25)),
  })
  .map(({ callers, ready, claimants }) => ({ callers, total: callers + ready, claimants }));
const someNeeds = fc.array(needs, { maxLength: 12 });
const limits = fc.nat({ max: 400 });

function claimsOf(all: readonly Needs[]): Claim[] {
  return all.map((each, n) => ({ ...each, rank: rankOf(`lease ${n}`) }));
}

function sharesOf(all: readonly Needs[], limit: number): number[] {
  const claims = claimsOf(all);
  const levels = fairLevels(claims, limit);
  return claims.map((claim) => shareOf(claim, levels));
}

function callersOnly(all: readonly Needs[]): Needs[] {
  return all.map((each) => ({ ...each, total: each.callers }));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

const reservoir = { callers: 2, total: 50, claimants: 1 };

test('Fair shares of a fleet are equal for equal reservoirs, and add up to the limit', () => {
  expect(sharesOf(Array(10).fill(reservoir), 480)).toEqual(Array(10).fill(48));
  const uneven = sharesOf(Array(10).fill(reservoir), 485);
  expect([Math.min(...uneven), Math.max(...uneven), sum(uneven)]).toEqual([48, 49, 485]);
  expect(sharesOf(Array(10).fill(reservoir), 500)).toEqual(Array(10).fill(50));
});

test('Fair shares of a fleet give callers what they need before anyone has a ready connection', () => {
  const idle = { callers: 0, total: 50, claimants: 1 };
  const busy = { callers: 40, total: 40, claimants: 1 };
  expect(sharesOf([idle, busy], 50)).toEqual([10, 40]);
  expect(sharesOf([idle, busy], 40)).toEqual([0, 40]);
  expect(sharesOf([idle, busy, busy], 60)).toEqual([0, 30, 30]);
});

test('Fair shares of a fleet level the sums of both needs: callers within the share take nothing from others', () => {
  const busier = { callers: 30, total: 50, claimants: 1 };
  expect(sharesOf([reservoir, busier], 80)).toEqual([40, 40]);
  expect(sharesOf([reservoir, { callers: 45, total: 50, claimants: 1 }], 80)).toEqual([35, 45]);
});

test('Fair shares of a fleet are those of users, not of instances', () => {
  const one = { callers: 20, total: 20, claimants: 1 };
  const nineteen = { callers: 20, total: 20, claimants: 19 };
  expect(sharesOf([one, nineteen], 20)).toEqual([1, 19]);
  expect(sharesOf([one, nineteen], 30)).toEqual([10, 20]);
  // However many users others have: who has callers has a connection.
  expect(sharesOf([one, { ...nineteen, claimants: 1_000 }], 20)).toEqual([1, 19]);
});

test('Fair shares of a fleet add up to the limit, or to all that is needed', () => {
  fc.assert(
    fc.property(someNeeds, limits, (all, limit) => {
      const shares = sharesOf(all, limit);
      expect(sum(shares)).toBe(Math.min(limit, sum(all.map(({ total }) => total))));
      for (const [n, share] of shares.entries()) expect(share).toBeLessThanOrEqual(all[n]?.total ?? 0);
    }),
    { numRuns: 2_000 },
  );
});

test('Fair shares of a fleet give callers as much as without the demand for ready connections', () => {
  fc.assert(
    fc.property(someNeeds, limits, (all, limit) => {
      const shares = sharesOf(all, limit);
      for (const [n, least] of sharesOf(callersOnly(all), limit).entries())
        expect(shares[n]).toBeGreaterThanOrEqual(least);
    }),
    { numRuns: 2_000 },
  );
});

test('Fair shares of a fleet never fall when the limit rises', () => {
  fc.assert(
    fc.property(someNeeds, limits, (all, limit) => {
      const more = sharesOf(all, limit + 1);
      for (const [n, share] of sharesOf(all, limit).entries()) expect(more[n]).toBeGreaterThanOrEqual(share);
    }),
    { numRuns: 2_000 },
  );
});

test('Fair shares of a fleet stay the same when an instance comes that needs nothing', () => {
  fc.assert(
    fc.property(someNeeds, limits, fc.integer({ min: 1, max: 40 }), (all, limit, claimants) => {
      const nobody = { callers: 0, total: 0, claimants };
      expect(sharesOf([...all, nobody], limit)).toEqual([...sharesOf(all, limit), 0]);
    }),
  );
});

test('Fair shares of a fleet stay the same when everyone asks for no more than its share', () => {
  fc.assert(
    fc.property(someNeeds, limits, (all, limit) => {
      const shares = sharesOf(all, limit);
      const content = all.map((each, n) => {
        const total = shares[n] as number;
        return { ...each, callers: Math.min(each.callers, total), total };
      });
      expect(sharesOf(content, limit)).toEqual(shares);
      expect(fairLevels(claimsOf(content), limit)).toBe(enoughForAll);
    }),
    { numRuns: 1_000 },
  );
});

test('Fair shares of a fleet are max-min fair by weight: a slot that another has stands before one that is missing', () => {
  fc.assert(
    fc.property(someNeeds, limits, (all, limit) => {
      const shares = sharesOf(all, limit);
      for (const [n, { callers, total, claimants }] of all.entries()) {
        const share = shares[n] as number;
        if (share >= total) continue;
        for (const [m, other] of all.entries()) {
          const others = shares[m] as number;
          // What the other has for its callers, or as the one connection of someone with callers, is not to be had.
          const isReady = others > Math.max(other.callers, 1);
          const isOfCallers = share < callers && others > 1;
          if (!isReady && !isOfCallers) continue;
          // The other's last slot stands before the next slot of this one.
          expect((others - 0.5) / other.claimants).toBeLessThanOrEqual((share + 0.5) / claimants);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test('Fair shares of a fleet of a whole fleet are found quickly', () => {
  const many = Array.from({ length: 1_000 }, (_, n) => ({
    ...reservoir,
    total: 20 + (n % 40),
    claimants: 1 + (n % 7),
  }));
  expect(sum(sharesOf(many, 10_000))).toBe(10_000);
});
