// One budget for the pools of a process: never over the limit, requests are granted in order, and none is forgotten.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LeaseLimitError } from '../../src/coordination/errors.js';
import { type LocalLeases, localLeases } from '../../src/coordination/local-leases.js';
import type { LeaseHolder } from '../../src/core/leases.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { collectUncaught } from '../support/uncaught.js';
import { ModelHolder } from './model-holder.js';

/** The answer to a request that waits. */
const aWait = { reason: expect.any(LeaseLimitError) };

function holders<N extends string>(leases: LocalLeases, ...names: N[]): Record<N, ModelHolder> {
  const entries = names.map((name) => [name, new ModelHolder(name, leases)] as const);
  return Object.fromEntries(entries) as Record<N, ModelHolder>;
}

test('Local leases are granted up to the limit, over all holders together', () => {
  const leases = localLeases({ limit: 5 });
  const { a, b } = holders(leases, 'a', 'b');
  a.want(3);
  b.want(9);
  expect([a.held, b.held]).toEqual([3, 2]);
  expect(leases.stats()).toEqual({
    limit: 5,
    held: 5,
    waiting: 1,
    strayReleases: 0,
    byHolder: [
      { name: 'a', held: 3, wanted: 0 },
      { name: 'b', held: 2, wanted: 1 },
    ],
  });
});

test('Local leases that are waited for come with the numbers and with what to do', () => {
  const leases = localLeases({ limit: 2 });
  const { orders } = holders(leases, 'orders');
  orders.want(3);
  const [error] = orders.delays;
  expect(error).toBeInstanceOf(LeaseLimitError);
  expect(error).toMatchObject({ code: 'HG_LEASE_LIMIT', asked: 1, held: 2, limit: 2 });
  expect(error?.message).toBe(
    '2 of 2 leases are held: orders asked for 1. ' +
      'Give the pools that share them a smaller max, or raise the limit if the server can take it.',
  );
});

test('Local leases are granted all or none when several are asked for at once', () => {
  const leases = localLeases({ limit: 3 });
  const { a } = holders(leases, 'a');
  expect(leases.acquire(4, a)).toEqual(aWait);
  expect(leases.stats().held).toBe(0);
  expect(leases.acquire(3, a)).toBe('granted');
});

