// A reservoir, scene by scene: what is given to callers and what is discarded, the first fill, and how long a caller waits.
import { expect, test } from 'vitest';
import { ReservoirEmptyError } from '../../src/core/errors.js';
import { type ReservoirOptions, tooOld } from '../../src/core/reservoir.js';
import { TokenBucket } from '../../src/core/token-bucket.js';
import { dialMs } from '../support/fake-server.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { reasons, silent } from './scenes.js';

/** Lives of ten seconds, of which connections are not given out in the last two. */
function reservoir(
  max: number,
  options: ReservoirOptions = {},
): { max: number; reservoir: ReservoirOptions } {
  return {
    max,
    reservoir: { baseLifetime: '10s', lifetimeJitter: 0, guardWindow: '2s', lowWatermark: 0, ...options },
  };
}

/** A source that stops as soon as the reservoir is full, so that nothing is replaced. */
function filledOnce(max: number, options: ReservoirOptions = {}): VirtualWorld {
  const world = new VirtualWorld(reservoir(max, options));
  world.advance(5 * dialMs);
  world.server.manners.onDial = () => {};
  return world;
}

const end = { expiresAt: 1_000 };

test.each([
  ['checkout', 999, 'insufficient_remaining_lifetime'],
  ['checkout', 1_000, 'expired_on_checkout'],
  ['return', 999, 'insufficient_remaining_lifetime'],
  ['return', 1_000, 'expired_on_return'],
  ['scan', 999, 'expiring_soon_on_scan'],
  ['scan', 1_000, 'expired_on_scan'],
] as const)(
  'The word for a connection that is too old found by the %s at %i ms of 1000 is %s',
  (foundBy, now, word) => {
    expect(tooOld(true, end, now, foundBy)).toBe(word);
  },
);

test('The word for a connection that is too old is the same wherever it is found without a reservoir', () => {
  for (const foundBy of ['checkout', 'return', 'scan'] as const)
    expect(tooOld(false, end, 1_000, foundBy)).toBe('max_lifetime');
});

test('A checkout takes the connection that has been ready for longest, so that all of them are used', () => {
  const world = new VirtualWorld(reservoir(3));
  world.advance(dialMs);
  const first = world.mustTake();
  const second = world.mustTake();
  first.release();
  expect(world.mustTake().socket).not.toBe(first.socket);
  second.release();
  expect(world.mustTake().socket).toBe(first.socket);
});

test('A checkout goes past those inside the guard window and past their end, to one that may be taken', () => {
  const world = filledOnce(3);
  world.stall(5_000);
  // One that is younger than the others.
  const [old] = world.server.sockets;
  world.server.manners.onDial = (dial) => dial.succeed();
  old?.breakDown();
  world.advance(10);
  world.server.manners.onDial = () => {};
  world.stall(3_500);
  const lease = world.mustTake();
  expect(lease.socket.id).toBe(4);
  expect(reasons(world)).toEqual({ broken: 1, insufficient_remaining_lifetime: 2 });
  expect(world.emptyHanded).toBe(0);
});

test('A checkout that finds nothing but old ones finds nothing, which is counted and told once', () => {
  const world = filledOnce(3);
  world.stall(20_000);
  expect(world.take()).toBeUndefined();
  expect(reasons(world)).toEqual({ expired_on_checkout: 3 });
  expect(world.pool.stats().totals.foundEmpty).toBe(1);
  expect(world.toldEmpty).toBe(1);
  expect(world.take()).toBeUndefined();
  expect(world.pool.stats().totals.foundEmpty).toBe(2);
});

test('A checkout has another opened in the place of each that is taken, as far as the limit leaves room', () => {
  const world = new VirtualWorld(reservoir(5, { targetReady: 3 }));
  world.advance(dialMs);
  for (let n = 0; n < 2; n++) world.mustTake();
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ idle: 3, inUse: 2 });
  world.mustTake();
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ idle: 2, inUse: 3, pending: 0 });
});

test('A return inside the guard window, or after the end, is a discard under that word', () => {
  const world = filledOnce(2);
  const [early, late] = [world.mustTake(), world.mustTake()];
  world.advance(8_500);
  early.release();
  world.advance(2_000);
  late.release();
  expect([early.socket.reason, late.socket.reason]).toEqual([
    'insufficient_remaining_lifetime',
    'expired_on_return',
  ]);
});

test('A return of more than are to be ready is a discard, unless a caller waits', () => {
  const world = new VirtualWorld(reservoir(4, { targetReady: 2 }));
  world.advance(dialMs);
  const inUse = [world.mustTake(), world.mustTake()];
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ idle: 2, inUse: 2 });
  inUse[0]?.release();
  expect(reasons(world)).toEqual({ reservoir_full: 1 });
  const others = [world.mustTake(), world.mustTake()];
  const caller = world.ask();
  inUse[1]?.release();
  expect(caller.socket).toBe(inUse[1]?.socket);
  expect(others).toHaveLength(2);
});

