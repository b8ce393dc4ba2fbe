// Turns between instances: who has how many whole slots, and for which part of the time one more.
import { expect, test } from 'vitest';
import type { Lease } from '../../../src/coordination/dynamodb/lease-items.js';
import type { Turns } from '../../../src/coordination/dynamodb/turn-times.js';
import { slotsInTurn, turnsOf, wholeSlots } from '../../../src/coordination/dynamodb/turns.js';

const turnMs = 5_000;

function lease(slots: number, callers: number, claimants: number, sinceMs = 1_000_000): Lease {
  return {
    ...{ key: 'lease', instance: 'i', service: 's', used: slots, epoch: 1, seq: 1, expiresMs: 2_000_000 },
    ...{ slots, sinceMs, needs: { callers, total: callers, claimants } },
  };
}

function turnsAt(leases: readonly Lease[], limit: number, nowMs = 1_000_000): Turns | undefined {
  return turnsOf(leases, { limit, turnMs, nowMs, takeBeforeMs: 0 });
}

/** The part of the time, and how often it changes hands, with sweeps every 100 ms and hand-overs that take no time. */
function slotsOnAverage(claims: readonly { callers: number; claimants: number }[], limit: number): number[] {
  let leases = claims.map(({ callers, claimants }) => lease(0, callers, claimants, 0));
  const sums = claims.map(() => 0);
  let takeBeforeMs = 0;
  const looks = 40_000;
  for (let n = 1; n <= looks; n++) {
    const nowMs = n * 100;
    const turns = turnsOf(leases, { limit, turnMs, nowMs, takeBeforeMs }) as Turns;
    takeBeforeMs = turns.takeBeforeMs;
    let free = limit - leases.reduce((sum, { slots }) => sum + slots, 0);
    leases = leases.map((one) => {
      const allowed = slotsInTurn(one.needs, one.slots, one.sinceMs, turns);
      const slots = Math.min(allowed, one.slots + Math.max(0, free));
      const whole = wholeSlots(one.needs, turns);
      free -= slots - one.slots;
      return { ...one, slots, sinceMs: slots > whole === one.slots > whole ? one.sinceMs : nowMs };
    });
    for (const [at, { slots }] of leases.entries()) sums[at] = (sums[at] as number) + slots / looks;
    expect(leases.reduce((sum, { slots }) => sum + slots, 0)).toBeLessThanOrEqual(limit);
  }
  return sums;
}

test('turns between instances are not taken while there is enough for all callers', () => {
  expect(turnsAt([lease(2, 2, 9), lease(3, 3, 1)], 5)).toBeUndefined();
});

test('turns between instances are not taken while each instance has about as much as its users have a claim to', () => {
  expect(turnsAt([lease(1, 20, 1), lease(19, 20, 19)], 20)).toBeUndefined();
  expect(turnsAt([lease(1, 20, 1), lease(18, 20, 19)], 19)).toBeUndefined();
});

test('turns between instances give an instance slots for the part of the time that its users have a claim to', () => {
  const [one, nineteen] = slotsOnAverage(
    [
      { callers: 20, claimants: 1 },
      { callers: 90, claimants: 19 },
    ],
    5,
  );
  expect(one).toBeGreaterThan(0.22);
  expect(one).toBeLessThan(0.29);
  expect(nineteen).toBeGreaterThan(4.6);
});

test('turns between instances are as long for all whose parts are equal', () => {
  const all = slotsOnAverage(
    Array.from({ length: 7 }, () => ({ callers: 3, claimants: 2 })),
    3,
  );
  for (const average of all) expect(average).toBeCloseTo(3 / 7, 1);
});

test('turns between instances leave what an instance does not need to the others', () => {
  const [small, one, two] = slotsOnAverage(
    [
      { callers: 1, claimants: 50 },
      { callers: 9, claimants: 1 },
      { callers: 9, claimants: 4 },
    ],
    3,
  ) as [number, number, number];
  expect(small).toBeCloseTo(1, 1);
  expect(one).toBeCloseTo(0.4, 1);
  expect(two).toBeCloseTo(1.6, 1);
});