test('Local leases can not be asked for in numbers that make no sense, and giving those back changes nothing', () => {
  const leases = localLeases({ limit: 3 });
  const { a } = holders(leases, 'a');
  for (const count of [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(leases.acquire(count, a)).toBeInstanceOf(RangeError);
    leases.release(count, a);
  }
  expect(leases.stats()).toMatchObject({ held: 0, waiting: 0, strayReleases: 0 });
});

test('Local leases that are given back without having been held are counted and not believed', () => {
  const leases = localLeases({ limit: 3 });
  const { a, b } = holders(leases, 'a', 'b');
  a.want(2);
  leases.release(1, b);
  leases.release(3, a);
  expect(leases.stats()).toMatchObject({ held: 0, strayReleases: 2 });
});

test('Local leases need a limit that makes sense', () => {
  expect(() => localLeases({ limit: -1 })).toThrow(PoolOptionsError);
  expect(() => localLeases({} as never)).toThrow(/limit: is missing/);
  expect(() => localLeases({ limit: 1, limt: 2 } as never)).toThrow(/did you mean limit/);
  const leases = localLeases({ limit: 1 });
  for (const limit of [-1, 0.5, Number.NaN]) expect(() => leases.resize(limit)).toThrow(RangeError);
});

test('A request for a local lease that waits is granted when a lease is given back, in the order of asking', () => {
  const leases = localLeases({ limit: 1 });
  const { a, b, c, d } = holders(leases, 'a', 'b', 'c', 'd');
  const told: string[] = [];
  for (const holder of [a, b, c, d]) holder.onTold = () => told.push(holder.name);
  a.want(1);
  c.want(1);
  b.want(1);
  d.want(1);
  a.want(0);
  c.want(0);
  b.want(0);
  expect(told).toEqual(['c', 'b', 'd']);
  expect(d.held).toBe(1);
});

test('A request for a local lease that waits comes before that of the holder who gave back, when that one wants it again', () => {
  const leases = localLeases({ limit: 1 });
  const { a, b } = holders(leases, 'a', 'b');
  a.want(1);
  b.want(1);
  a.replaceOne();
  expect([a.held, b.held]).toEqual([0, 1]);
  b.replaceOne();
  expect([a.held, b.held]).toEqual([1, 0]);
});

test('A request for a local lease that waits is passed over when its holder has no use for a lease any more', () => {
  const leases = localLeases({ limit: 1 });
  const { a, b, c } = holders(leases, 'a', 'b', 'c');
  a.want(1);
  b.want(1);
  c.want(1);
  b.mood = 'uninterested';
  a.want(0);
  expect([b.held, c.held]).toEqual([0, 1]);
  expect(leases.stats().waiting).toBe(0);
});

test('A request for a local lease that waits is not overtaken by one that is made while it is granted', () => {
  const leases = localLeases({ limit: 1 });
  const { a, b, late } = holders(leases, 'a', 'b', 'late');
  a.want(1);
  b.want(1);
  b.onTold = () => late.want(1);
  a.want(0);
  expect([b.held, late.held]).toEqual([1, 0]);
  expect(leases.stats().waiting).toBe(1);
});

test('A request for a local lease that waits is over when its holder has asked again with success', () => {
  const leases = localLeases({ limit: 1 });
  const { a } = holders(leases, 'a');
  a.want(1);
  expect(leases.acquire(1, a)).toEqual(aWait);
  a.replaceOne();
  expect(a.held).toBe(1);
  expect(leases.stats().waiting).toBe(0);
});

test('A request for a local lease that waits shares leases that get free together with the other requests', () => {
  const leases = localLeases({ limit: 0 });
  const { a, b, c } = holders(leases, 'a', 'b', 'c');
  for (const holder of [a, b, c]) holder.want(10);
  leases.resize(7);
  expect([a.held, b.held, c.held]).toEqual([3, 2, 2]);
});

test('A request for a local lease that waits for many leases is granted when so many are free, and does not hold up the others until then', () => {
  const leases = localLeases({ limit: 3 });
  const { a, b, bulk } = holders(leases, 'a', 'b', 'bulk');
  a.want(3);
  expect(leases.acquire(3, bulk)).toEqual(aWait);
  b.want(1);
  a.want(2);
  expect(b.held).toBe(1);
  a.want(0);
  expect(bulk.grants).toBe(0);
  bulk.wants = 3;
  b.want(0);
  expect([bulk.grants, bulk.held]).toEqual([1, 3]);
  expect(leases.stats().held).toBe(3);
});

test('A request for a local lease that waits is granted with the next call of another, should its holder have given back and not asked again', () => {
  const leases = localLeases({ limit: 1 });
  const { a, b } = holders(leases, 'a', 'b');
  leases.acquire(1, a);
  expect(leases.acquire(1, a)).toEqual(aWait);
  leases.release(1, a);
  expect(a.grants).toBe(0);
  a.wants = 1;
  b.want(1);
  expect([a.held, b.held]).toEqual([1, 0]);
});

test('A holder that throws when it is granted a local lease harms no other holder, and the error is reported', async () => {
  const leases = localLeases({ limit: 1 });
  const { a, b, c } = holders(leases, 'a', 'b', 'c');
  a.want(1);
  b.want(1);
  c.want(1);
  b.onTold = () => {
    throw new Error('a mistake in b');
  };
  await using uncaught = collectUncaught();
  a.want(0);
  expect(c.held).toBe(1);
  expect(await uncaught.next()).toBe('a mistake in b');
});

test('A holder that takes no lease and asks again at once is asked once, and the next is served', () => {
  const leases = localLeases({ limit: 1 });
  const { a, b } = holders(leases, 'a', 'b');
  let grants = 0;
  const fickle: LeaseHolder = {
    name: 'fickle',
    leasesAvailable: () => {},
    leasesGranted: () => {
      grants++;
      leases.acquire(1, fickle);
      return 0;
    },
    leasesRefused: () => {},
    leasesLost: () => {},
  };
  a.want(1);
  leases.acquire(1, fickle);
  b.want(1);
  a.want(0);
  expect([grants, b.held]).toEqual([1, 1]);
  expect(leases.stats()).toMatchObject({ held: 1, waiting: 1 });
});

test('A limit that is lowered is reached by taking from the holders with most leases, until they are equal', () => {
  const leases = localLeases({ limit: 20 });
  const { a, b, c } = holders(leases, 'a', 'b', 'c');
  a.want(10);
  b.want(7);
  c.want(2);
  leases.resize(8);
  expect([a.held, b.held, c.held]).toEqual([3, 3, 2]);
  expect([a.lost, b.lost, c.lost]).toEqual([7, 4, 0]);
});

test('A limit that is lowered takes from the holder that got a lease last, among equals', () => {
  const leases = localLeases({ limit: 4 });
  const { a, b } = holders(leases, 'a', 'b');
  a.want(1);
  b.want(2);
  a.want(2);
  leases.resize(3);
  expect([a.lost, b.lost]).toEqual([1, 0]);
});

test('A limit that is lowered tells each holder once of all that it has lost', () => {
  const leases = localLeases({ limit: 9 });
  const { a } = holders(leases, 'a');
  let times = 0;
  a.onTold = (what) => {
    if (what === 'lost') times++;
  };
  a.want(9);
  leases.resize(2);
  expect([a.held, times]).toEqual([2, 1]);
});

test('A limit that is lowered takes less from the others when the first who loses gives back more than it must', () => {
  const leases = localLeases({ limit: 6 });
  const { a, b } = holders(leases, 'a', 'b');
  b.want(3);
  a.want(3);
  a.onTold = (what) => {
    if (what === 'lost') a.wants = 0;
  };
  leases.resize(4);
  expect([a.held, b.held, b.lost]).toEqual([0, 3, 0]);
});

test('A limit that is lowered does not touch the holder in whose own call it is lowered, until another calls', () => {
  const leases = localLeases({ limit: 4 });
  const { a, b, c } = holders(leases, 'a', 'b', 'c');
  a.want(4);
  b.want(1);
  b.onTold = () => leases.resize(1);
  a.want(3);
  expect(a.complaints).toEqual([]);
  expect(leases.stats()).toMatchObject({ limit: 1, held: 3 });
  expect(a.held).toBe(3);
  c.want(1);
  expect(leases.stats()).toMatchObject({ limit: 1, held: 1 });
  expect([a.held, a.complaints]).toEqual([1, []]);
});

describe('Whatever the pools do with local leases', () => {
  const names = ['a', 'b', 'c', 'd'] as const;
  const holder = fc.nat({ max: names.length - 1 });
  const command = fc.oneof(
    fc.record({ what: fc.constant('want' as const), holder, count: fc.nat({ max: 6 }) }),
    fc.record({ what: fc.constant('replace' as const), holder, count: fc.constant(1) }),
    fc.record({ what: fc.constant('mood' as const), holder, count: fc.nat({ max: 1 }) }),
    fc.record({ what: fc.constant('resize' as const), holder, count: fc.nat({ max: 12 }) }),
    // What one holder does when it is told something may be anything, to anyone.
    fc.record({ what: fc.constant('react' as const), holder, count: fc.nat({ max: 3 }), whom: holder }),
  );

  test('local leases keep to the limit, counts agree, and no holder waits while a lease is free', () => {
    fc.assert(
      fc.property(fc.nat({ max: 8 }), fc.array(command, { maxLength: 60 }), (limit, commands) => {
        const leases = localLeases({ limit });
        const all = names.map((name) => new ModelHolder(name, leases));
        for (const command of commands) {
          const actor = all[command.holder] as ModelHolder;
          if (command.what === 'want') actor.want(command.count);
          else if (command.what === 'replace') actor.replaceOne();
          else if (command.what === 'mood') actor.mood = command.count === 0 ? 'eager' : 'uninterested';
          else if (command.what === 'resize') leases.resize(command.count);
          else {
            const whom = all[command.whom] as ModelHolder;
            actor.onTold = () => {
              actor.onTold = undefined;
              whom.want(command.count);
            };
          }
          judge(leases, all);
        }
        for (const each of all) each.onTold = undefined;
        for (const each of all) each.want(0);
        expect(leases.stats()).toMatchObject({ held: 0, strayReleases: 0 });
        for (const { granted, released, lost } of all) expect(granted).toBe(released + lost);
      }),
    );
  });

  function judge(leases: LocalLeases, all: readonly ModelHolder[]): void {
    const { limit, held, strayReleases } = leases.stats();
    expect(held).toBeLessThanOrEqual(limit);
    expect(all.reduce((sum, each) => sum + each.held, 0)).toBe(held);
    expect(strayReleases).toBe(0);
    for (const each of all) expect(each.complaints).toEqual([]);
    if (held < limit) {
      const inVain = all.filter((each) => each.isWaiting && each.held < each.wants);
      expect(inVain.map(({ name }) => name)).toEqual([]);
    }
  }

  test('every pool that wants one has its turn, however many compete', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 2, max: 9 }),
        fc.array(fc.nat({ max: 99 }), { minLength: 40, maxLength: 40 }),
        (limit, pools, picks) => {
          const leases = localLeases({ limit });
          const all = Array.from({ length: pools }, (_, n) => new ModelHolder(`pool ${n}`, leases));
          for (const each of all) each.want(limit);
          // Each time, one of those who hold something gives one back and wants it again at once.
          const roundsWithout = new Map<ModelHolder, number>();
          for (const pick of picks) {
            const holding = all.filter((each) => each.held > 0);
            for (const each of all) {
              roundsWithout.set(each, each.held > 0 ? 0 : (roundsWithout.get(each) ?? 0) + 1);
            }
            (holding[pick % holding.length] as ModelHolder).replaceOne();
            expect(Math.max(...roundsWithout.values())).toBeLessThanOrEqual(pools);
          }
        },
      ),
    );
  });
});
