// Callers first, then ready connections, in proportion to users; and with constant needs, nothing moves any more.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fairLevels, rankOf, shareOf } from '../../../src/coordination/dynamodb/fair-level.js';
import { LeasedCapacity } from '../../../src/coordination/fair/leased-capacity.js';
import { Town } from '../fair/town.js';
import { Fleet, type Instance, keys } from './fleet.js';

function start(fleet: Fleet, count: number): Instance[] {
  return Array.from({ length: count }, () => fleet.start());
}

function sizes(instances: readonly Instance[]): number[] {
  return instances.map(({ pool }) => pool.size);
}

function granted(instances: readonly Instance[]): number {
  return instances.reduce((sum, { pool }) => sum + pool.granted, 0);
}

test('ready connections in a fleet are kept at equal shares when their targets exceed the limit, and stay where they are', () => {
  const fleet = new Fleet({ seed: 1, limit: 480 });
  const instances = start(fleet, 10);
  for (const one of instances) one.want(2, 48);
  fleet.run(60_000);
  expect(sizes(instances)).toEqual(Array(10).fill(48));
  const before = granted(instances);
  expect(before).toBeLessThan(1.1 * 480);
  fleet.run(15 * 60_000);
  expect(granted(instances)).toBe(before);
  expect(fleet.problems).toEqual([]);
});

test('ready connections in a fleet cost few writes while nothing moves, although more are wanted than there are', () => {
  const fleet = new Fleet({
    seed: 2,
    limit: 480,
    settings: { renewMs: 90_000, leaseMs: 180_000, graceMs: 30_000 },
  });
  for (const one of start(fleet, 10)) one.want(2, 48);
  fleet.run(60_000);
  const { writes } = fleet.table;
  fleet.run(10 * 60_000);
  // A renewal of each in a minute and a half, and two writes for each look through the leases.
  expect(fleet.table.writes - writes).toBeLessThan(10 * 8 + 2 * 60);
});

test('ready connections in a fleet give way to callers of others, and come back when those are gone', () => {
  const fleet = new Fleet({ seed: 3, limit: 50 });
  const [idle, busy] = start(fleet, 2) as [Instance, Instance];
  idle.want(0, 50);
  fleet.run(20_000);
  expect(sizes([idle, busy])).toEqual([50, 0]);
  busy.want(40);
  fleet.run(30_000);
  expect(sizes([idle, busy])).toEqual([10, 40]);
  busy.want(0);
  fleet.run(90_000);
  expect(sizes([idle, busy])).toEqual([50, 0]);
  expect(fleet.problems).toEqual([]);
});

test('ready connections in a fleet are not taken below their share by a reservoir that fills', () => {
  const fleet = new Fleet({ seed: 4, limit: 60 });
  const [first, small, late] = start(fleet, 3) as [Instance, Instance, Instance];
  first.want(0, 40);
  small.want(1, 9);
  fleet.run(20_000);
  late.want(0, 60);
  for (let n = 0; n < 600; n++) {
    fleet.run(100);
    expect(first.pool.size).toBeGreaterThanOrEqual(25);
    expect(small.pool.size).toBe(10);
  }
  expect(sizes([first, small, late])).toEqual([25, 10, 25]);
  expect(fleet.problems).toEqual([]);
});

test('ready connections of a crashed instance are missing in the fleet until its lease is over, and then all instances have what they want', () => {
  const fleet = new Fleet({ seed: 5, limit: 110 });
  const [lost, ...others] = start(fleet, 4) as [Instance, ...Instance[]];
  for (const one of [lost, ...others]) one.want(1, 24);
  fleet.run(20_000);
  lost.kill();
  const again = fleet.start();
  again.want(5, 20);
  fleet.run(15_000);
  // Callers do not wait for that.
  expect(again.pool.size).toBeGreaterThanOrEqual(5);
  for (const { pool } of others) expect(pool.size).toBeGreaterThanOrEqual(20);
  fleet.run(90_000);
  expect(sizes([again, ...others])).toEqual(Array(4).fill(25));
  expect(fleet.problems).toEqual([]);
});

