// Random worlds: budgets on top of each other, of any size, with users that come and go, on workers, with weights and promises, and with
// servers that fail or say nothing. A failure names its seed. Each law is seen to fail where something is broken on purpose.
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { FairBudget } from '../../../src/coordination/fair/fair-budget.js';
import { FairMember } from '../../../src/coordination/fair/fair-member.js';
import { type FairPolicy, usualPolicy } from '../../../src/coordination/fair/fair-policy.js';
import { FairUser } from '../../../src/coordination/fair/fair-user.js';
import { Laws } from './laws.js';
import { type House, Town, type TownOptions } from './town.js';

afterEach(() => vi.restoreAllMocks());

/** None, the same as for all, a part of it, or anything. */
function limitBelow(capacity: number): fc.Arbitrary<number | undefined> {
  return fc.oneof(
    fc.constant(undefined),
    fc.constant(capacity),
    fc.constant(Math.max(1, Math.floor(capacity / 2))),
    fc.integer({ min: 1, max: 12 }),
  );
}

const limits = fc.integer({ min: 1, max: 24 }).chain((capacity) =>
  fc.record({
    capacity: fc.constant(capacity),
    ofDatabase: limitBelow(capacity),
    ofServer: limitBelow(capacity),
    ofUser: fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 4 })),
    poolSize: fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 8 })),
    closeMs: fc.constantFrom(1, 1, 30),
    seed: fc.nat(),
  }),
);

/** What is left out has no limit. */
function townWith(options: Record<string, number | undefined>, policy: Partial<FairPolicy> = {}): Town {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const town = new Town({
    ...(Object.fromEntries(given) as unknown as TownOptions),
    policy,
    serverOf: (database) => `server of ${database.slice(-1) < 'c' ? 'a and b' : 'the others'}`,
  });
  return town;
}

const databases = ['a', 'b', 'c', 'd'];
const load = fc.record({
  clients: fc.integer({ min: 1, max: 6 }),
  queryMs: fc.constantFrom(5, 20, 60),
  pauseMs: fc.constantFrom(0, 0, 20, 300),
});

type Act =
  | {
      readonly what: 'arrive';
      readonly user: number;
      readonly database: number;
      readonly worker: number | undefined;
      readonly load: { readonly clients: number; readonly queryMs: number; readonly pauseMs: number };
    }
  | { readonly what: 'leave'; readonly nth: number }
  | { readonly what: 'vacate'; readonly nth: number }
  | { readonly what: 'resize'; readonly nth: number; readonly capacity: number }
  | { readonly what: 'terms'; readonly user: number; readonly weight: number; readonly minimum: number }
  | { readonly what: 'failures'; readonly part: number }
  | { readonly what: 'silence'; readonly database: number };

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      what: fc.constant('arrive' as const),
      user: fc.nat({ max: 11 }),
      database: fc.nat({ max: 3 }),
      worker: fc.constantFrom(undefined, undefined, 1, 2),
      load,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant('leave' as const), nth: fc.nat({ max: 30 }) }),
  },
  fc.record({ what: fc.constant('vacate' as const), nth: fc.nat({ max: 30 }) }),
  fc.record({
    what: fc.constant('resize' as const),
    nth: fc.nat({ max: 30 }),
    capacity: fc.integer({ min: 0, max: 14 }),
  }),
  fc.record({
    what: fc.constant('terms' as const),
    user: fc.nat({ max: 11 }),
    weight: fc.double({ min: 0.2, max: 5, noNaN: true }),
    minimum: fc.nat({ max: 4 }),
  }),
  fc.record({ what: fc.constant('failures' as const), part: fc.constantFrom(0, 0, 0.3) }),
  fc.record({ what: fc.constant('silence' as const), database: fc.nat({ max: 3 }) }),
);

function perform(town: Town, what: Act): void {
  const house = (nth: number): House | undefined => town.houses[nth % Math.max(1, town.houses.length)];
  if (what.what === 'arrive')
    town.arrive(`user ${what.user}`, what.load, databases[what.database], what.worker);
  else if (what.what === 'leave') house(what.nth)?.leave();
  else if (what.what === 'vacate') house(what.nth)?.vacate();
  else if (what.what === 'resize') {
    const limited = [...town.budgets.values()].filter(({ isLimited }) => isLimited);
    limited[what.nth % limited.length]?.resize(what.capacity);
  } else if (what.what === 'terms')
    town.setTerms(`user ${what.user}`, { weight: what.weight, minimum: what.minimum });
  else if (what.what === 'failures') town.dialFailures = what.part;
  else {
    const server = town.serverOf(databases[what.database] as string);
    town.hasBeenSilent = true;
    if (!town.silent.delete(server)) town.silent.add(server);
  }
}

const acts = fc.array(fc.record({ act, thenMs: fc.constantFrom(0, 1, 20, 150, 600) }), { maxLength: 18 });

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

describe('in any world', () => {
  test('the laws hold, whatever users do', () => anything(1_500 * times), 120_000 * times);
  test('nobody waits for longer than its turns take', () => nobodyStarves(250 * times), 120_000 * times);
  test('promises are kept', () => promisesHold(150 * times), 60_000 * times);
  test('with enough for all, nothing moves', () => restComes(150 * times), 60_000 * times);
});

/** What was found to be wrong. */
function findingOf(look: () => void): string {
  try {
    look();
    return 'nothing';
  } catch (error) {
    return String((error as Error).cause ?? error);
  }
}

describe('the laws notice', () => {
  test('a budget that gives out one more than it has', () => {
    vi.spyOn(FairBudget.prototype, 'free', 'get').mockImplementation(function (this: FairBudget) {
      return this.capacity + 1 - this.held;
    });
    expect(findingOf(() => anything(200))).toMatch(/one was opened with/u);
  });

  test('a budget that keeps one back', () => {
    vi.spyOn(FairBudget.prototype, 'free', 'get').mockImplementation(function (this: FairBudget) {
      return this.capacity - 1 - this.held;
    });
    expect(findingOf(() => anything(200))).toMatch(/waits for what is free/u);
  });

  test('users whose leaving is not noticed', () => {
    vi.spyOn(FairMember.prototype, 'hasClients', 'get').mockReturnValue(true);
    vi.spyOn(FairMember.prototype, 'longestIdleSince', 'get').mockReturnValue(undefined);
    expect(findingOf(() => anything(400))).toMatch(/has left, and what it had is idle/u);
  });

  test('someone who never has its turn', () => {
    const forEver = { turn: 1_000_000, shortestTurn: 1_000_000 };
    expect(findingOf(() => nobodyStarves(100, forEver))).toMatch(/has waited for/u);
  });

  test('a promise that is forgotten', () => {
    vi.spyOn(FairUser.prototype, 'promise', 'get').mockReturnValue(0);
    expect(findingOf(() => promisesHold(200))).toMatch(/that were promised/u);
  });

  test('connections that are asked back for nobody', () => {
    const notePeak = FairMember.prototype.notePeak;
    vi.spyOn(FairMember.prototype, 'notePeak').mockImplementation(function (this: FairMember) {
      notePeak.call(this);
      this.recallOne(0, undefined);
    });
    expect(findingOf(() => restComes(50))).toMatch(/toEqual|toBe|expected/u);
  });
});