test('A return of a younger one is kept where one of those that are ready is to be replaced: it is the replacement', () => {
  const options = reservoir(3, { targetReady: 2, lowWatermark: 1 });
  const world = new VirtualWorld({ ...options, rateLimiter: new TokenBucket({ rate: 1, burst: 3 }) });
  world.advance(3_000);
  const old = [world.mustTake()];
  world.advance(dialMs);
  old.push(world.mustTake());
  const young = world.mustTake();
  for (const lease of old) lease.release();
  // There is room for another now, but it will not come.
  world.server.manners.onDial = () => {};
  world.pool.resize(4);
  world.advance(3_500);
  const marked = old.filter(({ pooled }) => pooled.expiring);
  expect(marked).toHaveLength(1);
  expect(world.pool.counts()).toMatchObject({ idle: 2, pending: 1 });

  young.release();
  expect(young.socket.place).toBe('idle');
  world.advance(1_000);
  expect(marked[0]?.socket.reason).toBe('expiring_soon_on_scan');
  expect(reasons(world)).not.toHaveProperty('reservoir_full');
});

test('A return with an error is a discard under that word, however old it is', () => {
  const world = filledOnce(1);
  const lease = world.mustTake();
  world.advance(20_000);
  lease.release(new Error('bad'));
  expect(lease.socket.reason).toBe('released_with_error');
});

test('The scanner finds within a second connections that a checkout would find too old, and rests where none is due', () => {
  const world = filledOnce(3, { lowWatermark: 3 });
  world.advance(9_500);
  expect(world.pool.idle).toBe(0);
  expect(Object.keys(reasons(world))).toEqual(['expiring_soon_on_scan']);
});

test.each([
  ['with a limiter', { rateLimiter: new TokenBucket({ rate: 10, burst: 100 }) }],
  ['without one', {}],
  ['with any number of dials at once', { dialLimit: Number.POSITIVE_INFINITY }],
])('The scanner looks once a second while nothing ends, %s', (_, options) => {
  const world = new VirtualWorld({ ...options, max: 10, reservoir: true });
  world.advance(5_000);
  const { scans } = countRings(world);
  world.advance(60_000);
  expect(scans()).toBeGreaterThanOrEqual(59);
  expect(scans()).toBeLessThanOrEqual(62);
});

test.each([Number.NaN, 0, -1, 1e-9])(
  'The scanner is not led astray by a limiter that gives its rate as %d',
  (rate) => {
    const options = reservoir(3, { lowWatermark: 3 });
    const world = new VirtualWorld({ ...options, rateLimiter: { take: () => 0, rate } });
    const { scans } = countRings(world);
    world.advance(60_000);
    expect(world.alarm.at).toBeGreaterThan(world.now);
    expect(scans()).toBeLessThan(500);
    expect(world.pool.idle).toBe(3);
  },
);

test('The scanner does not run where there is no reservoir', () => {
  const world = new VirtualWorld({ max: 3, minIdle: 3, idleTimeout: 0, maxLifetime: '1h' });
  world.advance(dialMs);
  const { scans } = countRings(world);
  world.advance(30 * 60_000);
  expect(scans()).toBeLessThanOrEqual(2);
  world.advance(2 * 3_600_000);
  expect(Object.keys(reasons(world))).toEqual(['max_lifetime']);
  expect(world.fills).toEqual([]);
  expect(world.toldEmpty).toBe(0);
  expect(world.pool.stats()).toMatchObject({ reservoir: undefined, leased: 0 });
});

function countRings(world: VirtualWorld): { scans: () => number } {
  let rings = 0;
  const ring = world.ringAlarm.bind(world);
  world.ringAlarm = () => {
    rings++;
    ring();
  };
  return { scans: () => rings };
}

test('The first fill is told when it begins and when the low watermark is reached', () => {
  const world = new VirtualWorld(reservoir(10, { lowWatermark: 9 }));
  world.advance(1_000);
  expect(world.fills).toEqual([
    { kind: 'reservoir', phase: 'started', size: 0, target: 9, failed: 0, elapsedMs: 0 },
    { kind: 'reservoir', phase: 'complete', size: 9, target: 9, failed: 0, elapsedMs: 2 * dialMs },
  ]);
  expect(world.pool.idle).toBe(10);
  expect(world.pool.stats().reservoir).toMatchObject({ lowWatermark: 9, isFilled: true });
});

test('The first fill that takes too long is told, and goes on', () => {
  const options = reservoir(5, { lowWatermark: 5, initialFillTimeout: '2s' });
  const world = new VirtualWorld({ ...options, rateLimiter: new TokenBucket({ rate: 1, burst: 1 }) });
  world.advance(1_500);
  expect(world.pool.stats().reservoir?.isFilled).toBe(false);
  world.advance(1_000);
  expect(world.fills.at(-1)).toMatchObject({ phase: 'timeout', size: 2, target: 5, elapsedMs: 2_000 });
  world.advance(2_000);
  expect(world.pool.idle).toBe(5);
  expect(world.fills).toHaveLength(2);
});

