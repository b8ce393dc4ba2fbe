// The ledger: pending + live + closing <= limit, whatever anyone does.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Approval, Ledger, type Slot } from '../../src/core/ledger.js';
import { InvariantError } from '../../src/kernel/errors.js';

test('The ledger never holds more than its limit, and its counts are those of the approvals and slots that are out', () => {
  const command = fc.tuple(
    fc.constantFrom('approve', 'approve', 'commit', 'rollback', 'close', 'free', 'limit'),
    fc.nat({ max: 12 }),
  );
  fc.assert(
    fc.property(fc.nat({ max: 8 }), fc.array(command, { maxLength: 80 }), (first, commands) => {
      const ledger = new Ledger(first);
      const pending: Approval[] = [];
      const live: Slot[] = [];
      const closing: Slot[] = [];
      let highest = 0;
      for (const [what, n] of commands) {
        const before = ledger.total;
        if (what === 'approve') {
          const approval = ledger.approve();
          expect(approval === undefined).toBe(before >= ledger.limit);
          if (approval !== undefined) pending.push(approval);
        } else if (what === 'commit' && pending.length > 0) live.push((pending.shift() as Approval).commit());
        else if (what === 'rollback') pending.pop()?.rollback();
        else if (what === 'close' && live.length > 0) {
          const slot = live.shift() as Slot;
          slot.beginClosing();
          closing.push(slot);
        } else if (what === 'free') closing.shift()?.free();
        else if (what === 'limit') ledger.setLimit(n);
        highest = Math.max(highest, ledger.total);
        expect(ledger).toMatchObject({
          pending: pending.length,
          live: live.length,
          closing: closing.length,
        });
        expect(ledger.room).toBe(Math.max(0, ledger.limit - ledger.total));
        expect(ledger.peak).toBe(highest);
        // A limit below what exists grants nothing: the total only falls until it fits.
        expect(ledger.total <= Math.max(ledger.limit, before)).toBe(true);
      }
    }),
  );
});

test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])('The ledger refuses %d as a limit', (limit) => {
  expect(() => new Ledger(limit)).toThrow(RangeError);
  const ledger = new Ledger(3);
  expect(() => ledger.setLimit(limit)).toThrow(RangeError);
  expect(ledger.limit).toBe(3);
});

test('The ledger takes a limit of 0, which approves nothing', () => {
  expect(new Ledger(0).approve()).toBeUndefined();
});

test.each([
  ['commit', 'commit'],
  ['commit', 'rollback'],
  ['rollback', 'commit'],
  ['rollback', 'rollback'],
] as const)('An approval that ended by %s can not end by %s as well, and says so', (first, second) => {
  const ledger = new Ledger(1);
  const approval = ledger.approve() as Approval;
  approval[first]();
  const counts = { pending: ledger.pending, live: ledger.live };
  expect(() => approval[second]()).toThrow(InvariantError);
  expect(ledger).toMatchObject(counts);
});

test('A slot goes from live to closing to gone, each once and in this order', () => {
  const ledger = new Ledger(1);
  const slot = (ledger.approve() as Approval).commit();
  expect(() => slot.free()).toThrow(InvariantError);
  slot.beginClosing();
  expect(() => slot.beginClosing()).toThrow(InvariantError);
  expect(ledger).toMatchObject({ live: 0, closing: 1, room: 0 });
  slot.free();
  expect(() => slot.free()).toThrow(InvariantError);
  expect(ledger).toMatchObject({ closing: 0, room: 1 });
});
