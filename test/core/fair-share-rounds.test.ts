// Shares from one round to the next: they do not flap, turns go round, and every change has its reason.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairShareAllocator, type ShareUser } from '../../src/core/fair-share.js';
import type { ShareResult } from '../../src/core/share-request.js';
import { allocate, capacities, portions, someUsers, sum, unfairness } from './share-scenes.js';

function user(key: string, demand: number, more: Partial<ShareUser> = {}): ShareUser {
  return { key, demand, weight: 1, isActive: true, ...more };
}

function show({ changes }: ShareResult): string[] {
  return changes.map(({ key, from, to, reason }) => `${key} ${from} -> ${to} ${reason}`);
}

/** Users with the same names, whose needs change from round to round. */
const rounds = fc.array(
  fc.record({
    capacity: capacities,
    isRound: fc.boolean().map((isLook) => !isLook),
    users: someUsers({ bounds: true, maxLength: 6 }).map((users) =>
      users.map((one, n) => ({ ...one, key: `user ${n}` })),
    ),
  }),
  { maxLength: 15 },
);

test('From round to round shares stay fair whatever was before: they add up, no user is left out, and no need waits while capacity is spare', () => {
  fc.assert(
    fc.property(
      rounds,
      fc.nat({ max: 4 }),
      fc.integer({ min: 1, max: 4 }),
      (script, headroom, shrinkAfter) => {
        const allocator = new FairShareAllocator({ headroom, shrinkAfter });
        for (const request of script) {
          expect(unfairness(request, allocator.allocate(request), headroom)).toBeUndefined();
        }
      },
    ),
    { numRuns: 500 },
  );
});

