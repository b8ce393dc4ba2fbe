// Shares are fair, add up, and grow with what there is and with what is asked for.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairShareAllocator, type ShareUser } from '../../src/core/fair-share.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { allocate, capacities, someUsers, sum, unfairness } from './share-scenes.js';
import { slowShares } from './slow-shares.js';

const headrooms = fc.nat({ max: 6 });

function user(key: string, demand: number, more: Partial<ShareUser> = {}): ShareUser {
  return { key, demand, weight: 1, isActive: true, ...more };
}

function sharesOf(capacity: number, users: readonly ShareUser[]): Record<string, number> {
  return Object.fromEntries(allocate({ capacity, users }).shares);
}

function byTurn(users: readonly ShareUser[]): ShareUser[] {
  const since = ({ waitingSince = Number.POSITIVE_INFINITY }: ShareUser): number => waitingSince;
  return users
    .filter(({ isActive }) => isActive)
    .sort((a, b) => (since(a) === since(b) ? (a.key < b.key ? -1 : 1) : since(a) < since(b) ? -1 : 1));
}

/** The other way of rounding: everyone its whole part, and the rest to the largest fractions. */
function largestRemainders(capacity: number, weights: readonly number[]): number[] {
  const quotas = weights.map((weight) => (capacity * weight) / sum(weights));
  const shares = quotas.map(Math.floor);
  const fraction = (n: number): number => (quotas[n] as number) - (shares[n] as number);
  const order = quotas.map((_, n) => n).sort((a, b) => fraction(b) - fraction(a));
  const missing = capacity - sum(shares);
  return shares.map((share, n) => share + (order.indexOf(n) < missing ? 1 : 0));
}

test('Fair shares add up to the capacity, leave no user out while there is enough, and leave no need unmet while capacity is spare', () => {
  fc.assert(
    fc.property(
      capacities,
      someUsers({ bounds: true, history: true }),
      headrooms,
      (capacity, users, headroom) => {
        const request = { capacity, users };
        expect(unfairness(request, allocate(request, { headroom }), headroom)).toBeUndefined();
      },
    ),
    { numRuns: 2_000 },
  );
});

