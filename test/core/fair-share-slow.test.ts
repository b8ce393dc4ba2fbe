// Shares that are found fast are those that are found slowly, from call to call, whoever comes and goes.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairShareAllocator } from '../../src/core/fair-share.js';
import { someUsers } from './share-scenes.js';
import { SlowAllocator } from './slow-allocator.js';

function calls(maxUsers: number, most: number): fc.Arbitrary<CallScript> {
  return fc.array(
    fc.record({
      capacity: fc.nat({ max: most }),
      isRound: fc.boolean(),
      users: someUsers({ bounds: true, history: true, maxLength: maxUsers }),
      order: fc.nat({ max: 2 }),
    }),
    { minLength: 1, maxLength: 12 },
  );
}

type CallScript = readonly {
  readonly capacity: number;
  readonly isRound: boolean;
  readonly users: ReturnType<typeof someUsers> extends fc.Arbitrary<infer Users> ? Users : never;
  readonly order: number;
}[];

function compare(script: CallScript, headroom: number, shrinkAfter: number): void {
  const fast = new FairShareAllocator({ headroom, shrinkAfter });
  const slow = new SlowAllocator(headroom, shrinkAfter);
  for (const { capacity, isRound, users: some, order } of script) {
    // A few names recur in most calls, so that there is something to remember.
    const named = some.map((user, n) => ({ ...user, key: `user ${n}` }));
    const users = [named, named.toReversed(), named.slice(1)][order] as typeof named;
    const { shares, changes } = fast.allocate({ capacity, isRound, users });
    expect({ shares, changes }).toEqual(slow.allocate({ capacity, isRound, users }));
  }
}

test('An allocator agrees with the slow one, reasons included, with few users', () => {
  fc.assert(fc.property(calls(9, 40), fc.nat({ max: 4 }), fc.integer({ min: 1, max: 4 }), compare), {
    numRuns: 3_000,
  });
}, 60_000);

test('An allocator agrees with the slow one, reasons included, with many users', () => {
  fc.assert(fc.property(calls(60, 200), fc.nat({ max: 4 }), fc.integer({ min: 1, max: 4 }), compare), {
    numRuns: 150,
  });
}, 60_000);
