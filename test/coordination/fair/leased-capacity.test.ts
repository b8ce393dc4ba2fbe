// Budgets that are leased from one above: together never more than that has, and what is free goes to whoever needs it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LocalLeases, localLeases } from '../../../src/coordination/local-leases.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { Cluster, FarLeases, type Machine, spareMs } from './cluster.js';

function cluster(count: number, limit: number): { all: Cluster; source: LocalLeases } {
  const source = localLeases({ limit });
  return { all: new Cluster(count, () => source), source };
}

test('several machines on one source one alone may have everything', () => {
  const { all, source } = cluster(2, 12);
  const [first] = all.machines as [Machine, Machine];
  first.town.arrive('a', { clients: 30, queryMs: 10 });
  all.run(1_000);
  expect([first.town.connections, source.stats().held]).toEqual([12, 12]);
});

test('several machines on one source give back leases that were free for a while, and no more', () => {
  const { all, source } = cluster(1, 12);
  const [only] = all.machines as [Machine];
  const a = only.town.arrive('a', { clients: 8, queryMs: 10 });
  const b = only.town.arrive('b', { clients: 2, queryMs: 10 });
  all.run(1_000);
  expect(source.stats().held).toBe(10);
  a.vacate();
  all.run(spareMs - 100);
  expect(source.stats().held).toBe(10);
  all.run(3 * spareMs);
  expect(source.stats().held).toBe(b.connections);
  expect(b.connections).toBe(2);
});

test('several machines on one source: a machine that comes when no lease is left gets those that others need no more', () => {
  const { all } = cluster(2, 6);
  const [first, second] = all.machines as [Machine, Machine];
  const early = first.town.arrive('early', { clients: 20, queryMs: 10 });
  all.run(1_000);
  const late = second.town.arrive('late', { clients: 20, queryMs: 10 });
  all.run(1_000);
  expect([first.town.connections, second.town.connections]).toEqual([6, 0]);
  early.vacate();
  all.run(2_000);
  expect([first.town.connections, second.town.connections]).toEqual([0, 6]);
  expect(late.answers).toBeGreaterThan(0);
});

test('several machines on one source from a source that is fair, a machine that comes late has its part soon', () => {
  let source: FarLeases | undefined;
  const all = new Cluster(2, (line) => {
    source = new FarLeases(10, line, new SeededRandom(1));
    source.isFair = true;
    return source;
  });
  const [first, second] = all.machines as [Machine, Machine];
  first.town.arrive('early', { clients: 20, queryMs: 10 });
  all.run(1_000);
  expect(first.town.connections).toBe(10);
  second.town.arrive('late', { clients: 20, queryMs: 10 });
  all.run(3_000);
  expect([first.town.connections, second.town.connections]).toEqual([5, 5]);
  expect(source?.strays).toBe(0);
});

test('several machines on one source leases that are lost are not used, and not given back', () => {
  let source: FarLeases | undefined;
  const all = new Cluster(1, (line) => {
    source = new FarLeases(8, line, new SeededRandom(1));
    return source;
  });
  const [only] = all.machines as [Machine];
  only.town.arrive('a', { clients: 20, queryMs: 10 });
  all.run(1_000);
  if (source !== undefined) source.limit = 3;
  source?.lose(0, 5);
  expect(only.leased.leased).toBe(3);
  all.run(500);
  expect([only.town.connections, source?.held, source?.strays]).toEqual([3, 3, 0]);
});

test('several machines on one source one that owes something asks for nothing more', () => {
  let source: FarLeases | undefined;
  const all = new Cluster(1, (line) => {
    source = new FarLeases(4, line, new SeededRandom(1));
    return source;
  });
  const [only] = all.machines as [Machine];
  only.town.arrive('a', { clients: 10, queryMs: 1_000 });
  all.run(900);
  only.leased.leasesRecalled(1);
  const before = source?.questions;
  all.run(100);
  expect(source?.questions).toBe(before);
  expect(only.town.budget.capacity).toBe(3);
});