test('From round to round whatever was before, the same needs lead to the same shares in the end', () => {
  fc.assert(
    fc.property(rounds, capacities, someUsers({ bounds: true }), (script, capacity, users) => {
      const shrinkAfter = 3;
      const fair = allocate({ capacity, users });
      fc.pre(fair.queued === 0);
      const allocator = new FairShareAllocator({ shrinkAfter });
      for (const request of script) allocator.allocate(request);
      let result = allocator.allocate({ capacity, users });
      for (let round = 0; round < 2 * shrinkAfter; round++) result = allocator.allocate({ capacity, users });
      expect(result.shares).toEqual(fair.shares);
      expect(allocator.allocate({ capacity, users }).changes).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

test('From round to round no user gets less than it keeps, unless another user needs it', () => {
  fc.assert(
    fc.property(rounds, (script) => {
      const allocator = new FairShareAllocator({ shrinkAfter: 1_000 });
      let before: ReadonlyMap<string, number> = new Map();
      let capacityBefore = 0;
      for (const request of script) {
        const result = allocator.allocate(request);
        const all = portions(request.users, result);
        const isOwn = ({ key, share, need, minimum }: (typeof all)[number]): boolean =>
          share > (before.get(key) ?? 0) && share <= Math.max(1, need, minimum);
        const gained = all.filter(isOwn);
        for (const { key, share, maximum } of all) {
          const kept = Math.min(before.get(key) ?? 0, maximum);
          if (share < kept && request.capacity >= capacityBefore) expect(gained).not.toEqual([]);
        }
        before = result.shares;
        capacityBefore = request.capacity;
      }
    }),
    { numRuns: 500 },
  );
});

test('From round to round a change adds up to what the shares say, and has a reason', () => {
  fc.assert(
    fc.property(rounds, (script) => {
      const allocator = new FairShareAllocator();
      let before: ReadonlyMap<string, number> = new Map();
      for (const request of script) {
        const { shares, changes } = allocator.allocate(request);
        const told = new Map(changes.map((change) => [change.key, change]));
        for (const [key, to] of shares) {
          const from = before.get(key) ?? 0;
          if (from === to) expect(told.has(key)).toBe(false);
          else expect(told.get(key)).toMatchObject({ from, to, reason: expect.any(String) });
        }
        before = shares;
      }
    }),
  );
});

test('From round to round a share grows at once, and shrinks after three rounds in which less would have been fair', () => {
  const allocator = new FairShareAllocator();
  const round = (a: number, b: number): string[] =>
    show(allocator.allocate({ capacity: 100, users: [user('a', a), user('b', b)] }));
  expect(round(10, 10)).toEqual(['a 0 -> 50 arrived', 'b 0 -> 50 arrived']);
  expect(round(90, 10)).toEqual(['a 50 -> 90 demand_rose', 'b 50 -> 10 needed_by_others']);
  expect([round(10, 10), round(10, 10)]).toEqual([[], []]);
  expect(round(10, 10)).toEqual(['a 90 -> 50 demand_fell', 'b 10 -> 50 spare']);
});

test('From round to round a need that comes and goes moves nothing', () => {
  const allocator = new FairShareAllocator({ shrinkAfter: 2 });
  const round = (a: number): ShareResult =>
    allocator.allocate({ capacity: 30, users: [user('a', a), user('b', 5), user('c', 5)] });
  round(16);
  for (let n = 0; n < 10; n++) expect(round(n % 2 === 0 ? 2 : 16).changes).toEqual([]);
});

test('From round to round falls to the largest share that was fair meanwhile', () => {
  const allocator = new FairShareAllocator({ shrinkAfter: 3 });
  const shareOf = (a: number, b: number): number | undefined =>
    allocator.allocate({ capacity: 40, users: [user('a', a), user('b', b)] }).shares.get('a');
  expect([shareOf(40, 0), shareOf(0, 10), shareOf(20, 10), shareOf(0, 10)]).toEqual([39, 30, 30, 25]);
});

test('From round to round a look between two rounds brings nothing nearer to shrinking', () => {
  const allocator = new FairShareAllocator({ shrinkAfter: 2 });
  const look = (a: number, isRound: boolean): number | undefined =>
    allocator.allocate({ capacity: 20, isRound, users: [user('a', a), user('b', 1)] }).shares.get('a');
  look(18, true);
  for (let n = 0; n < 10; n++) expect(look(1, false)).toBe(19);
  expect([look(1, true), look(1, true)]).toEqual([19, 10]);
});

test('From round to round a share that a user has got elsewhere counts as what it has', () => {
  const users = [user('a', 2, { share: 8 }), user('b', 2)];
  const { shares } = new FairShareAllocator().allocate({ capacity: 10, users });
  expect(Object.fromEntries(shares)).toEqual({ a: 8, b: 2 });
});

test('From round to round says why: the end of activity, a lower maximum, a lower capacity, a promise, and more to go round', () => {
  const allocator = new FairShareAllocator({ shrinkAfter: 1 });
  const round = (capacity: number, ...users: ShareUser[]): string[] =>
    show(allocator.allocate({ capacity, users }));
  round(20, user('a', 5), user('b', 5));
  expect(round(10, user('a', 5), user('b', 5))).toEqual([
    'a 10 -> 5 capacity_fell',
    'b 10 -> 5 capacity_fell',
  ]);
  expect(round(10, user('a', 5, { maximum: 2 }), user('b', 5))).toEqual([
    'a 5 -> 2 maximum',
    'b 5 -> 8 spare',
  ]);
  expect(round(10, user('a', 0, { minimum: 6 }), user('b', 5))).toEqual([
    'a 2 -> 6 minimum',
    'b 8 -> 4 needed_by_others',
  ]);
  expect(round(10, user('a', 0), user('b', 0, { isActive: false }))).toEqual([
    'a 6 -> 10 spare',
    'b 4 -> 0 inactive',
  ]);
  expect(round(10, user('a', 0), user('b', 0))).toEqual(['a 10 -> 5 spare_evened_out', 'b 0 -> 5 arrived']);
});

test('From round to round a user that is not named any more is forgotten', () => {
  const allocator = new FairShareAllocator();
  allocator.allocate({ capacity: 10, users: [user('a', 8), user('b', 1)] });
  allocator.allocate({ capacity: 10, users: [user('b', 1)] });
  const users = [user('a', 1), user('b', 1)];
  expect(show(allocator.allocate({ capacity: 10, users }))).toContain('a 0 -> 1 arrived');
});

const crowd = (count: number): ShareUser[] =>
  Array.from({ length: count }, (_, n) => user(`user ${String(n).padStart(3, '0')}`, 1 + (n % 4)));

test('With more users than slots everyone has a slot within as many rounds as it takes to go round, again and again', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 40 }), (capacity, more) => {
      const users = crowd(capacity + more);
      const allocator = new FairShareAllocator();
      const longest = Math.ceil(users.length / capacity);
      const unserved = new Map(users.map(({ key }) => [key, 0]));
      let rounds = 0;
      for (let round = 0; round < 4 * longest; round++) {
        const { shares, queued } = allocator.allocate({ capacity, users });
        expect([sum(shares.values()), queued]).toEqual([capacity, more]);
        for (const [key, share] of shares)
          unserved.set(key, share > 0 ? 0 : (unserved.get(key) as number) + 1);
        rounds = Math.max(rounds, ...unserved.values());
      }
      expect(rounds).toBeLessThan(longest);
    }),
    { numRuns: 50 },
  );
});

