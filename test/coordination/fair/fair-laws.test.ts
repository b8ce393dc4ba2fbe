// Properties of a budget that is shared fairly, with real engines in virtual time. A failure names its seed.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { usualPolicy } from '../../../src/coordination/fair/fair-policy.js';
import { Laws } from './laws.js';
import { type House, type Load, Town } from './town.js';

const user = fc.nat({ max: 5 }).map((n) => `user ${n}`);

const load: fc.Arbitrary<Load> = fc.record({
  clients: fc.integer({ min: 1, max: 12 }),
  queryMs: fc.constantFrom(0.5, 3, 20, 150),
  pauseMs: fc.constantFrom(0, 0, 5, 100, 2_000),
  pinned: fc.constantFrom(0, 0, 0, 1, 3),
});

type Act =
  | { readonly what: 'arrive'; readonly user: string; readonly load: Load; readonly database: string }
  | { readonly what: 'leave' | 'vacate'; readonly nth: number }
  | { readonly what: 'resize'; readonly capacity: number }
  | { readonly what: 'weight'; readonly user: string; readonly weight: number }
  | { readonly what: 'bounds'; readonly user: string; readonly minimum: number; readonly maximum: number }
  | { readonly what: 'failures'; readonly part: number }
  | { readonly what: 'rebalance' };

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constant('arrive' as const),
      user,
      load,
      database: fc.constantFrom('a', 'b', 'c'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constantFrom('leave' as const, 'vacate' as const),
      nth: fc.nat({ max: 9 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('resize' as const), capacity: fc.nat({ max: 14 }) }),
  },
  fc.record({
    what: fc.constant('weight' as const),
    user,
    weight: fc.double({ min: 0.1, max: 8, noNaN: true }),
  }),
  fc.record({
    what: fc.constant('bounds' as const),
    user,
    minimum: fc.nat({ max: 4 }),
    maximum: fc.integer({ min: 1, max: 8 }),
  }),
  fc.record({ what: fc.constant('failures' as const), part: fc.constantFrom(0, 0, 0.3) }),
  fc.record({ what: fc.constant('rebalance' as const) }),
);

function perform(town: Town, what: Act): void {
  const nth = (n: number): House | undefined => town.houses[n % Math.max(1, town.houses.length)];
  if (what.what === 'arrive') town.arrive(what.user, what.load, what.database);
  else if (what.what === 'leave') nth(what.nth)?.leave();
  else if (what.what === 'vacate') nth(what.nth)?.vacate();
  else if (what.what === 'resize') town.budget.resize(what.capacity);
  else if (what.what === 'weight') town.setTerms(what.user, { weight: what.weight });
  else if (what.what === 'bounds') town.setTerms(what.user, { minimum: what.minimum, maximum: what.maximum });
  else if (what.what === 'failures') town.dialFailures = what.part;
  else town.budget.rebalance();
}

test('a budget holds whatever its users do: no user waits while a lease is free, and users that left hold nothing', () => {
  fc.assert(
    fc.property(
      fc.record({
        capacity: fc.integer({ min: 1, max: 12 }),
        seed: fc.nat(),
        closeMs: fc.constantFrom(1, 30, 400),
      }),
      fc.array(fc.record({ act, thenMs: fc.constantFrom(0, 1, 20, 300, 1_500) }), { maxLength: 20 }),
      (options, acts) => {
        const town = new Town(options);
        const laws = new Laws(town);
        for (const { act: what, thenMs } of acts) {
          perform(town, what);
          laws.judge();
          town.run(thenMs);
        }
        laws.end();
      },
    ),
    { numRuns: 60 },
  );
});

const queryMs = 30;
const many = fc.record({
  capacity: fc.integer({ min: 1, max: 6 }),
  users: fc.integer({ min: 1, max: 24 }),
  clients: fc.integer({ min: 1, max: 4 }),
  databases: fc.integer({ min: 1, max: 2 }),
  pinned: fc.nat({ max: 5 }),
  seed: fc.nat(),
});

test('with more users than connections, no user waits longer than one round of slot turns, whatever others keep', () => {
  fc.assert(
    fc.property(many, ({ capacity, users, clients, databases, pinned: wish, seed }) => {
      const town = new Town({ capacity, seed });
      const pinned = Math.min(wish, capacity - 1);
      const laws = new Laws(town);
      for (let n = 0; n < pinned; n++) town.arrive(`keeper ${n}`, { clients: 1, queryMs: 1, pinned: 1 });
      town.run(1_000);
      for (let n = 0; n < users; n++)
        for (let of = 0; of < databases; of++)
          town.arrive(`user ${n}`, { clients, queryMs, pauseMs: of * 10 }, `db ${of}`);
      // A round of 48 pools on one connection, each with the shortest turn that is worth it, takes 12 seconds.
      town.run(15_000);
      const { turn, patience } = usualPolicy;
      const { dialMs, closeMs } = town;
      const turnMs = turn + queryMs + patience + dialMs + closeMs + 20;
      const rounds = Math.ceil((users * databases) / (capacity - pinned)) + 1;
      const working = town.houses.filter((house) => house.pinned === 0);
      for (const house of working) expect(house.longestWait).toBeLessThan(rounds * turnMs);
      for (const { answers } of working) expect(answers).toBeGreaterThan(0);
      laws.end();
    }),
    { numRuns: 40 },
  );
});

