// The leases that a pool holds of a budget that it shares with others.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LeaseAccount } from '../../src/core/lease-account.js';
import type { LeaseAnswer, LeaseHolder, Leases } from '../../src/core/leases.js';

const holder: LeaseHolder = {
  name: 'orders',
  leasesAvailable: () => {},
  leasesGranted: () => 0,
  leasesRefused: () => {},
  leasesLost: () => {},
};
const none = new Error('none left');

/** A budget that answers as it is told to, and counts. */
class Budget implements Leases {
  answer: LeaseAnswer = 'granted';
  asked = 0;
  granted = 0;
  released = 0;

  acquire(count: number): LeaseAnswer {
    expect(count).toBe(1);
    this.asked++;
    if (this.answer === 'granted') this.granted++;
    return this.answer;
  }

  release(count: number): void {
    expect(count).toBe(1);
    this.released++;
  }
}

function accountWith(): { budget: Budget; account: LeaseAccount } {
  const budget = new Budget();
  return { budget, account: new LeaseAccount(budget, holder) };
}

test('A pool without a budget above it always has leave, and holds nothing', () => {
  const account = new LeaseAccount(undefined, holder);
  expect(account.reserve()).toBe(true);
  account.use();
  expect(account.slotFreed()).toBe(false);
  account.putBack();
  expect(account).toMatchObject({ held: 0, debt: 0 });
});

test('A lease is asked for one at a time, and given back when its slot is free', () => {
  const { budget, account } = accountWith();
  expect(account.reserve()).toBe(true);
  account.use();
  expect([account.held, budget.granted]).toEqual([1, 1]);
  expect(account.slotFreed()).toBe(true);
  expect([account.held, budget.released]).toEqual([0, 1]);
});

test('A lease stays in hand for the next attempt, when the dial could not begin', () => {
  const { budget, account } = accountWith();
  expect([account.reserve(), account.reserve(), account.reserve()]).toEqual([true, true, true]);
  expect(budget.asked).toBe(1);
});

test('A lease in hand goes back when nothing is to be dialed, once', () => {
  const { budget, account } = accountWith();
  account.reserve();
  account.putBack();
  account.putBack();
  expect([account.held, budget.released]).toEqual([0, 1]);
});

test('A lease that is refused is refused with its reason, and may be asked for again', () => {
  const { budget, account } = accountWith();
  budget.answer = none;
  expect(account.reserve()).toBe(none);
  expect(account.reserve()).toBe(none);
  expect([account.held, budget.asked]).toEqual([0, 2]);
});

test('A lease that is being asked for is not asked for twice', () => {
  const { budget, account } = accountWith();
  budget.answer = 'asking';
  expect([account.reserve(), account.reserve()]).toEqual([false, false]);
  expect(budget.asked).toBe(1);
  budget.answer = 'granted';
  expect(account.reserve()).toBe(false);
  account.answered();
  expect(account.reserve()).toBe(true);
  expect(budget.asked).toBe(2);
});

test('A budget that throws has said no, for the reason that it threw', () => {
  const thrown: unknown[] = [none, 'gone'];
  const leases: Leases = {
    acquire: () => {
      throw thrown.shift();
    },
    release: () => {},
  };
  const account = new LeaseAccount(leases, holder);
  expect(account.reserve()).toBe(none);
  expect(account.reserve()).toEqual(new Error('gone'));
  expect(account.held).toBe(0);
});

test('A budget that throws when it is given a lease back has it back', () => {
  const leases: Leases = {
    acquire: () => 'granted',
    release: () => {
      throw new Error('unreachable');
    },
  };
  const account = new LeaseAccount(leases, holder);
  account.reserve();
  account.use();
  expect(account.slotFreed()).toBe(true);
  expect(account.held).toBe(0);
});

test('A lease that is lost is owed by a connection: the next slot that is free pays, and nothing is given back for it', () => {
  const { budget, account } = accountWith();
  for (let n = 0; n < 2; n++) {
    account.reserve();
    account.use();
  }
  account.lost(1);
  expect(account).toMatchObject({ held: 1, debt: 1 });
  expect(account.slotFreed()).toBe(false);
  expect([account.held, account.debt, budget.released]).toEqual([1, 0, 0]);
  expect(account.slotFreed()).toBe(true);
  expect([account.held, account.debt, budget.released]).toEqual([0, 0, 1]);
});

test('A lease that is lost is an unused one, if there is one: then no connection has to be closed', () => {
  const { budget, account } = accountWith();
  account.reserve();
  account.lost(1);
  expect(account).toMatchObject({ held: 0, debt: 0 });
  account.putBack();
  expect(budget.released).toBe(0);
});

test('A lease that is lost keeps new ones from being asked for until it is paid', () => {
  const { budget, account } = accountWith();
  account.reserve();
  account.use();
  account.lost(1);
  expect(account.reserve()).toBe(false);
  expect(budget.asked).toBe(1);
  account.slotFreed();
  expect(account.reserve()).toBe(true);
});

test('A lease that is lost can be no more than is held', () => {
  const { account } = accountWith();
  account.reserve();
  account.use();
  account.lost(7);
  expect(account).toMatchObject({ held: 0, debt: 1 });
});

const happening = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('dial', 'free', 'free') },
  { weight: 2, arbitrary: fc.constantFrom('hold', 'put back', 'refuse', 'ask', 'answer') },
  { weight: 1, arbitrary: fc.constantFrom('lose 1', 'lose 2', 'lose 9') },
);

test('Over any history each lease that was granted ends once: given back, or lost', () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 100 }), (history) => {
      const { budget, account } = accountWith();
      // The test's own books: slots that exist, what was lost, and whether an answer is awaited.
      let slots = 0;
      let lost = 0;
      let isAsking = false;
      const held = (): number => budget.granted - budget.released - lost;
      for (const what of history) {
        if (what === 'answer') {
          isAsking = false;
          account.answered();
        } else if (what === 'free' && slots > 0) {
          slots--;
          account.slotFreed();
        } else if (what === 'put back') account.putBack();
        else if (what.startsWith('lose')) {
          const count = Math.min(Number(what.slice(5)), held());
          account.lost(Number(what.slice(5)));
          lost += count;
        } else if (what !== 'free') {
          budget.answer = what === 'refuse' ? none : what === 'ask' ? 'asking' : 'granted';
          const wasAsked = budget.asked;
          const answer = account.reserve();
          if (budget.asked > wasAsked && what === 'ask') isAsking = true;
          if (answer === true && what === 'dial') {
            account.use();
            slots++;
          }
          if (isAsking && answer === true) expect(budget.asked).toBe(wasAsked);
        }
        expect(account.held).toBe(held());
        // Each slot has a lease or is in debt for one; at most one more is in hand.
        expect([0, 1]).toContain(account.held + account.debt - slots);
      }
      account.putBack();
      for (; slots > 0; slots--) account.slotFreed();
      expect(account).toMatchObject({ held: 0, debt: 0 });
      expect(budget.granted).toBe(budget.released + lost);
    }),
    { numRuns: 500 },
  );
});
