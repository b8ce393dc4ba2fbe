// The dials under way, and those given up.
import { expect, test } from 'vitest';
import type { Dial } from '../../src/core/dialer.js';
import { Dials } from '../../src/core/dials.js';
import { type Approval, Ledger } from '../../src/core/ledger.js';
import { InvariantError } from '../../src/kernel/errors.js';

function setUp(): { dials: Dials<string>; ledger: Ledger; begin: (now: number) => Dial<string> } {
  const ledger = new Ledger(3);
  const dials = new Dials<string>(100, 20);
  return { dials, ledger, begin: (now) => dials.begin(ledger.approve() as Approval, now) };
}

test('A dial is under way until it is answered', () => {
  const { dials, begin } = setUp();
  const dial = begin(5);
  expect(dials.underWay).toBe(1);
  expect(dials.nextDeadline).toBe(105);
  expect(dials.answered(dial)).toBe('dialing');
  expect([dials.underWay, dials.nextDeadline]).toEqual([0, Number.POSITIVE_INFINITY]);
});

test('A dial that is answered twice is a loud error', () => {
  const { dials, begin } = setUp();
  const dial = begin(0);
  dials.answered(dial);
  expect(() => dials.answered(dial)).toThrow(InvariantError);
});

test('A dial is overdue at its deadline, the earliest first', () => {
  const { dials, begin } = setUp();
  const first = begin(0);
  begin(10);
  expect(dials.nextOverdue(99)).toBeUndefined();
  expect(dials.nextOverdue(110)).toBe(first);
});

test('A dial that is given up counts as closing until its answer comes', () => {
  const { dials, ledger, begin } = setUp();
  const dial = begin(0);
  dials.abandon(dial, 100);
  expect(dials.underWay).toBe(0);
  expect(ledger).toMatchObject({ pending: 0, live: 0, closing: 1 });
  expect(dials.nextDeadline).toBe(120);
  expect(dials.answered(dial)).toBe('abandoned');
  expect(dial.slot).toBeDefined();
});

test('A dial that never answers is lost after its time of grace, and its slot is free', () => {
  const { dials, ledger, begin } = setUp();
  const dial = begin(0);
  dials.abandon(dial, 100);
  dials.loseOverdue(119);
  expect(ledger.closing).toBe(1);
  dials.loseOverdue(120);
  expect(ledger.total).toBe(0);
  expect(dials.answered(dial)).toBe('lost');
  expect(dial.slot).toBeUndefined();
});
