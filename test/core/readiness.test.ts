// Calls that wait until a number of connections exists.
import { expect, test } from 'vitest';
import { Readiness } from '../../src/core/readiness.js';

function setUp(): {
  readiness: Readiness;
  answers: string[];
  ask: (target: number, deadline: number) => void;
} {
  const readiness = new Readiness();
  const answers: string[] = [];
  const ask = (target: number, deadline: number): void => {
    readiness.add({
      target,
      deadline,
      reached: () => answers.push(`${target} reached`),
      missed: () => answers.push(`${target} missed`),
    });
  };
  return { readiness, answers, ask };
}

test('Readiness wants the highest number that a caller waits for, by the earliest time', () => {
  const { readiness, ask } = setUp();
  expect([readiness.target, readiness.nextDeadline]).toEqual([0, Number.POSITIVE_INFINITY]);
  ask(3, 500);
  ask(7, 900);
  expect([readiness.target, readiness.nextDeadline]).toEqual([7, 500]);
});

test('Readiness answers each once: when its number is there, or when its time is up', () => {
  const { readiness, answers, ask } = setUp();
  ask(3, 500);
  ask(7, 900);
  readiness.settle(2, 100);
  expect(answers).toEqual([]);
  readiness.settle(3, 200);
  expect(answers).toEqual(['3 reached']);
  readiness.settle(6, 900);
  readiness.settle(9, 999);
  expect(answers).toEqual(['3 reached', '7 missed']);
  expect(readiness.target).toBe(0);
});

test('Readiness takes the number as reached when both are true at once', () => {
  const { readiness, answers, ask } = setUp();
  ask(3, 500);
  readiness.settle(3, 500);
  expect(answers).toEqual(['3 reached']);
});

test('Readiness may be asked again from inside an answer', () => {
  const { readiness, answers, ask } = setUp();
  readiness.add({ target: 1, deadline: 10, reached: () => ask(2, 20), missed: () => {} });
  readiness.settle(1, 0);
  expect(readiness.target).toBe(2);
  readiness.settle(1, 20);
  expect(answers).toEqual(['2 missed']);
});