test('Fair shares equal those of giving slot after slot to the first user in order, which takes longer', () => {
  fc.assert(
    fc.property(
      capacities,
      someUsers({ bounds: true, history: true }),
      headrooms,
      (capacity, users, headroom) => {
        const keeps = new Map(users.map(({ key, share = 0 }) => [key, share]));
        const expected = slowShares({ capacity, headroom, users: byTurn(users), keeps });
        const { shares } = allocate({ capacity, users }, { headroom });
        for (const { key } of users) expect([key, shares.get(key)]).toEqual([key, expected.get(key) ?? 0]);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('Fair shares are the same for large numbers as slot after slot', () => {
  const large = fc.record({
    demand: fc.nat({ max: 3_000 }),
    weight: fc.double({ min: 1e-6, max: 1e6, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.nat({ max: 6_000 }), fc.array(large, { maxLength: 12 }), (capacity, wishes) => {
      const users = wishes.map((wish, n) => user(`user ${n}`, wish.demand, wish));
      const expected = slowShares({ capacity, headroom: 0, users: byTurn(users), keeps: new Map() });
      expect(allocate({ capacity, users }).shares).toEqual(expected);
    }),
    { numRuns: 60 },
  );
});

test('Fair shares do not depend on the order of the users', () => {
  const shuffled = someUsers({ bounds: true, history: true }).chain((users) =>
    fc.tuple(fc.constant(users), fc.shuffledSubarray(users, { minLength: users.length })),
  );
  fc.assert(
    fc.property(capacities, shuffled, (capacity, [users, others]) => {
      const { changes, ...result } = allocate({ capacity, users });
      const { changes: otherChanges, ...otherResult } = allocate({ capacity, users: others });
      expect(new Map([...otherResult.shares])).toEqual(new Map([...result.shares]));
      expect({ ...otherResult, shares: 0 }).toEqual({ ...result, shares: 0 });
      expect(new Set(otherChanges)).toEqual(new Set(changes));
    }),
  );
});

test('Fair shares never become smaller when there is more to share out', () => {
  fc.assert(
    fc.property(
      capacities,
      someUsers({ bounds: true, history: true }),
      headrooms,
      (capacity, users, headroom) => {
        const less = allocate({ capacity, users }, { headroom }).shares;
        const more = allocate({ capacity: capacity + 1, users }, { headroom }).shares;
        for (const [key, share] of less) expect(more.get(key)).toBeGreaterThanOrEqual(share);
      },
    ),
    { numRuns: 2_000 },
  );
});

/** An active user has asked for something. */
const withDemand = (users: readonly ShareUser[]): ShareUser[] =>
  users.map((user) => ({ ...user, demand: user.isActive ? Math.max(1, user.demand) : user.demand }));

test('Fair shares never become smaller for a user that asks for more, and never larger for the others', () => {
  fc.assert(
    fc.property(
      capacities,
      someUsers({ bounds: true, history: true })
        .map(withDemand)
        .filter((users) => users.length > 0),
      fc.nat(),
      fc.integer({ min: 1, max: 10 }),
      (capacity, users, pick, by) => {
        const asker = users[pick % users.length] as ShareUser;
        const asked = users.map((one) => (one === asker ? { ...one, demand: one.demand + by } : one));
        const before = allocate({ capacity, users }).shares;
        const after = allocate({ capacity, users: asked }).shares;
        for (const { key } of users) {
          const [was, is] = [before.get(key) as number, after.get(key) as number];
          if (key === asker.key) expect(is).toBeGreaterThanOrEqual(was);
          else expect(is).toBeLessThanOrEqual(was);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test('Fair shares never become smaller with more weight', () => {
  fc.assert(
    fc.property(
      capacities,
      someUsers().filter((users) => users.length > 0),
      fc.nat(),
      fc.double({ min: 1, max: 10, noNaN: true }),
      (capacity, users, pick, by) => {
        const heavier = users[pick % users.length] as ShareUser;
        const weighed = users.map((one) => (one === heavier ? { ...one, weight: one.weight * by } : one));
        const before = allocate({ capacity, users }).shares.get(heavier.key) as number;
        expect(allocate({ capacity, users: weighed }).shares.get(heavier.key)).toBeGreaterThanOrEqual(before);
      },
    ),
  );
});

test('Fair shares never grow because another user comes', () => {
  fc.assert(
    fc.property(capacities, someUsers({ bounds: true }), fc.nat({ max: 15 }), (capacity, users, demand) => {
      const before = allocate({ capacity, users }).shares;
      const { shares } = allocate({ capacity, users: [...users, user('a newcomer', demand)] });
      for (const [key, share] of before) expect(shares.get(key)).toBeLessThanOrEqual(share);
    }),
  );
});

test('Examples of fair shares are those of the textbook', () => {
  expect(sharesOf(100, [user('a', 200), user('b', 20)])).toEqual({ a: 80, b: 20 });
  expect(sharesOf(9, [user('a', 5), user('b', 1), user('c', 5)])).toEqual({ a: 4, b: 1, c: 4 });
  expect(sharesOf(400, [user('a', 7)])).toEqual({ a: 400 });
  const many = Array.from({ length: 400 }, (_, n) => user(`user ${n}`, 50));
  expect(new Set(Object.values(sharesOf(400, many)))).toEqual(new Set([1]));
});

test('Examples of fair shares share what is left over by weight, and lose none of it', () => {
  const users = [user('a', 150), user('b', 100), user('c', 80)];
  expect(sharesOf(400, users)).toEqual({ a: 174, b: 123, c: 103 });
  const weighed = [user('a', 150), user('b', 100, { weight: 5 }), user('c', 80)];
  expect(sharesOf(400, weighed)).toEqual({ a: 160, b: 150, c: 90 });
});

test('Examples of fair shares keep to the weights where all want more than there is', () => {
  const users = [
    user('premium', 100, { weight: 2 }),
    user('standard', 100),
    user('free', 100, { weight: 0.5 }),
  ];
  expect(sharesOf(70, users)).toEqual({ premium: 40, standard: 20, free: 10 });
});

test('Examples of fair shares take nothing away as the capacity grows, where largest remainders would', () => {
  const users = [user('a', 0, { weight: 6 }), user('b', 0, { weight: 6 }), user('c', 0, { weight: 2 })];
  // Of 10 it would have 2, and of 11 only 1.
  expect([10, 11].map((capacity) => largestRemainders(capacity, [6, 6, 2])[2])).toEqual([2, 1]);
  // Everyone has its first; what is beyond that goes by weight.
  const spare = (capacity: number): number[] =>
    Object.values(sharesOf(capacity + 3, users)).map((share) => share - 1);
  expect([10, 11, 12].map(spare)).toEqual([
    [5, 4, 1],
    [5, 5, 1],
    [5, 5, 2],
  ]);
});

test('Examples of fair shares let one with many idle neighbours have nearly everything', () => {
  const idle = Array.from({ length: 9 }, (_, n) => user(`idle ${n}`, 0, { isActive: n < 3 }));
  const shares = sharesOf(80, [user('busy', 200), ...idle]);
  expect(shares).toMatchObject({ busy: 77, 'idle 0': 1, 'idle 8': 0 });
});

test('Examples of fair shares keep the headroom free while no user needs it, and no longer', () => {
  const relaxed = allocate({ capacity: 10, users: [user('a', 3), user('b', 2)] }, { headroom: 3 });
  expect([relaxed.leftOver, sum(relaxed.shares.values())]).toEqual([3, 7]);
  const tight = allocate({ capacity: 10, users: [user('a', 6), user('b', 3)] }, { headroom: 3 });
  expect([tight.leftOver, ...tight.shares.values()]).toEqual([1, 6, 3]);
  const full = allocate({ capacity: 10, users: [user('a', 6), user('b', 9)] }, { headroom: 3 });
  expect([full.leftOver, full.unmet, ...full.shares.values()]).toEqual([0, 5, 5, 5]);
});

test('Examples of fair shares leave over what no maximum lets through', () => {
  const result = allocate({
    capacity: 10,
    users: [user('a', 9, { maximum: 4 }), user('b', 1, { maximum: 2 })],
  });
  expect([...result.shares.values()]).toEqual([4, 2]);
  expect(result).toMatchObject({ leftOver: 4, unmet: 0 });
});

test('Promised minimums are kept before any user gets more than its first slot', () => {
  const users = [user('a', 100), user('b', 100), user('promised', 0, { minimum: 6 })];
  expect(sharesOf(10, users)).toEqual({ a: 2, b: 2, promised: 6 });
});

test('Promised minimums are cut by weight where they can not all be kept, and that is said', () => {
  const users = [
    user('a', 9, { minimum: 20, weight: 3 }),
    user('b', 9, { minimum: 20 }),
    user('c', 9, { minimum: 2 }),
  ];
  const result = allocate({ capacity: 14, users });
  expect(Object.fromEntries(result.shares)).toEqual({ a: 9, b: 3, c: 2 });
  expect(result.brokenPromise).toEqual({ promised: 42, given: 14 });
  expect(allocate({ capacity: 42, users }).brokenPromise).toBeUndefined();
});

test('Promised minimums come before the first of others, but for one slot that goes by turns', () => {
  const others = Array.from({ length: 5 }, (_, n) => user(`other ${n}`, 3, { waitingSince: n }));
  const users = [user('promised', 9, { minimum: 4, waitingSince: 9 }), ...others];
  expect(sharesOf(4, users)).toMatchObject({ promised: 3, 'other 0': 1, 'other 1': 0 });
  expect(sharesOf(6, users)).toMatchObject({ promised: 4, 'other 0': 1, 'other 1': 1, 'other 2': 0 });
});

test('Promised minimums rest while their user is not active, and are no more than its maximum', () => {
  expect(sharesOf(5, [user('a', 9), user('b', 0, { minimum: 3, isActive: false })])).toEqual({
    a: 5,
    b: 0,
  });
  expect(sharesOf(9, [user('a', 9), user('b', 0, { minimum: 5, maximum: 2 })])).toEqual({ a: 7, b: 2 });
});

test('An allocator refuses options that make no sense, all at once', () => {
  const make = (): unknown =>
    new FairShareAllocator({ headroom: -1, shrinkAfter: 0, shrinkAftr: 2 } as never);
  expect(make).toThrow(PoolOptionsError);
  expect(make).toThrow(/headroom: .*shrinkAfter: .*shrinkAftr: .* did you mean shrinkAfter/s);
});

test.each([
  [{ demand: -1 }, 'demand'],
  [{ demand: 1.5 }, 'demand'],
  [{ weight: 0 }, 'weight'],
  [{ weight: Number.NaN }, 'weight'],
  [{ minimum: -1 }, 'minimum'],
  [{ maximum: 0 }, 'maximum'],
  [{ waitingSince: Number.NaN }, 'waitingSince'],
  [{ share: -1 }, 'share'],
])('An allocator refuses a user with %o and names the field', (wrong, field) => {
  const users = [user('fine', 1), user('odd', 1, wrong)];
  expect(() => allocate({ capacity: 5, users })).toThrow(`The ${field} of user 'odd' must be`);
});

test('An allocator refuses a capacity that is none, and a user that is named twice', () => {
  expect(() => allocate({ capacity: -1, users: [] })).toThrow(/capacity must be a whole number/);
  expect(() => allocate({ capacity: Number.NaN, users: [] })).toThrow(/capacity must be/);
  expect(() => allocate({ capacity: 5, users: [user('a', 1), user('a', 1)] })).toThrow(
    "User 'a' is named twice.",
  );
});

test('An allocator gives no shares without users, and zero shares without capacity', () => {
  expect(allocate({ capacity: 5, users: [] })).toMatchObject({ leftOver: 5, queued: 0, changes: [] });
  expect(allocate({ capacity: 0, users: [user('a', 3)] })).toMatchObject({
    leftOver: 0,
    queued: 1,
    unmet: 3,
  });
});
