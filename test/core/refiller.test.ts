// Why another connection is opened, if one is.
import { expect, test } from 'vitest';
import type { PolicyOptions } from '../../src/core/pool-policy.js';
import { Refiller, type Supply } from '../../src/core/refiller.js';
import { policyOf } from '../support/virtual-world.js';

const half = { next: () => 0.5 };

function supply(differences: Partial<Supply> = {}): Supply {
  return { waiting: 0, live: 0, dialing: 0, checking: 0, spares: 0, wanted: 0, ...differences };
}

function started(options: PolicyOptions, now = 0): Refiller {
  const refiller = new Refiller(policyOf(options));
  refiller.start(now, half);
  return refiller;
}

test('A connection is opened for a caller first, as long as more wait than connections are on their way', () => {
  const refiller = started({ max: 5, minIdle: 2 });
  expect(refiller.reasonToDial(supply({ waiting: 1 }), false)).toBe('caller');
  expect(refiller.reasonToDial(supply({ waiting: 2, dialing: 1 }), false)).toBe('caller');
  expect(refiller.reasonToDial(supply({ waiting: 2, dialing: 1, checking: 1 }), false)).toBe('spare');
});

test('A connection is opened as a spare: for minIdle, for the reservoir, or because a caller waits for the pool to be ready', () => {
  expect(started({ max: 5, minIdle: 2 }).reasonToDial(supply({ spares: 1, live: 4 }), false)).toBe('spare');
  expect(started({ max: 5, minIdle: 2 }).reasonToDial(supply({ spares: 2, live: 4 }), false)).toBeUndefined();
  const reservoir = started({ max: 5, reservoir: { targetReady: 3 } });
  expect(reservoir.reasonToDial(supply({ spares: 2, live: 4 }), false)).toBe('spare');
  expect(reservoir.reasonToDial(supply({ spares: 2, live: 3, dialing: 1 }), false)).toBeUndefined();
  expect(started({ max: 5 }).reasonToDial(supply({ live: 2, wanted: 3 }), false)).toBe('spare');
});

test('A connection is opened for the warmup, until its size is reached', () => {
  const refiller = started({ max: 5, warmup: { target: 2 } });
  expect(refiller.isBusy).toBe(true);
  expect(refiller.reasonToDial(supply(), false)).toBe('warmup');
  refiller.dialBegun('warmup');
  refiller.dialBegun('warmup');
  expect(refiller.reasonToDial(supply({ dialing: 2 }), false)).toBeUndefined();
  expect(refiller.settleWarmup(40, 1, 1)).toBeUndefined();
  expect(refiller.settleWarmup(50, 2, 0)).toEqual({
    kind: 'warmup',
    phase: 'complete',
    size: 2,
    target: 2,
    failed: 0,
    elapsedMs: 50,
  });
  expect([refiller.isBusy, refiller.isWarmingUp]).toEqual([false, false]);
  expect(refiller.settleWarmup(60, 2, 0)).toBeUndefined();
});

test('A connection is opened for the warmup, which is going on from the very beginning', () => {
  const refiller = new Refiller(policyOf({ max: 5, warmup: true }));
  expect(refiller.isWarmingUp).toBe(true);
  expect(refiller.start(0, half)).toMatchObject({ kind: 'warmup', phase: 'started', target: 5 });
  expect(refiller.isWarmingUp).toBe(true);
  expect(new Refiller(policyOf({ max: 5 })).isWarmingUp).toBe(false);
  expect(started({ max: 5 }).isWarmingUp).toBe(false);
});

test('A connection is opened for the keeper, after it has looked', () => {
  const refiller = started({ max: 5, keeper: { perTick: 2 } });
  expect(refiller.reasonToDial(supply(), false)).toBeUndefined();
  expect(refiller.tick(1_000, 0)).toBe(2);
  expect(refiller.reasonToDial(supply(), false)).toBe('keeper');
  refiller.dialBegun('keeper');
  refiller.dialBegun('keeper');
  expect(refiller.reasonToDial(supply({ dialing: 1 }), false)).toBeUndefined();
  refiller.dialWithdrawn('keeper', 0);
  expect(refiller.reasonToDial(supply({ dialing: 1 }), false)).toBe('keeper');
});

