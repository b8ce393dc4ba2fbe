// Random worlds: budgets on top of each other, of any size, with users that come and go, on workers, with weights and promises, and with
// servers that fail or say nothing. A failure names its seed. Each law is seen to fail where something is broken on purpose.
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { FairBudget } from '../../../src/coordination/fair/fair-budget.js';
import { FairMember } from '../../../src/coordination/fair/fair-member.js';
import { type FairPolicy, usualPolicy } from '../../../src/coordination/fair/fair-policy.js';
import { FairUser } from '../../../src/coordination/fair/fair-seats.js';
import { Laws } from './laws.js';
import type { House, Town } from './town.js';
import { acts, databases, findingOf, limits, perform, townWith } from './worlds.js';

afterEach(() => vi.restoreAllMocks());

/** No budget is exceeded, the books agree, nobody waits for what is free, or for what was left behind, and in the end nothing is left. */
function anything(numRuns: number): void {
  fc.assert(
    fc.property(limits, acts, (options, all) => {
      const town = townWith(options);
      const laws = new Laws(town);
      for (const { act: what, thenMs } of all) {
        perform(town, what);
        laws.judge();
        town.run(thenMs);
      }
      town.silent.clear();
      laws.end();
    }),
    { numRuns },
  );
}

const steady = fc.record({
  limits,
  users: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 12 }) },
    fc.integer({ min: 13, max: 60 }),
  ),
  each: fc.integer({ min: 1, max: 3 }),
  clients: fc.integer({ min: 1, max: 4 }),
  workers: fc.constantFrom(undefined, 1, 2),
});

type SteadyWorld = typeof steady extends fc.Arbitrary<infer World> ? World : never;

const queryMs = 40;

/** Users that always have something to do, in one to three databases, on one or two workers. */
function settled({ limits: options, users, each, clients, workers }: SteadyWorld, policy = {}): Town {
  const town = townWith(options, policy);
  for (let n = 0; n < users; n++)
    for (const database of databases.slice(0, each))
      for (let worker = 1; worker <= (workers ?? 1); worker++)
        town.arrive(`user ${n}`, { clients, queryMs }, database, workers && worker);
  return town;
}

/** Of each budget, all of its pools take turns; what they wait for in one they may have to wait for in another. */
function longestWaitOf({ member }: House, town: Town): number {
  const { turn, patience, lookInterval } = usualPolicy;
  const turnMs = turn + queryMs + patience + lookInterval + town.dialMs + town.closeMs + 10;
  let rounds = 1;
  for (const { budget } of member.seats)
    if (budget.isLimited) rounds += Math.ceil(budget.members.size / Math.max(1, budget.capacity));
  return rounds * turnMs;
}

function nobodyStarves(numRuns: number, policy?: Partial<FairPolicy>): void {
  fc.assert(
    fc.property(steady, (world) => {
      const town = settled(world, policy);
      const bound = Math.max(...town.houses.map((house) => longestWaitOf(house, town)));
      town.run(Math.min(bound + 500, 8_000));
      for (const house of town.houses)
        if (house.longestWait > longestWaitOf(house, town))
          expect.fail(
            `${house.user} has waited for ${house.longestWait} ms, at most ${longestWaitOf(house, town)}`,
          );
      new Laws(town).end();
    }),
    { numRuns },
  );
}

/** A promise that all limits have room for is kept from the end of a turn on. */
function promisesHold(numRuns: number): void {
  const world = fc.record({
    capacity: fc.integer({ min: 2, max: 24 }),
    users: fc.integer({ min: 1, max: 60 }),
    wish: fc.integer({ min: 1, max: 12 }),
    clients: fc.integer({ min: 1, max: 12 }),
    hasDatabaseLimit: fc.boolean(),
    seed: fc.nat(),
  });
  fc.assert(
    fc.property(world, ({ capacity, users, wish, clients, hasDatabaseLimit, seed }) => {
      const town = townWith({ capacity, seed, ofDatabase: hasDatabaseLimit ? capacity : undefined });
      const minimum = Math.min(wish, capacity - 1);
      town.setTerms('promised', { minimum });
      for (let n = 0; n < users; n++) town.arrive(`user ${n}`, { clients: 2, queryMs });
      town.run(2_000);
      const { member } = town.arrive('promised', { clients, queryMs });
      town.run(usualPolicy.turn + usualPolicy.debounce + 2 * queryMs + usualPolicy.patience);
      town.onEvent = () => {
        const due = Math.min(minimum, clients);
        if (member.held < due) expect.fail(`${member.held} are held of ${due} that were promised`);
      };
      town.run(2_000);
    }),
    { numRuns },
  );
}