test('The first fill tells how many dials have failed meanwhile', () => {
  const world = new VirtualWorld(
    { ...reservoir(2, { lowWatermark: 2, initialFillTimeout: '5s' }), backoffBase: 100, backoffCap: 100 },
    { manners: () => ({ onDial: (dial) => (dial.number > 4 ? dial.succeedAfter(5) : dial.failAfter(5)) }) },
  );
  world.advance(5_000);
  expect(world.fills.at(-1)).toMatchObject({ phase: 'complete', size: 2, failed: 4 });
});

test('The first fill of none is over at once', () => {
  const world = new VirtualWorld(reservoir(3, { lowWatermark: 0 }));
  expect(world.fills.map(({ phase }) => phase)).toEqual(['started', 'complete']);
});

test('The first fill is not told of any more when the pool is closing', () => {
  const world = new VirtualWorld(reservoir(3, { lowWatermark: 3, initialFillTimeout: '1s' }), {
    manners: silent,
  });
  world.drain();
  world.advance(60_000);
  expect(world.pool.state).toBe('closed');
  expect(world.fills.map(({ phase }) => phase)).toEqual(['started']);
});

test('An early caller waits for the first fill; later ones wait for a moment only', () => {
  const options = reservoir(2, { lowWatermark: 2, initialFillTimeout: '10s', emptyWait: '100ms' });
  const limiter = new TokenBucket({ rate: 1, burst: 1 });
  const world = new VirtualWorld({ ...options, rateLimiter: limiter }, { manners: silent });
  expect(world.pool.usualTimeoutMs).toBe(10_000);
  world.advance(4_000);
  expect(world.pool.usualTimeoutMs).toBe(6_000);
  const early = world.ask(world.pool.usualTimeoutMs);
  world.advance(1_000);
  for (const dial of [...world.server.dials]) dial.succeed();
  expect(early.outcome).toBe('granted');
  world.advance(1_000);
  for (const dial of [...world.server.dials]) dial.succeed();
  expect(world.pool.usualTimeoutMs).toBe(100);

  world.mustTake();
  const late = world.ask(world.pool.usualTimeoutMs);
  world.advance(100);
  expect(late.error).toBeInstanceOf(ReservoirEmptyError);
  expect(late.error?.message).toContain('nothing was ready for 100ms; limit 2: 2 in use, 0 idle');
});

test('The first fill does not shorten what callers say themselves: acquireTimeout stands in for emptyWait', () => {
  const world = new VirtualWorld({ ...reservoir(2), acquireTimeout: '1m' });
  world.advance(100);
  expect(world.pool.usualTimeoutMs).toBe(60_000);
});

test('A caller at an empty reservoir is told why nothing is opened, where that is known', () => {
  const world = new VirtualWorld(
    { ...reservoir(1, { lowWatermark: 0 }), backoffBase: '1m', backoffCap: '1m', breakerThreshold: 9 },
    { manners: () => ({ onDial: (dial) => dial.fail(new Error('no route')) }) },
  );
  const caller = world.ask(world.pool.usualTimeoutMs);
  world.advance(100);
  expect(caller.error).toMatchObject({ code: 'HG_RESERVOIR_EMPTY', cause: new Error('no route') });
});

test('A caller at an empty reservoir is served by a dial that arrives in time, and that is not counted as empty again', () => {
  const world = new VirtualWorld(reservoir(1), { manners: silent });
  expect(world.take()).toBeUndefined();
  const caller = world.ask(world.pool.usualTimeoutMs);
  world.advance(50);
  for (const dial of [...world.server.dials]) dial.succeed();
  expect(caller.outcome).toBe('granted');
  expect(world.pool.stats().totals.foundEmpty).toBe(1);
});

test('A reservoir that is resized keeps as many ready as the new limit leaves room for', () => {
  const world = new VirtualWorld(reservoir(5, { targetReady: 5 }));
  world.advance(dialMs);
  const inUse = world.mustTake();
  world.pool.resize(3);
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ idle: 2, inUse: 1 });
  inUse.release();
  world.pool.resize(5);
  world.advance(dialMs);
  expect(world.pool.idle).toBe(5);
});

/** How often the engine reads something of a connection during a checkout and its return, with `count` ready. */
function reads(count: number): number {
  const world = new VirtualWorld({ max: count, dialLimit: count, reservoir: true });
  world.advance(dialMs);
  expect(world.pool.idle).toBe(count);
  let looks = 0;
  for (const pooled of world.pool.connections()) {
    const { lendUntil } = pooled;
    Object.defineProperty(pooled, 'lendUntil', {
      get: () => {
        looks++;
        return lendUntil;
      },
    });
  }
  const pooled = world.pool.tryTake();
  if (pooled === undefined) throw new Error('Nothing was ready.');
  world.pool.release(pooled, pooled.generation);
  return looks;
}

test('The cost of a checkout does not grow with the number of those that are ready', () => {
  expect(reads(1_000)).toBe(reads(10));
  expect(reads(10)).toBeLessThan(5);
});
