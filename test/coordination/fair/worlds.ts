// Random worlds: limits on top of each other, and what users do in them.
import fc from 'fast-check';
import type { FairPolicy } from '../../../src/coordination/fair/fair-policy.js';
import { type House, Town, type TownOptions } from './town.js';

/** None, the same as for all, a part of it, or anything. */
function limitBelow(capacity: number): fc.Arbitrary<number | undefined> {
  return fc.oneof(
    fc.constant(undefined),
    fc.constant(capacity),
    fc.constant(Math.max(1, Math.floor(capacity / 2))),
    fc.integer({ min: 1, max: 12 }),
  );
}

export const limits = fc.integer({ min: 1, max: 24 }).chain((capacity) =>
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

/** A field that is left out means no limit. */
export function townWith(
  options: Record<string, number | undefined>,
  policy: Partial<FairPolicy> = {},
): Town {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const town = new Town({
    ...(Object.fromEntries(given) as unknown as TownOptions),
    policy,
    serverOf: (database) => `server of ${database.slice(-1) < 'c' ? 'a and b' : 'the others'}`,
  });
  return town;
}

export const databases = ['a', 'b', 'c', 'd'];
const load = fc.record({
  clients: fc.integer({ min: 1, max: 6 }),
  queryMs: fc.constantFrom(5, 20, 60),
  pauseMs: fc.constantFrom(0, 0, 20, 300),
});

export type Act =
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

export function perform(town: Town, what: Act): void {
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

export const acts = fc.array(fc.record({ act, thenMs: fc.constantFrom(0, 1, 20, 150, 600) }), {
  maxLength: 18,
});

/** The law that `look` finds broken, or `nothing`. */
export function findingOf(look: () => void): string {
  try {
    look();
    return 'nothing';
  } catch (error) {
    return String((error as Error).cause ?? error);
  }
}
