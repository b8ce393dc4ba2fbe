// Connections that were born together and would end together, over several lives: the reservoir thins the crowd out before
// its time, as fast as the source opens new ones, and stays ready.
import { describe, expect, test } from 'vitest';
import { WatchedWorld } from './model/watched-world.js';
import { reasons } from './scenes.js';

const lifeMs = 30_000;
const generations = 4;
/** The laws are judged after so much time; the fewest that were ready are counted at every moment. */
const stepMs = 100;

interface Crowd {
  readonly count: number;
  readonly room?: number;
  readonly margin?: number;
  readonly jitterMs?: number;
  readonly dialMs?: number;
  readonly seed?: number;
}

/** All of a reservoir at once, behind ten permits a second. */
function crowd({ count, room = 0, margin = 0, jitterMs = 0, dialMs = 10, seed = 1 }: Crowd): WatchedWorld {
  const watched = new WatchedWorld({
    seed,
    rate: [10, count],
    policy: {
      max: count + room,
      reservoir: {
        targetReady: count,
        lowWatermark: count - margin,
        baseLifetime: lifeMs,
        lifetimeJitter: jitterMs,
        guardWindow: '2s',
      },
    },
    manners: () => ({ onDial: (dial) => dial.succeedAfter(dialMs) }),
  });
  watched.passUntil(() => watched.world.pool.idle === count, 60_000);
  watched.lowestReady = Number.POSITIVE_INFINITY;
  return watched;
}

describe.each([50, 100])('Of a crowd of %i that was born together', (count) => {
  describe.each([10, 300])('behind a source that takes %i ms for each', (dialMs) => {
    const jitters: readonly (readonly [jitter: string, jitterMs: number])[] = [
      ['no jitter', 0],
      ['some jitter', 3_000],
      ['much jitter', 9_000],
    ];

    test.each(jitters)(
      'each is replaced first where there is room, with %s: never fewer are ready',
      (_, jitterMs) => {
        const watched = crowd({ count, room: 10, jitterMs, dialMs });
        watched.pass(generations * lifeMs, undefined, stepMs);
        expect(watched.lowestReady).toBe(count);
        watched.finish();
      },
    );

    test.each(jitters)(
      'no more are missing than keep the source busy where there is none, with %s',
      (_, jitterMs) => {
        const watched = crowd({ count, jitterMs, dialMs });
        watched.pass(generations * lifeMs, undefined, stepMs);
        const busy = Math.ceil((dialMs * 10) / 1_000);
        expect(watched.lowestReady).toBeGreaterThanOrEqual(count - busy - 1);
        watched.finish();
      },
    );

    test.each(jitters)(
      'never fewer are ready than the low watermark, which leaves a margin, with %s',
      (_, jitterMs) => {
        const watched = crowd({ count, margin: 5, jitterMs, dialMs });
        watched.pass(generations * lifeMs, undefined, stepMs);
        expect(watched.lowestReady).toBeGreaterThanOrEqual(count - 5);
        watched.finish();
      },
    );
  });

  test('none is found too old by a caller, and none lives much shorter than it may', () => {
    const watched = crowd({ count, room: 10, jitterMs: 3_000 });
    const { world } = watched;
    const before = world.server.opened;
    watched.pass(generations * lifeMs, undefined, stepMs);
    expect(reasons(world)).toEqual({ expiring_soon_on_scan: expect.any(Number) });
    // One more generation than there were lives at most, for the crowd is thinned out ahead of time.
    expect(world.server.opened - before).toBeLessThanOrEqual((generations + 1) * count);
    watched.finish();
  });
});

test.each([1, 2, 3])('A crowd under load stays ready while some are always in use (seed %i)', (seed) => {
  const watched = crowd({ count: 50, room: 15, margin: 5, jitterMs: 3_000, dialMs: 50, seed });
  const { world } = watched;
  const inUse = Array.from({ length: 10 }, () => world.mustTake());
  watched.passUntil(() => world.pool.idle === 50, 10_000);
  watched.lowestReady = Number.POSITIVE_INFINITY;
  // Each is in use for a tenth of a second; the next is taken before it is given back.
  watched.pass(generations * lifeMs, () => {
    inUse.push(world.mustTake());
    inUse.shift()?.release();
  });
  expect(watched.lowestReady).toBeGreaterThanOrEqual(45);
  expect(world.emptyHanded).toBe(0);
  watched.finish();
});

