// Tasks that are put off until a callback is over. The turns here are begun and ended by the test, as a transport does it.
import { expect, test } from 'vitest';
import { systemClock } from '../../src/runtime/system.js';
import { afterTurn, beginTurn, endTurn } from '../../src/runtime/turn.js';
import { nextTurn } from '../support/outcomes.js';

function noted(done: string[], what: string, then: () => void = () => {}) {
  return {
    run: () => {
      done.push(what);
      then();
    },
  };
}

test('A task that is put off runs when the callback is over, after those put off before it', () => {
  const done: string[] = [];
  beginTurn();
  afterTurn(noted(done, 'first'));
  afterTurn(noted(done, 'second'));
  done.push('callback');
  endTurn();
  expect(done).toEqual(['callback', 'first', 'second']);
});

test('A task that is put off may put off another, which runs in the same turn', () => {
  const done: string[] = [];
  beginTurn();
  afterTurn(noted(done, 'first', () => afterTurn(noted(done, 'third'))));
  afterTurn(noted(done, 'second'));
  endTurn();
  expect(done).toEqual(['first', 'second', 'third']);
});

test('A task that is put off runs once, and not in the next turn again', () => {
  const done: string[] = [];
  beginTurn();
  afterTurn(noted(done, 'task'));
  endTurn();
  beginTurn();
  endTurn();
  expect(done).toEqual(['task']);
});

test('A task that is put off runs after the present callback where no beginning of a turn was noted', async () => {
  const done: string[] = [];
  afterTurn(noted(done, 'task'));
  done.push('callback');
  await nextTurn();
  expect(done).toEqual(['callback', 'task']);
});

test('A task that is put off runs even if one before it throws, and so do those of later turns', async () => {
  const done: string[] = [];
  beginTurn();
  afterTurn({
    run: () => {
      throw new Error('a broken task');
    },
  });
  afterTurn(noted(done, 'second'));
  expect(endTurn).toThrow('a broken task');
  expect(done).toEqual([]);
  await nextTurn();
  expect(done).toEqual(['second']);
  beginTurn();
  afterTurn(noted(done, 'later'));
  endTurn();
  expect(done).toEqual(['second', 'later']);
});

test('The coarse clock in a turn stands still, and goes on in the next turn', () => {
  const spin = (): number => {
    const end = performance.now() + 2;
    while (performance.now() < end);
    return performance.now();
  };
  beginTurn();
  const first = systemClock.coarse();
  const exact = spin();
  expect(systemClock.coarse()).toBe(first);
  endTurn();
  beginTurn();
  expect(systemClock.coarse()).toBeGreaterThanOrEqual(exact);
  endTurn();
});