test('With more users than slots all have had the same, but for one turn, after any number of rounds', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.nat({ max: 20 }),
      fc.nat({ max: 60 }),
      (capacity, more, count) => {
        const users = crowd(capacity + more);
        const allocator = new FairShareAllocator();
        const turns = new Map(users.map(({ key }) => [key, 0]));
        for (let round = 0; round < count; round++) {
          for (const [key, share] of allocator.allocate({ capacity, users }).shares)
            turns.set(key, (turns.get(key) as number) + share);
        }
        expect(Math.max(...turns.values()) - Math.min(...turns.values())).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: 50 },
  );
});

test('With more users than slots newcomers do not push back users that have waited longer', () => {
  const allocator = new FairShareAllocator();
  const regulars = crowd(4);
  for (let round = 0; round < 12; round++) {
    const fresh = [user(`a newcomer ${round}`, 1), user(`another newcomer ${round}`, 1)];
    const { shares } = allocator.allocate({ capacity: 2, users: [...regulars, ...fresh] });
    if (round % 2 === 1) continue;
    const served = regulars.filter(({ key }) => (shares.get(key) as number) > 0);
    expect([round, served.length]).toEqual([round, round === 0 ? 0 : 2]);
  }
});

test('With more users than slots a turn that has begun lasts until the next round', () => {
  const allocator = new FairShareAllocator();
  const users = crowd(5);
  const first = allocator.allocate({ capacity: 2, users });
  for (let look = 0; look < 5; look++) {
    expect(allocator.allocate({ capacity: 2, users, isRound: false }).changes).toEqual([]);
  }
  expect(allocator.allocate({ capacity: 2, users }).shares).not.toEqual(first.shares);
});

test('With more users than slots the longest wait comes first where it is known, and users without a use for a slot come last', () => {
  const users = [
    user('holds one', 3, { waitingSince: Number.NEGATIVE_INFINITY }),
    user('waits', 1, { waitingSince: 700 }),
    user('has waited for longer', 1, { waitingSince: 300 }),
    user('wants nothing', 0, { waitingSince: 0 }),
  ];
  expect(Object.fromEntries(allocate({ capacity: 2, users }).shares)).toEqual({
    'holds one': 1,
    waits: 0,
    'has waited for longer': 1,
    'wants nothing': 0,
  });
});

test('With more users than slots no user starves beside promises that take up everything', () => {
  const allocator = new FairShareAllocator();
  const users = [...crowd(6), user('greedy', 50, { minimum: 50 })];
  const served = new Set<string>();
  for (let round = 0; round < users.length; round++) {
    const { shares } = allocator.allocate({ capacity: 4, users });
    for (const [key, share] of shares) if (share > 0) served.add(key);
    expect(shares.get('greedy')).toBeGreaterThanOrEqual(3);
  }
  expect(served.size).toBe(users.length);
});

test('With more users than slots a share of zero is the end of a turn, and the next turn is told as one', () => {
  const allocator = new FairShareAllocator();
  const users = [user('a', 1), user('b', 1)];
  allocator.allocate({ capacity: 1, users });
  expect(show(allocator.allocate({ capacity: 1, users }))).toEqual([
    'a 1 -> 0 turn_ended',
    'b 0 -> 1 turn_began',
  ]);
});