test('ready connections in a fleet of one pool give way to callers of another pool of the same instance', () => {
  const fleet = new Fleet({ seed: 6, limit: 30 });
  const [one, other] = start(fleet, 2) as [Instance, Instance];
  one.want(0, 30);
  other.want(0, 30);
  fleet.run(20_000);
  expect(sizes([one, other])).toEqual([15, 15]);
  const second = one.addPool();
  one.deliver(() => second.want(8));
  fleet.run(20_000);
  expect(second.size).toBe(8);
  expect(one.pool.size + second.size + other.pool.size).toBe(30);
  expect(fleet.problems).toEqual([]);
});

test('users behind instances have equal parts, however many of them are behind one instance', () => {
  const fleet = new Fleet({ seed: 7, limit: 20 });
  const [one, nineteen] = start(fleet, 2) as [Instance, Instance];
  nineteen.pool.claimants = 19;
  one.want(20);
  fleet.run(5_000);
  nineteen.want(20);
  fleet.run(30_000);
  expect(sizes([one, nineteen])).toEqual([1, 19]);
  nineteen.pool.claimants = 3;
  fleet.run(90_000);
  expect(sizes([one, nineteen])).toEqual([5, 15]);
  expect(fleet.problems).toEqual([]);
});

test('users behind instances have equal parts when they come through the budgets of two poolers', () => {
  const fleet = new Fleet({ seed: 8, limit: 20, settings: { lookMs: 1_000 } });
  const [one, nineteen] = [1, 19].map((users) => {
    const { leases, name } = fleet.start();
    const listener = { balanceChanged: () => leased.look(), rebalanced: () => {} };
    const town = new Town({ capacity: 0, line: fleet.timeline, listener });
    const leased: LeasedCapacity = new LeasedCapacity(
      {
        ...{ name, source: leases, most: 20, spareMs: 500, retryMs: 100 },
        ...{ clock: town.clock, alarm: town.alarm },
        demand: () => town.houses.reduce((sum, { pool }) => sum + pool.demand, 0),
        claimants: () => users,
      },
      town.budget,
    );
    for (let n = 0; n < users; n++) town.arrive(`user ${n}`, { clients: 40 / users, queryMs: 20 });
    return town;
  }) as [Town, Town];
  fleet.run(60_000);
  expect(one.connections).toBeLessThanOrEqual(2);
  expect(nineteen.connections).toBeGreaterThanOrEqual(18);
  expect(fleet.active).toBeLessThanOrEqual(20);
});

test('any fleet with constant needs settles at its shares, and then moves nothing', () => {
  const need = fc.record({
    callers: fc.nat({ max: 6 }),
    ready: fc.nat({ max: 15 }),
    claimants: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1e9 }),
      fc.array(need, { minLength: 2, maxLength: 8 }),
      fc.integer({ min: 8, max: 90 }),
      (seed, needs, limit) => {
        const sumOf = (name: 'callers' | 'claimants'): number =>
          needs.reduce((sum, each) => sum + each[name], 0);
        // With fewer slots than users there are turns.
        fc.pre(Math.min(sumOf('callers'), sumOf('claimants')) <= limit);
        const fleet = new Fleet({ seed, limit });
        const instances = start(fleet, needs.length);
        for (const [n, { callers, ready, claimants }] of needs.entries()) {
          const one = instances[n] as Instance;
          one.pool.claimants = claimants;
          one.want(callers, ready);
        }
        fleet.run(120_000);
        const claims = needs.map(({ callers, ready, claimants }, n) => ({
          ...{ callers, total: callers + ready, claimants },
          rank: rankOf(keys.leases + (instances[n] as Instance).name),
        }));
        const levels = fairLevels(claims, limit);
        expect(sizes(instances)).toEqual(claims.map((claim) => shareOf(claim, levels)));
        const before = granted(instances);
        fleet.run(120_000);
        expect(granted(instances)).toBe(before);
        expect(fleet.problems).toEqual([]);
      },
    ),
    { numRuns: Number(process.env['HEADGATE_RUNS'] ?? 20) },
  );
});
