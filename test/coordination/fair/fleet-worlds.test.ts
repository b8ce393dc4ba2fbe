// Random fleets: two to four poolers, each with a queue and users of its own, share one limit through leases in a table. A failure names its
// seed. Each law is seen to fail where something is broken on purpose.
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { TableLeases } from '../../../src/coordination/dynamodb/table-leases.js';
import { FairMember } from '../../../src/coordination/fair/fair-member.js';
import { LeasedCapacity } from '../../../src/coordination/fair/leased-capacity.js';
import { FairFleet, type Pooler } from './fair-fleet.js';
import type { Town } from './town.js';
import { findingOf } from './worlds.js';

afterEach(() => vi.restoreAllMocks());

const times = Number(process.env['HEADGATE_WORLDS'] ?? 1);
const seeds = fc.integer({ min: 1, max: 1e9 });
const counts = fc.integer({ min: 2, max: 4 });
const queryMs = 60;

const acts = fc.array(
  fc.record({
    what: fc.constantFrom('arrive', 'arrive', 'arrive', 'leave', 'vacate'),
    pooler: fc.nat({ max: 3 }),
    user: fc.nat({ max: 5 }),
    load: fc.record({
      clients: fc.integer({ min: 1, max: 5 }),
      queryMs: fc.constantFrom(20, 60, 200),
      pauseMs: fc.constantFrom(0, 0, 50),
    }),
    thenMs: fc.constantFrom(0, 20, 500, 3_000),
  }),
  { maxLength: 12 },
);

function perform(
  town: Town,
  { what, user, load }: (typeof acts extends fc.Arbitrary<infer A> ? A : never)[0],
): void {
  const house = town.houses[user % Math.max(1, town.houses.length)];
  if (what === 'arrive') town.arrive(`user ${user}`, load);
  else if (what === 'leave') house?.leave();
  else house?.vacate();
}

/** Never above the limit, and in the end nothing is left. Databases may have limits of their own. */
function anything(numRuns: number): void {
  const limits = fc.record({
    limit: fc.integer({ min: 1, max: 12 }),
    poolers: counts,
    seed: seeds,
    latencyMs: fc.constantFrom(2, 30),
    ofDatabase: fc.constantFrom(undefined, 3),
  });
  fc.assert(
    fc.property(limits, acts, ({ ofDatabase, ...options }, all) => {
      const world = new FairFleet({ ...options, town: ofDatabase === undefined ? {} : { ofDatabase } });
      for (const act of all) {
        perform((world.poolers[act.pooler % world.poolers.length] as Pooler).town, act);
        world.run(act.thenMs);
      }
      world.end();
    }),
    { numRuns },
  );
}

/** A pooler waits for the turns of others, and each of its users for those of the pooler's other users. */
function longestWait(limit: number, users: number, poolers: number): number {
  return 5_000 * (poolers + Math.ceil(users / limit));
}

function nobodyStarves(numRuns: number): void {
  const world = fc.record({
    limit: fc.integer({ min: 1, max: 10 }),
    users: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 2, maxLength: 4 }),
    clients: fc.integer({ min: 1, max: 3 }),
    seed: seeds,
  });
  fc.assert(
    fc.property(world, ({ limit, users, clients, seed }) => {
      const all = new FairFleet({ limit, poolers: users.length, seed });
      for (const [n, { town }] of all.poolers.entries())
        for (let user = 0; user < (users[n] as number); user++)
          town.arrive(`user ${user}`, { clients, queryMs });
      const sum = users.reduce((total, count) => total + count, 0);
      const most = longestWait(limit, sum, users.length);
      all.run(most + 1_000);
      for (const [n, { town }] of all.poolers.entries())
        if (town.longestWait > most)
          expect.fail(`someone at pooler ${n} has waited for ${town.longestWait} ms, at most ${most}`);
    }),
    { numRuns },
  );
}

/** Where there is enough for all, nothing moves any more. */
function restComes(numRuns: number): void {
  const world = fc.record({
    loads: fc.array(fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 4 }), {
      minLength: 2,
      maxLength: 4,
    }),
    spare: fc.nat({ max: 3 }),
    seed: seeds,
  });
  fc.assert(
    fc.property(world, ({ loads, spare, seed }) => {
      const limit = loads.flat().reduce((sum, clients) => sum + clients, spare);
      const all = new FairFleet({ limit, poolers: loads.length, seed });
      for (const [n, { town }] of all.poolers.entries())
        for (const [user, clients] of (loads[n] as number[]).entries())
          town.arrive(`user ${user}`, { clients, queryMs });
      all.run(40_000);
      const before = { recalls: all.recalls, opened: all.opened };
      all.run(20_000);
      expect({ recalls: all.recalls, opened: all.opened }).toEqual(before);
      for (const { town } of all.poolers)
        for (const { member } of town.houses) expect(member.isWaiting).toBe(false);
    }),
    { numRuns },
  );
}

test(
  'in any fleet poolers never have more connections than the limit, whatever users do',
  () => anything(60 * times),
  120_000 * times,
);
test(
  'in any fleet no user waits longer than the slot turns of poolers and users take',
  () => nobodyStarves(15 * times),
  120_000 * times,
);
test('in any fleet with enough for all poolers, nothing moves', () => restComes(15 * times), 120_000 * times);

test('the laws of fleets notice leases that are granted although the table has none', () => {
  vi.spyOn(TableLeases.prototype, 'acquire').mockReturnValue('granted');
  expect(findingOf(() => anything(20))).toMatch(/above the limit|the table knows of/u);
});

test('the laws of fleets notice a pooler that gives nothing back to others', () => {
  vi.spyOn(LeasedCapacity.prototype, 'leasesRecalled').mockReturnValue(undefined);
  expect(findingOf(() => nobodyStarves(10))).toMatch(/has waited for/u);
});

test('the laws of fleets notice connections of a fleet that are recalled without a waiting user', () => {
  const { takePeak } = FairMember.prototype;
  vi.spyOn(FairMember.prototype, 'takePeak').mockImplementation(function (this: FairMember) {
    this.recallOne(0, undefined);
    return takePeak.call(this);
  });
  expect(findingOf(() => restComes(5))).toMatch(/toEqual|expected/u);
});

/** Connections on average: of the one user of the first pooler, and of each of the others. */
function connectionsOfEach(limit: number, others: number): [number, number] {
  const all = new FairFleet({ limit, poolers: 2, seed: 7 });
  const [one, many] = all.poolers as [Pooler, Pooler];
  one.town.arrive('alone', { clients: 3, queryMs });
  for (let n = 0; n < others; n++) many.town.arrive(`user ${n}`, { clients: 3, queryMs });
  all.run(20_000);
  let [ofOne, ofMany] = [0, 0];
  const looks = 800;
  for (let n = 0; n < looks; n++) {
    all.run(100);
    ofOne += one.town.connections;
    ofMany += many.town.connections;
  }
  return [ofOne / looks, ofMany / looks / others];
}

test('users of different poolers have the same number of connections, though one is alone on its pooler', () => {
  const [alone, other] = connectionsOfEach(20, 19);
  expect(alone).toBeCloseTo(1, 1);
  expect(other).toBeCloseTo(1, 1);
}, 120_000);

test('users of different poolers have about the same number of connections with fewer connections than users', () => {
  const [alone, other] = connectionsOfEach(5, 19);
  expect(alone).toBeGreaterThan(0.15);
  expect(alone).toBeLessThan(0.4);
  expect(other).toBeGreaterThan(0.22);
}, 120_000);
