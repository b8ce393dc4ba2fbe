// The demand of a user: the highest of a sliding window, from peaks that the pool itself keeps exactly.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DemandTracker } from '../../src/core/demand-tracker.js';
import type { PolicyOptions } from '../../src/core/pool-policy.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { dialMs } from '../support/fake-server.js';
import { VirtualWorld } from '../support/virtual-world.js';

test('A demand tracker says the highest of the intervals in its window', () => {
  const tracker = new DemandTracker({ window: '30s', interval: '10s' });
  expect([20, 25, 15, 10, 5].map((peak) => tracker.endInterval(peak))).toEqual([20, 25, 25, 25, 15]);
});

test.each([
  ['30s', '10s', 3],
  ['60s', '10s', 6],
  ['10s', '10s', 1],
  ['5s', '10s', 1],
  ['45s', '10s', 4],
])(
  'A demand tracker with a window of %s and an interval of %s remembers %i intervals',
  (window, interval, buckets) => {
    expect(new DemandTracker({ window, interval }).buckets).toBe(buckets);
  },
);

test('A demand tracker is the highest of the last few peaks, whatever they are', () => {
  const peaks = fc.array(fc.nat({ max: 100 }), { maxLength: 30 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), peaks, (buckets, script) => {
      const tracker = new DemandTracker({ window: buckets * 1_000, interval: 1_000 });
      script.forEach((peak, n) => {
        const recent = script.slice(Math.max(0, n + 1 - buckets), n + 1);
        expect(tracker.endInterval(peak)).toBe(Math.max(...recent));
      });
    }),
  );
});

test('A demand tracker counts what is noted between two ends to the interval that goes on', () => {
  const tracker = new DemandTracker({ window: 2, interval: 1 });
  tracker.note(9);
  tracker.note(4);
  expect(tracker.peak).toBe(9);
  expect([tracker.endInterval(3), tracker.endInterval(1), tracker.endInterval(2)]).toEqual([9, 9, 2]);
});

test('A demand tracker looks back 30 s in intervals of 10 s where nothing else is said', () => {
  expect(new DemandTracker().buckets).toBe(3);
});

test('A demand tracker names the field that is wrong, and all of them at once', () => {
  const make = (options: object) => (): unknown => new DemandTracker(options);
  expect(make({ window: 0, interval: -1 })).toThrow(PoolOptionsError);
  expect(make({ window: 0, interval: -1 })).toThrow(/window: must be.*interval: must be/s);
  expect(make({ window: 'soon' })).toThrow(/window: must be a duration/);
  expect(make({ interval: Number.POSITIVE_INFINITY })).toThrow(/interval: must be/);
  expect(make({ window: '10d', interval: 1 })).toThrow(/window: is 864000000 intervals long/);
  expect(make({ windwo: 1 })).toThrow(/windwo: is not an option; did you mean window/);
  expect(() => new DemandTracker().note(-1)).toThrow(RangeError);
  expect(() => new DemandTracker().endInterval(Number.NaN)).toThrow(RangeError);
});

const modes: [string, PolicyOptions][] = [
  ['a pool', { max: 4 }],
  ['a pool that fails a caller with its dial', { max: 4, onDialFailure: 'reject' }],
  ['a pool with a reservoir', { max: 4, reservoir: { targetReady: 2 } }],
];

describe.each(modes)('The demand of %s', (_, options) => {
  test('the demand of a pool is what is in use and what is waited for, at its highest, and then begins with what there is', () => {
    const world = new VirtualWorld(options);
    expect(world.pool.takeDemandPeak()).toBe(0);
    const callers = world.askMany(6);
    expect(world.pool.demand).toBe(6);
    world.advance(dialMs);
    expect([world.pool.inUse, world.pool.waiting]).toEqual([4, 2]);
    for (const caller of callers.slice(0, 3)) caller.release();
    callers[5]?.release();
    expect(world.pool.demand).toBe(2);
    expect(world.pool.takeDemandPeak()).toBe(6);
    expect(world.pool.takeDemandPeak()).toBe(2);
  });

  test('the demand of a pool includes a checkout that was over before the next reading', () => {
    const world = new VirtualWorld({ ...options, acquireTimeout: 60_000 });
    world.ask().reaction = (caller) => caller.release();
    world.advance(10 * dialMs);
    world.pool.takeDemandPeak();
    world.mustTake().release();
    expect([world.pool.takeDemandPeak(), world.pool.takeDemandPeak()]).toEqual([1, 0]);
  });

  test('the demand of a pool is exact through every checkout, return, wait and change of mind', () => {
    const deed = fc.constantFrom(
      'take',
      'ask',
      'ask',
      'release',
      'release',
      'abort',
      'withdraw',
      'time',
      'look',
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(deed, fc.nat({ max: 9 })), { maxLength: 60 }), (script) => {
        let highest = 0;
        // The first dials begin before the world is complete.
        let watched: VirtualWorld | undefined;
        const look = (): void => {
          if (watched !== undefined) highest = Math.max(highest, watched.pool.inUse + watched.pool.waiting);
        };
        const witness = { dialBegun: look, dialFailed: look, discarded: look, taken: look, failed: look };
        const world = new VirtualWorld(options, { witness });
        watched = world;
        for (const [what, which] of script) {
          const lease = [...world.leases][which % Math.max(1, world.leases.size)];
          const caller = [...world.queue][which % Math.max(1, world.queue.size)];
          if (what === 'take') world.take();
          else if (what === 'ask') world.ask(which * 10 || 500);
          else if (what === 'release') lease?.release(which === 9 ? new Error('broken') : undefined);
          else if (what === 'abort') caller?.abort();
          else if (what === 'withdraw') caller?.withdraw();
          else if (what === 'time') world.advance(which * 10);
          look();
          if (what !== 'look') continue;
          expect(world.pool.takeDemandPeak()).toBe(highest);
          highest = world.pool.inUse + world.pool.waiting;
        }
        expect(world.pool.takeDemandPeak()).toBe(highest);
      }),
    );
  });
});