/** Where there is enough for all, nothing moves any more. */
function restComes(numRuns: number): void {
  const world = fc.record({
    loads: fc.array(fc.record({ clients: fc.integer({ min: 1, max: 4 }), database: fc.nat({ max: 3 }) }), {
      minLength: 1,
      maxLength: 12,
    }),
    spare: fc.nat({ max: 3 }),
    seed: fc.nat(),
  });
  fc.assert(
    fc.property(world, ({ loads, spare, seed }) => {
      const all = loads.reduce((sum, { clients }) => sum + clients, 0);
      const largest = Math.max(
        ...databases.map((_, n) =>
          loads.reduce((sum, one) => sum + (one.database === n ? one.clients : 0), 0),
        ),
      );
      const town = townWith({ capacity: all + spare, ofDatabase: largest + spare, seed });
      for (const [n, { clients, database }] of loads.entries())
        town.arrive(`user ${n}`, { clients, queryMs }, databases[database]);
      town.run(3_000);
      const recalls = [...town.budgets.values()].map((budget) => budget.recalls);
      const { opened } = town;
      town.run(25_000);
      expect([...town.budgets.values()].map((budget) => budget.recalls)).toEqual(recalls);
      expect(town.opened).toBe(opened);
    }),
    { numRuns },
  );
}

/** HEADGATE_WORLDS=10 looks at ten times as many. */
const times = Number(process.env['HEADGATE_WORLDS'] ?? 1);

test('in any world the laws hold, whatever users do', () => anything(1_000 * times), 120_000 * times);
test(
  'in any world no user waits longer than the slot turns take',
  () => nobodyStarves(120 * times),
  120_000 * times,
);
test('in any world promises are kept', () => promisesHold(100 * times), 60_000 * times);
test('in any world with enough for all, nothing moves', () => restComes(150 * times), 60_000 * times);

test('the laws notice a budget that gives out one more than it has', () => {
  vi.spyOn(FairBudget.prototype, 'free', 'get').mockImplementation(function (this: FairBudget) {
    return this.capacity + 1 - this.held;
  });
  expect(findingOf(() => anything(200))).toMatch(/one was opened with/u);
});

test('the laws notice a budget that keeps one back', () => {
  vi.spyOn(FairBudget.prototype, 'free', 'get').mockImplementation(function (this: FairBudget) {
    return this.capacity - 1 - this.held;
  });
  expect(findingOf(() => anything(200))).toMatch(/waits for what is free/u);
});

test('the laws notice users whose leaving is not noticed', () => {
  vi.spyOn(FairMember.prototype, 'hasClients', 'get').mockReturnValue(true);
  vi.spyOn(FairMember.prototype, 'longestIdleSince', 'get').mockReturnValue(undefined);
  expect(findingOf(() => anything(400))).toMatch(/has left, and what it had is idle/u);
});

test('the laws notice a user that never gets a slot turn', () => {
  const forEver = { turn: 1_000_000, shortestTurn: 1_000_000 };
  expect(findingOf(() => nobodyStarves(100, forEver))).toMatch(/has waited for/u);
});

test('the laws notice a promise that is forgotten', () => {
  vi.spyOn(FairUser.prototype, 'promise', 'get').mockReturnValue(0);
  expect(findingOf(() => promisesHold(200))).toMatch(/that were promised/u);
});

test('the laws notice connections that are recalled without a waiting user', () => {
  const takePeak = FairMember.prototype.takePeak;
  vi.spyOn(FairMember.prototype, 'takePeak').mockImplementation(function (this: FairMember) {
    this.recallOne(0, undefined);
    return takePeak.call(this);
  });
  expect(findingOf(() => restComes(50))).toMatch(/toEqual|toBe|expected/u);
});