test('a capacity that is lowered to nothing keeps no user in the queue that has left', () => {
  const town = new Town({ capacity: 1 });
  const laws = new Laws(town);
  town.arrive('first', { clients: 1, queryMs: 1 });
  laws.judge();
  town.budget.resize(0);
  town.arrive('second', { clients: 1, queryMs: 1 });
  expect(town.budget.waiting).toBeGreaterThan(0);
  laws.end();
});

test('a capacity that is lowered is reached as soon as those above it have answered, also where it is less than there are users', () => {
  fc.assert(
    fc.property(fc.nat({ max: 8 }), fc.integer({ min: 1, max: 12 }), load, (capacity, users, each) => {
      const town = new Town({ capacity: 20 });
      const laws = new Laws(town);
      for (let n = 0; n < users; n++) town.arrive(`user ${n}`, { ...each, pinned: 0 });
      town.run(3_000);
      town.budget.resize(capacity);
      town.run(1_000);
      expect(town.budget.held).toBeLessThanOrEqual(capacity);
      expect(town.connections).toBeLessThanOrEqual(capacity);
      laws.end();
    }),
    { numRuns: 40 },
  );
});

/**
 * What is missing for as many as have been in use or waited for at once of late, if anybody waits at all. A pool can't take back that
 * it has asked, should its client have been served otherwise.
 */
function wanted({ pool, member, isAsking }: House): number {
  const { waiting } = pool.stats();
  return waiting === 0 && !isAsking ? 0 : Math.max(1, waiting, member.demand - member.held);
}

function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

test('no lease moves between users when all have what they asked for', () => {
  fc.assert(
    fc.property(fc.array(load, { minLength: 1, maxLength: 6 }), fc.nat(), (loads, seed) => {
      const town = new Town({ capacity: 100, seed });
      for (const [n, each] of loads.entries()) town.arrive(`user ${n}`, each);
      town.run(12_000);
      expect(town.budget.stats().recalls).toBe(0);
    }),
    { numRuns: 20 },
  );
});

test('no lease moves between users when no user asks for one', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      fc.array(load, { minLength: 1, maxLength: 8 }),
      fc.nat(),
      (capacity, loads, seed) => {
        const town = new Town({ capacity, seed });
        for (const [n, each] of loads.entries()) town.arrive(`user ${n}`, { ...each, pinned: 0 });
        town.run(2_000);
        for (const house of town.houses) house.leave();
        // On one connection, 100 queries that are under way take their time.
        town.run(30_000);
        const { opened, connections } = town;
        const { recalls } = town.budget.stats();
        town.run(120_000);
        const { recalls: later, users } = town.budget.stats();
        expect([town.opened, town.connections, later]).toEqual([opened, connections, recalls]);
        expect(users.map(({ recalled }) => recalled)).toEqual(users.map(() => 0));
      },
    ),
    { numRuns: 30 },
  );
});

test('no lease moves between users when all have their share', () => {
  const town = new Town({ capacity: 20 });
  for (let n = 0; n < 4; n++) town.arrive(`user ${n}`, { clients: 20, queryMs: 10 });
  town.run(2_000);
  const { opened } = town;
  expect(town.houses.map(({ connections }) => connections)).toEqual([5, 5, 5, 5]);
  town.run(60_000);
  expect(town.opened).toBe(opened);
});

test('a recalled lease that is needed no more stays unmoved when it comes back', () => {
  const town = new Town({ capacity: 3 });
  const keeper = town.arrive('keeper', { clients: 2, queryMs: 1, pinned: 2 });
  town.run(100);
  const others = ['a', 'b'].map((user) => town.arrive(user, { clients: 1, queryMs: 10 }));
  town.run(2_000);
  expect(keeper.member.recalled).toBeGreaterThan(0);
  for (const other of others) other.leave();
  town.run(1_000);
  expect(keeper.member.recalled).toBe(0);
  keeper.unpin();
  town.run(1_000);
  expect([keeper.connections, keeper.pool.idle]).toEqual([2, 2]);
});