test('A crowd under load is thinned out beside connections in use where there is no room', () => {
  const watched = crowd({ count: 50, margin: 15 });
  const { world } = watched;
  const inUse = Array.from({ length: 10 }, () => world.mustTake());
  watched.lowestReady = Number.POSITIVE_INFINITY;
  watched.pass(generations * lifeMs, () => {
    inUse.push(world.mustTake());
    inUse.shift()?.release();
  });
  // Eleven are in use at times, and few are missing beside them.
  expect(watched.lowestReady).toBeGreaterThanOrEqual(35);
  expect(reasons(world).expiring_soon_on_scan).toBeGreaterThan(100);
  watched.finish();
});

test('A crowd under load does not throw young ones away for the sake of old ones that are in use', () => {
  const watched = new WatchedWorld({
    rate: [2, 100],
    policy: {
      max: 20,
      reservoir: {
        targetReady: 10,
        lowWatermark: 5,
        baseLifetime: '20s',
        lifetimeJitter: 0,
        guardWindow: '1s',
      },
    },
  });
  const { world } = watched;
  watched.pass(500);
  for (let n = 0; n < 10; n++) world.mustTake();
  watched.pass(13_000);
  for (const socket of [...world.server.sockets]) if (socket.place === 'idle') socket.breakDown();
  watched.pass(500);
  const before = reasons(world);
  watched.pass(5_000);
  expect(reasons(world)).toEqual(before);
  watched.finish();
});

test.each([
  ['with room', 10, 50],
  ['without room', 0, 48],
])('A source that stops costs no more than a place or two before the crowd ends, %s', (_, room, atLeast) => {
  const watched = crowd({ count: 50, room });
  const { world } = watched;
  world.server.manners.onDial = (dial) => dial.failAfter(5);
  watched.pass(lifeMs - 2_000 - 100, undefined, stepMs);
  expect(world.pool.idle).toBeGreaterThanOrEqual(atLeast);
  watched.pass(3_000);
  expect(world.pool.idle).toBe(0);
  watched.finish();
});

test.each([
  { draw: 0, lives: lifeMs - 4_000 },
  { draw: 0.5, lives: lifeMs },
  { draw: 1 - 2 ** -32, lives: lifeMs + 4_000 },
])(
  'A life in a reservoir lasts for baseLifetime, half of the jitter more or less: $lives ms',
  ({ draw, lives }) => {
    const watched = new WatchedWorld({
      policy: {
        max: 3,
        reservoir: { baseLifetime: lifeMs, lifetimeJitter: '8s', guardWindow: '2s' },
      },
      random: { next: () => draw },
    });
    watched.pass(100);
    for (const { bornAt, expiresAt, lendUntil } of watched.world.pool.connections()) {
      expect(expiresAt - bornAt).toBeCloseTo(lives, 3);
      expect(expiresAt - lendUntil).toBeCloseTo(2_000, 6);
    }
  },
);

test('A life in a reservoir is drawn anew for each, over the whole width', () => {
  const { world } = crowd({ count: 100, jitterMs: 8_000 });
  const lives = [...world.pool.connections()].map(({ bornAt, expiresAt }) => expiresAt - bornAt);
  expect(Math.min(...lives)).toBeGreaterThanOrEqual(lifeMs - 4_000);
  expect(Math.min(...lives)).toBeLessThan(lifeMs - 3_500);
  expect(Math.max(...lives)).toBeLessThanOrEqual(lifeMs + 4_000);
  expect(Math.max(...lives)).toBeGreaterThan(lifeMs + 3_500);
  expect(new Set(lives).size).toBe(100);
});