test('several machines on one source one that is stopped asks for nothing more, and gives back everything as it comes', () => {
  const { all, source } = cluster(1, 5);
  const [only] = all.machines as [Machine];
  only.town.arrive('a', { clients: 9, queryMs: 10 });
  all.run(1_000);
  only.leased.stop();
  all.run(1_000);
  expect([only.town.connections, source.stats().held, only.leased.leased]).toEqual([0, 0, 0]);
});

const act = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constant('arrive' as const),
      machine: fc.nat({ max: 2 }),
      user: fc.constantFrom('a', 'b', 'c'),
      clients: fc.integer({ min: 1, max: 9 }),
      queryMs: fc.constantFrom(1, 20, 150),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('vacate' as const),
      machine: fc.nat({ max: 2 }),
      nth: fc.nat({ max: 5 }),
    }),
  },
  fc.record({
    what: fc.constant('trouble' as const),
    refusals: fc.constantFrom(0, 0.3),
    delays: fc.constantFrom(0, 0.5, 1),
  }),
  fc.record({
    what: fc.constant('lose' as const),
    machine: fc.nat({ max: 2 }),
    count: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({
    what: fc.constant('most' as const),
    machine: fc.nat({ max: 2 }),
    most: fc.constantFrom(1, 4, 100),
  }),
);

test('in random lives machines never hold more than their source has, counts agree, and all leases are given back in the end', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      fc.boolean(),
      fc.nat(),
      fc.array(fc.record({ act, thenMs: fc.constantFrom(0, 5, 200, 1_200) }), { maxLength: 16 }),
      (limit, isFair, seed, acts) => {
        let source: FarLeases | undefined;
        let hasLost = false;
        const all = new Cluster(3, (line) => {
          source = new FarLeases(limit, line, new SeededRandom(seed));
          source.isFair = isFair;
          return source;
        });
        const far = source as unknown as FarLeases;
        all.onEvent = () => {
          if (far.held > limit || far.strays > 0)
            expect.fail(`${far.held} of ${limit}, ${far.strays} strays`);
          if (all.leased !== far.held)
            expect.fail(`${all.leased} are leased, the source knows of ${far.held}`);
          // A lost lease is gone when its connections are closed.
          if (!hasLost && all.connections > limit) expect.fail(`${all.connections} connections of ${limit}`);
        };
        for (const { act: what, thenMs } of acts) {
          if (what.what === 'trouble') Object.assign(far, { refusals: what.refusals, delays: what.delays });
          else {
            const { town, leased } = all.machines[what.machine] as Machine;
            if (what.what === 'arrive') town.arrive(what.user, what);
            else if (what.what === 'vacate') town.houses[what.nth]?.vacate();
            else if (what.what === 'most') leased.change(what.most);
            else {
              hasLost = true;
              far.lose(what.machine, what.count);
            }
          }
          all.run(thenMs);
        }
        for (const { town } of all.machines) for (const house of town.houses) house.vacate();
        for (const { laws } of all.machines) laws.end();
        expect([far.held, all.leased, all.connections]).toEqual([0, 0, 0]);
      },
    ),
    { numRuns: 40 },
  );
});

test('in random lives with enough leases for all, every machine has what it needs, however far away the source is', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 3 }),
      fc.nat(),
      (clients, seed) => {
        const all = new Cluster(3, (line) => {
          const far = new FarLeases(18, line, new SeededRandom(seed));
          return Object.assign(far, { refusals: 0.3, delays: 0.5 });
        });
        for (const [n, count] of clients.entries())
          all.machines[n]?.town.arrive(`user ${n}`, { clients: count, queryMs: 1_000 });
        all.run(5_000);
        for (const [n, count] of clients.entries()) expect(all.machines[n]?.town.connections).toBe(count);
      },
    ),
    { numRuns: 20 },
  );
});