test('A connection is opened for the warmup or the keeper by their own count: dials of others neither use it up nor add to it', () => {
  const keeper = started({ max: 5, keeper: { perTick: 1 } });
  keeper.dialWithdrawn('caller', 0);
  expect(keeper.isBusy).toBe(false);
  keeper.tick(1_000, 0);
  keeper.dialBegun('caller');
  expect(keeper.reasonToDial(supply({ dialing: 1 }), false)).toBe('keeper');
  keeper.dialBegun('keeper');
  expect(keeper.isBusy).toBe(false);

  const warmup = started({ max: 5, warmup: { target: 1, retries: 0 } });
  warmup.dialBegun('caller');
  warmup.dialFailed('caller', 0);
  expect(warmup.reasonToDial(supply(), false)).toBe('warmup');
  expect(warmup.dialBegun('warmup')).toBe(0);
  warmup.dialWithdrawn('caller', 0);
  expect(warmup.reasonToDial(supply(), false)).toBeUndefined();
  warmup.dialWithdrawn('warmup', 0);
  expect(warmup.reasonToDial(supply(), false)).toBe('warmup');
  warmup.dialFailed('warmup', warmup.dialBegun('warmup'));
  expect(warmup.settleWarmup(0, 0, 0)).toMatchObject({ phase: 'given_up', failed: 1 });
});

test('While checks are under way for some waiting callers, connections are opened for the others only', () => {
  const refiller = started({ max: 5, minIdle: 1 });
  expect(refiller.reasonToDial(supply({ checking: 1 }), false)).toBeUndefined();
  expect(refiller.reasonToDial(supply({ waiting: 1, checking: 1 }), false)).toBe('spare');
});

test('A connection is opened for callers alone while the pool is draining', () => {
  const refiller = started({ max: 5, minIdle: 5, warmup: true });
  expect(refiller.reasonToDial(supply({ wanted: 5 }), true)).toBeUndefined();
  expect(refiller.reasonToDial(supply({ waiting: 1 }), true)).toBe('caller');
});

test('A start with jitter holds back spare connections until the moment that was drawn, and no callers', () => {
  const refiller = started({ max: 5, minIdle: 2, startJitter: '10s' }, 1_000);
  expect(refiller.nextTickAt).toBe(6_000);
  expect(refiller.reasonToDial(supply({ wanted: 1 }), false)).toBeUndefined();
  expect(refiller.reasonToDial(supply({ waiting: 1 }), false)).toBe('caller');
  refiller.tick(5_999, 0);
  expect(refiller.reasonToDial(supply(), false)).toBeUndefined();
  refiller.tick(6_000, 0);
  expect(refiller.reasonToDial(supply(), false)).toBe('spare');
  expect(refiller.nextTickAt).toBe(Number.POSITIVE_INFINITY);
});

test('A start with jitter holds everything of that kind back before the start', () => {
  const refiller = new Refiller(policyOf({ max: 5, minIdle: 2, startJitter: '10s' }));
  expect(refiller.reasonToDial(supply(), false)).toBeUndefined();
});

test('A start with jitter is nothing that is waited for where there is none', () => {
  const refiller = started({ max: 5, minIdle: 2 });
  expect(refiller.nextTickAt).toBe(Number.POSITIVE_INFINITY);
  expect(refiller.reasonToDial(supply(), false)).toBe('spare');
});

test('The keeper takes over when the warmup is over, and does not look before', () => {
  const refiller = started({ max: 5, warmup: { target: 1, retries: 0 }, keeper: true });
  expect(refiller.nextTickAt).toBe(Number.POSITIVE_INFINITY);
  expect(refiller.tick(5_000, 0)).toBe(0);
  refiller.dialFailed('warmup', refiller.dialBegun('warmup'));
  expect(refiller.settleWarmup(5_000, 0, 0)).toMatchObject({ phase: 'given_up', failed: 1 });
  expect(refiller.nextTickAt).toBeLessThanOrEqual(6_000);
  expect(refiller.tick(6_000, 0)).toBe(1);
  expect(refiller.keeperTarget).toBe(5);
});
