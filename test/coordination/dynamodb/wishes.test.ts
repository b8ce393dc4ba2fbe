// The demand that instances know of each other is the real demand, from which shares are made.
import { expect, test } from 'vitest';
import { Fleet } from './fleet.js';

/** Long before any lease would be renewed. */
const soonMs = 15_000;
const settings = { leaseMs: 600_000, renewMs: 200_000, graceMs: 2_000, lookMs: 600 };

test('an instance that waits has its share soon, of one that took all in advance and has come to use all of it', () => {
  const fleet = new Fleet({ seed: 1, limit: 6, settings });
  const first = fleet.start();
  first.want(1);
  fleet.run(1_000);
  first.want(6);
  fleet.run(1_000);
  expect(first.pool.held).toBe(6);
  const second = fleet.start();
  second.want(6);
  fleet.run(soonMs);
  expect([first.pool.held, second.pool.held]).toEqual([3, 3]);
  expect(fleet.problems).toEqual([]);
});

test('an instance that waits has its share soon, although it wanted less when it was refused', () => {
  const fleet = new Fleet({ seed: 2, limit: 6, settings });
  const first = fleet.start();
  first.want(6);
  fleet.run(1_000);
  const second = fleet.start();
  second.want(1);
  fleet.run(soonMs);
  expect(second.pool.held).toBe(1);
  second.want(6);
  fleet.run(soonMs);
  expect([first.pool.held, second.pool.held]).toEqual([3, 3]);
  expect(fleet.problems).toEqual([]);
});
