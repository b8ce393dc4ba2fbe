// Connections that a pool wants ready on top of what its callers need, for budgets that share by need.
import { expect, test } from 'vitest';
import type { PolicyOptions } from '../../src/core/pool-policy.js';
import { VirtualWorld } from '../support/virtual-world.js';

const half = { next: () => 0.5 };

function needs({ pool }: VirtualWorld): [callers: number, ready: number] {
  return [pool.demand, pool.readyDemand];
}

/** A pool with so many callers that have a connection, after a while. */
function withCallers(options: PolicyOptions, callers: number): VirtualWorld {
  const world = new VirtualWorld(options, { random: half });
  world.askMany(callers);
  world.advance(20_000);
  return world;
}

test('The ready demand of a pool is nothing where nothing is kept ready, whatever is idle', () => {
  const world = withCallers({ max: 5 }, 3);
  expect(needs(world)).toEqual([3, 0]);
  for (const lease of [...world.leases]) lease.release();
  expect(world.pool.idle).toBe(3);
  expect(needs(world)).toEqual([0, 0]);
});

test('The ready demand of a pool is what a reservoir is short of beside its callers, within the limit', () => {
  const reservoir = { targetReady: 10 };
  expect(needs(withCallers({ max: 10, reservoir }, 0))).toEqual([0, 10]);
  expect(needs(withCallers({ max: 10, reservoir }, 3))).toEqual([3, 7]);
  expect(needs(withCallers({ max: 20, reservoir }, 3))).toEqual([3, 10]);
  expect(needs(withCallers({ max: 12, reservoir }, 5))).toEqual([5, 7]);
});

test('The ready demand of a pool is none when callers need all that there may be', () => {
  const world = withCallers({ max: 4, minIdle: 2 }, 9);
  expect(needs(world)).toEqual([9, 0]);
});

test('The ready demand of a pool is the larger of spares and the size of a keeper, callers included in that size', () => {
  const options = { max: 20, minIdle: 2, keeper: { target: 6, perTick: 6 } };
  expect(needs(withCallers(options, 0))).toEqual([0, 6]);
  expect(needs(withCallers(options, 3))).toEqual([3, 3]);
  expect(needs(withCallers(options, 8))).toEqual([8, 2]);
});

test('The ready demand of a pool has a warmup in it as long as that goes on', () => {
  const world = new VirtualWorld({ max: 10, warmup: { target: 4 } });
  expect(needs(world)).toEqual([0, 4]);
  world.advance(5_000);
  expect(needs(world)).toEqual([0, 0]);
});

test('The ready demand of a pool includes connections that a call of ready() waits for', () => {
  const world = new VirtualWorld({ max: 10 });
  world.pool.whenReady({ target: 3, deadline: 60_000, reached: () => {}, missed: () => {} });
  expect(needs(world)).toEqual([0, 3]);
});

test('The ready demand of a pool has connections in it that are replaced before they end', () => {
  const life = { maxLifetime: 60_000, maxLifetimeJitter: 0, guardWindow: 10_000, idleTimeout: 0 };
  const world = new VirtualWorld({ max: 10, minIdle: 3, ...life });
  world.advance(40_000);
  expect(needs(world)).toEqual([0, 3]);
  world.advance(10_100);
  expect(needs(world)).toEqual([0, 6]);
  world.advance(10_000);
  expect(needs(world)).toEqual([0, 3]);
});

test('The ready demand of a pool is none before a start that is spread has begun, and none of a pool that ends', () => {
  const world = new VirtualWorld({ max: 10, minIdle: 4, startJitter: 10_000 }, { random: half });
  expect(needs(world)).toEqual([0, 0]);
  world.advance(5_000);
  expect(needs(world)).toEqual([0, 4]);
  world.drain();
  expect(needs(world)).toEqual([0, 0]);
});
