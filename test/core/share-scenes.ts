// Users for the tests of fair shares, made by chance, and what the tests ask of an outcome.
import fc from 'fast-check';
import { FairShareAllocator, type ShareUser } from '../../src/core/fair-share.js';
import type { ShareRequest, ShareResult } from '../../src/core/share-request.js';

const whole = (max: number): fc.Arbitrary<number> => fc.nat({ max });
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });

const weights = fc.oneof(
  fc.constantFrom(1, 1, 1, 2, 0.5, 3),
  fc.double({ min: 0.01, max: 100, noNaN: true }),
);

const wishes = {
  demand: whole(15),
  weight: weights,
  isActive: fc.boolean().map((isIdle) => !isIdle),
};

export interface UserTraits {
  /** Some have promises and limits. */
  readonly bounds?: boolean;
  /** Some wait since a time of their own, and have a share already. */
  readonly history?: boolean;
  readonly maxLength?: number;
}

export function someUsers(traits: UserTraits = {}): fc.Arbitrary<ShareUser[]> {
  const { bounds = false, history = false, maxLength = 8 } = traits;
  const nothing = fc.constant(undefined);
  const record = fc.record({
    key: fc.string({ minLength: 1, maxLength: 3 }),
    ...wishes,
    minimum: bounds ? maybe(whole(5)) : nothing,
    maximum: bounds ? maybe(fc.integer({ min: 1, max: 12 })) : nothing,
    waitingSince: history ? maybe(whole(3)) : nothing,
    share: history ? maybe(whole(12)) : nothing,
  });
  return fc.uniqueArray(record, { maxLength, selector: ({ key }) => key });
}

export const capacities = fc.nat({ max: 40 });

export function allocate(
  request: ShareRequest,
  options: ConstructorParameters<typeof FairShareAllocator>[0] = {},
): ShareResult {
  return new FairShareAllocator(options).allocate(request);
}

/** A user, what it got, and what it may and wants to have. */
export interface Portion {
  readonly key: string;
  readonly weight: number;
  readonly minimum: number;
  readonly maximum: number;
  readonly share: number;
  readonly need: number;
}

export function portions(users: readonly ShareUser[], { shares }: ShareResult): Portion[] {
  return users
    .filter(({ isActive }) => isActive)
    .map(({ key, weight, demand, minimum = 0, maximum = Number.POSITIVE_INFINITY }) => ({
      key,
      weight,
      minimum: Math.min(minimum, maximum),
      maximum,
      share: shares.get(key) as number,
      need: Math.min(demand, maximum),
    }));
}

export function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}

/** Everything that a fair outcome is, whatever happened before. Says what is wrong, if anything. */
export function unfairness(
  { capacity, users }: ShareRequest,
  result: ShareResult,
  headroom = 0,
): string | undefined {
  const all = portions(users, result);
  const given = sum(result.shares.values());
  const firsts = sum(all.map(({ minimum }) => Math.max(1, minimum)));
  const unmet = sum(all.map(({ need, share }) => Math.max(0, need - share)));
  const canTake = all.filter(({ share, maximum }) => share < maximum);
  if (given + result.leftOver !== capacity) return `${given} + ${result.leftOver} is not ${capacity}`;
  if (result.leftOver < 0 || unmet !== result.unmet) return `unmet is ${unmet}, not ${result.unmet}`;
  if (unmet > 0 && result.leftOver > 0) return `${result.leftOver} left over, and ${unmet} missing`;
  if (canTake.length > 0 && result.leftOver > headroom) return `${result.leftOver} left over for no reason`;
  for (const { key, share, minimum, maximum } of all) {
    if (!Number.isInteger(share) || share < 0) return `${key} has ${share}`;
    if (share > maximum) return `${key} has ${share}, above its maximum`;
    if (firsts <= capacity && share < Math.max(1, minimum)) return `${key} has only ${share}`;
  }
  for (const user of users) {
    if (!user.isActive && result.shares.get(user.key) !== 0)
      return `${user.key} is not active and has a share`;
  }
  return firsts > capacity ? undefined : envy(all);
}

/** One who lacks something, and someone who has too much of it: a slot more to the first and one less to the second. */
function envy(all: readonly Portion[]): string | undefined {
  for (const poor of all) {
    if (poor.share >= poor.need) continue;
    for (const rich of all) {
      if (rich.share <= Math.max(1, rich.minimum)) continue;
      const isTooRich = (rich.share - 0.5) / rich.weight > (poor.share + 0.5) / poor.weight;
      if (rich.share > rich.need || isTooRich)
        return `${poor.key} lacks something, and ${rich.key} has too much`;
    }
  }
  return undefined;
}