test('no more leases are recalled at once than waiting users want', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      fc.array(load, { minLength: 2, maxLength: 10 }),
      fc.constantFrom(1, 50),
      (capacity, loads, closeMs) => {
        const town = new Town({ capacity, closeMs });
        for (const [n, each] of loads.entries()) town.arrive(`user ${n}`, { ...each, pinned: 0 });
        let before = 0;
        town.onEvent = () => {
          const recalled = total(town.houses.map(({ member }) => member.recalled));
          if (recalled > before)
            expect(recalled - before).toBeLessThanOrEqual(total(town.houses.map(wanted)));
          before = recalled;
        };
        town.run(10_000);
        // Nor again and again: a question is for as many as there are clients, at most.
        const closed = town.houses.map(({ pool }) => pool.stats().totals.discarded.lease_recalled);
        const most = Math.max(...loads.map(({ clients }) => clients));
        expect(total(closed)).toBeLessThanOrEqual(town.asked * most);
      },
    ),
    { numRuns: 30 },
  );
});

test('connections that become free at once go to all waiting users, one for each', () => {
  const town = new Town({ capacity: 0 });
  const houses = ['a', 'b', 'c'].map((user) => town.arrive(user, { clients: 5, queryMs: 10 }));
  town.run(100);
  town.budget.resize(3);
  town.run(2_000);
  expect(houses.map(({ connections }) => connections)).toEqual([1, 1, 1]);
  expect(town.opened).toBe(3);
});

test('two users have connections as their weights are', () => {
  const town = new Town({ capacity: 30 });
  town.setTerms('heavy', { weight: 2 });
  const heavy = town.arrive('heavy', { clients: 100, queryMs: 10 });
  const light = town.arrive('light', { clients: 100, queryMs: 10 });
  town.run(5_000);
  expect([heavy.connections, light.connections]).toEqual([20, 10]);
  town.setTerms('light', { weight: 4 });
  town.run(1_000);
  expect([heavy.connections, light.connections]).toEqual([10, 20]);
});

test('any users have connections as their weights are', () => {
  const weight = fc.integer({ min: 1, max: 6 });
  fc.assert(
    fc.property(
      fc.array(weight, { minLength: 2, maxLength: 5 }),
      fc.integer({ min: 1, max: 4 }),
      (weights, each) => {
        const sum = weights.reduce((total, one) => total + one, 0);
        const town = new Town({ capacity: sum * each });
        for (const [n, one] of weights.entries()) town.setTerms(`user ${n}`, { weight: one });
        const houses = weights.map((_, n) => town.arrive(`user ${n}`, { clients: 60, queryMs: 10 }));
        town.run(3_000);
        expect(houses.map(({ connections }) => connections)).toEqual(weights.map((one) => one * each));
      },
    ),
    { numRuns: 20 },
  );
});

test('a minimum is there with the next look at the shares, as soon as it is needed', () => {
  const town = new Town({ capacity: 20 });
  town.setTerms('promised', { minimum: 8 });
  for (let n = 0; n < 4; n++) town.arrive(`user ${n}`, { clients: 50, queryMs: 10 });
  town.run(3_000);
  const promised = town.arrive('promised', { clients: 8, queryMs: 10 });
  const { debounce } = usualPolicy;
  const { dialMs, closeMs } = town;
  town.run(debounce + 10 + closeMs + dialMs + 5);
  expect(promised.connections).toBe(8);
  expect(town.mostConnections).toBe(20);
});

test('a maximum holds while others want more', () => {
  const town = new Town({ capacity: 20 });
  town.setTerms('bounded', { maximum: 3 });
  const bounded = town.arrive('bounded', { clients: 50, queryMs: 10 });
  town.arrive('other', { clients: 50, queryMs: 10 });
  town.run(3_000);
  expect(bounded.connections).toBe(3);
});

test('the databases of one user share its connections', () => {
  const town = new Town({ capacity: 20 });
  const a = town.arrive('one', { clients: 50, queryMs: 10 }, 'a');
  town.arrive('other', { clients: 50, queryMs: 10 });
  town.run(3_000);
  expect(a.connections).toBe(10);
  const b = town.arrive('one', { clients: 50, queryMs: 10 }, 'b');
  town.run(3_000);
  expect([a.connections, b.connections]).toEqual([5, 5]);
});

test('with one connection for several databases of a user, each has its turn', () => {
  const town = new Town({ capacity: 2 });
  town.arrive('other', { clients: 5, queryMs: 10 });
  const houses = ['a', 'b', 'c'].map((database) => town.arrive('one', { clients: 5, queryMs: 10 }, database));
  town.run(20_000);
  for (const house of houses) expect(house.longestWait).toBeLessThan(3_000);
});
