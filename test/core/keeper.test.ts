// Keeping a pool at its size without a reservoir, a few connections at a time.
import { expect, test } from 'vitest';
import { connectionsPerTick, Keeper } from '../../src/core/keeper.js';

test.each([
  [1, 1],
  [50, 1],
  [100, 1],
  [120, 1],
  [121, 2],
  [500, 5],
  [1_000, 9],
  [1_200, 10],
  [5_000, 10],
])('The keeper of %i connections opens at most %i each time', (target, perTick) => {
  expect(connectionsPerTick(target)).toBe(perTick);
});

test('The keeper looks when its interval has passed, and not before', () => {
  const keeper = new Keeper({ target: 10, interval: 1_000, perTick: 2 }, 500);
  expect(keeper.nextTickAt).toBe(1_500);
  expect(keeper.tick(1_499, 0)).toBe(0);
  expect(keeper.wants(0)).toBe(false);
  expect(keeper.tick(1_500, 0)).toBe(2);
  expect(keeper.nextTickAt).toBe(2_500);
});

test('The keeper wants the missing connections, and no more at a time than perTick', () => {
  const keeper = new Keeper({ target: 10, interval: 1_000, perTick: 3 }, 0);
  expect(keeper.tick(1_000, 10)).toBe(0);
  expect(keeper.tick(2_000, 8)).toBe(2);
  expect(keeper.tick(3_000, 0)).toBe(3);
  expect(keeper.tick(4_000, 12)).toBe(0);
});

test('The keeper wants each missing connection once: a failed one is left to the next look', () => {
  const keeper = new Keeper({ target: 10, interval: 1_000, perTick: 2 }, 0);
  keeper.tick(1_000, 0);
  keeper.dialBegun();
  expect(keeper.wants(1)).toBe(true);
  keeper.dialBegun();
  expect(keeper.wants(0)).toBe(false);
  keeper.tick(2_000, 0);
  expect(keeper.wants(0)).toBe(true);
});

test('The keeper wants one again that was taken back', () => {
  const keeper = new Keeper({ target: 10, interval: 1_000, perTick: 1 }, 0);
  expect(keeper.isBusy).toBe(false);
  keeper.tick(1_000, 0);
  expect(keeper.isBusy).toBe(true);
  keeper.dialBegun();
  expect(keeper.isBusy).toBe(false);
  keeper.dialWithdrawn();
  expect(keeper.isBusy).toBe(true);
  expect(keeper.wants(0)).toBe(true);
});

test('The keeper wants none when others have opened enough meanwhile', () => {
  const keeper = new Keeper({ target: 3, interval: 1_000, perTick: 3 }, 0);
  keeper.tick(1_000, 0);
  expect(keeper.wants(2)).toBe(true);
  expect(keeper.wants(3)).toBe(false);
});
