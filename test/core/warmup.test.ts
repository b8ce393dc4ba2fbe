// Reaching a size at the start: each connection is tried a few times, and what can't be opened is given up.
import { expect, test } from 'vitest';
import { Warmup } from '../../src/core/warmup.js';

test('A warmup wants connections until its size is reached, with what is being opened', () => {
  const warmup = new Warmup({ target: 2, retries: 5 }, 0);
  expect(warmup.wants(0)).toBe(true);
  warmup.dialBegun();
  expect(warmup.wants(1)).toBe(true);
  warmup.dialBegun();
  expect(warmup.wants(2)).toBe(false);
  expect(warmup.outcome(2, 0)).toBe('complete');
});

test('A warmup wants none that callers have had opened meanwhile', () => {
  const warmup = new Warmup({ target: 3, retries: 0 }, 0);
  expect(warmup.wants(3)).toBe(false);
  expect(warmup.outcome(3, 0)).toBe('complete');
});

test('A warmup tries a connection again as often as it may, then gives that one up and goes on with the others', () => {
  const warmup = new Warmup({ target: 2, retries: 2 }, 0);
  const tries: number[] = [];
  for (let n = 0; n < 3; n++) {
    const failedBefore = warmup.dialBegun();
    tries.push(failedBefore);
    expect(warmup.outcome(0, 1)).toBeUndefined();
    warmup.dialFailed(failedBefore);
  }
  expect(tries).toEqual([0, 1, 2]);
  expect(warmup.givenUp).toBe(1);
  expect(warmup.wants(0)).toBe(true);
  expect(warmup.dialBegun()).toBe(0);
  expect(warmup.wants(1)).toBe(false);
  expect(warmup.outcome(1, 0)).toBe('given_up');
});

test('A warmup tries each of them once where it is not to try again', () => {
  const warmup = new Warmup({ target: 3, retries: 0 }, 0);
  for (let n = 0; n < 3; n++) warmup.dialFailed(warmup.dialBegun());
  expect(warmup.wants(0)).toBe(false);
  expect(warmup).toMatchObject({ givenUp: 3, target: 3 });
  expect(warmup.outcome(0, 0)).toBe('given_up');
});

test('A warmup does not count a dial that is made again: it has neither failed nor been tried', () => {
  const warmup = new Warmup({ target: 1, retries: 0 }, 0);
  warmup.dialWithdrawn(warmup.dialBegun());
  expect(warmup.wants(0)).toBe(true);
  expect(warmup.outcome(0, 0)).toBeUndefined();
  expect(warmup.dialBegun()).toBe(0);
});

test('A warmup is over when all were opened, even if some have ended since', () => {
  const warmup = new Warmup({ target: 2, retries: 1 }, 0);
  warmup.dialBegun();
  warmup.dialBegun();
  expect(warmup.outcome(1, 1)).toBeUndefined();
  expect(warmup.outcome(1, 0)).toBe('complete');
});
