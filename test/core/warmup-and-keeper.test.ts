// Connections that nobody waits for, scene by scene: a warmup, a keeper, and a start that is spread.
import { expect, test } from 'vitest';
import { TokenBucket } from '../../src/core/token-bucket.js';
import { dialMs } from '../support/fake-server.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { outcomes } from './scenes.js';

const half = { next: () => 0.5 };

test('A warmup opens connections up to its size at the start, and tells', () => {
  const world = new VirtualWorld({ max: 10, warmup: { target: 4 } });
  world.advance(1_000);
  expect(world.pool.counts()).toMatchObject({ idle: 4, live: 4 });
  expect(world.fills).toEqual([
    { kind: 'warmup', phase: 'started', size: 0, target: 4, failed: 0, elapsedMs: 0 },
    { kind: 'warmup', phase: 'complete', size: 4, target: 4, failed: 0, elapsedMs: dialMs },
  ]);
});

test('A warmup goes at the speed of the limiter', () => {
  const rateLimiter = new TokenBucket({ rate: 10, burst: 2 });
  const world = new VirtualWorld({ max: 10, warmup: { target: 5 }, rateLimiter });
  world.advance(150);
  expect(world.pool.live).toBe(3);
  world.advance(1_000);
  expect(world.fills.at(-1)).toMatchObject({ phase: 'complete', elapsedMs: 300 + dialMs });
});

test('A warmup tries each connection a few times, and gives up one that can not be opened', () => {
  const world = new VirtualWorld(
    { max: 3, warmup: { target: 3, retries: 1 }, backoffCap: 100 },
    { manners: () => ({ onDial: (dial) => (dial.number > 2 ? dial.failAfter(1) : dial.succeedAfter(1)) }) },
  );
  world.advance(60_000);
  expect(world.fills.at(-1)).toMatchObject({ phase: 'given_up', size: 2, failed: 1 });
  expect(world.server.dialed).toBe(4);
});

test('A warmup is done once: connections that end later are not replaced by it', () => {
  const world = new VirtualWorld({ max: 3, warmup: true });
  world.advance(100);
  for (const socket of [...world.server.sockets]) socket.breakDown();
  world.advance(60_000);
  expect(world.pool.live).toBe(0);
  expect(world.fills).toHaveLength(2);
});

test('The keeper keeps no more than it is told to, and all of it when it may again', () => {
  const world = new VirtualWorld({ max: 5, keeper: { target: 4, perTick: 4 } });
  world.pool.keepAtMost(0);
  world.advance(5_000);
  expect(world.pool.live).toBe(0);
  world.pool.keepAtMost(3);
  world.advance(1_000 + dialMs);
  expect(world.pool.live).toBe(3);
  world.pool.keepAtMost(Number.POSITIVE_INFINITY);
  world.advance(1_000 + dialMs);
  expect(world.pool.live).toBe(4);
});

test('The keeper opens a few of those that are missing each time that it looks', () => {
  const world = new VirtualWorld({ max: 5, keeper: { target: 5, perTick: 2 } });
  const sizes: number[] = [];
  for (let second = 0; second < 4; second++) {
    world.advance(1_000 + (second === 0 ? dialMs : 0));
    sizes.push(world.pool.live);
  }
  expect(sizes).toEqual([2, 4, 5, 5]);
  expect(world.topUps).toEqual([
    { count: 2, size: 0, target: 5 },
    { count: 2, size: 2, target: 5 },
    { count: 1, size: 4, target: 5 },
  ]);
  expect(world.pool.stats().totals).toMatchObject({ toppedUp: 5, topUpsFailed: 0 });
});

test('The keeper goes on looking for as long as the pool lives, in the face of failures', () => {
  const world = new VirtualWorld(
    { max: 5, keeper: { target: 2, interval: '1s' }, backoffCap: 100 },
    { manners: () => ({ onDial: (dial) => (dial.number < 4 ? dial.failAfter(1) : dial.succeedAfter(1)) }) },
  );
  world.advance(10_000);
  expect(world.pool.live).toBe(2);
  expect(world.pool.stats().totals).toMatchObject({ toppedUp: 2, topUpsFailed: 3 });
  for (const socket of [...world.server.sockets]) socket.breakDown();
  world.advance(3_000);
  expect(world.pool.live).toBe(2);
});

test('The keeper begins when the warmup is over, and neither opens nor tells anything while the pool is paused or closing', () => {
  const world = new VirtualWorld({ max: 4, warmup: { target: 2 }, keeper: { target: 3 } });
  world.pool.pause();
  world.advance(5_000);
  expect([world.server.dialed, world.topUps.length]).toEqual([2, 0]);
  world.pool.resume();
  world.advance(1_500);
  expect(world.pool.live).toBe(3);
  const lease = world.mustTake();
  world.drain();
  world.advance(5_000);
  expect(world.topUps).toHaveLength(1);
  lease.release();
  world.advance(10);
  expect(world.pool.state).toBe('closed');
});

test('The keeper has a dial repeated that asked for a second chance', () => {
  const world = new VirtualWorld(
    { max: 1, keeper: true },
    {
      manners: () => ({ onDial: (dial) => (dial.number === 1 ? dial.failForNow() : dial.succeedAfter(1)) }),
    },
  );
  world.advance(1_100);
  expect(world.pool.live).toBe(1);
});

test('A start that is spread lets spares wait for the moment that was drawn, and callers not at all', () => {
  const world = new VirtualWorld({ max: 5, minIdle: 2, startJitter: '10s' }, { random: half });
  world.advance(2_000);
  expect(world.server.dialed).toBe(0);
  const caller = world.ask();
  world.advance(dialMs);
  expect(caller.outcome).toBe('granted');
  world.advance(2_980);
  expect(world.server.dialed).toBe(1);
  world.advance(100);
  expect(world.pool.counts()).toMatchObject({ idle: 2, inUse: 1 });
});

test.each(['warmup', 'keeper'])('A start that is spread lets the %s wait as well', (what) => {
  const world = new VirtualWorld({ max: 2, [what]: true, startJitter: '10s' }, { random: half });
  world.advance(4_999);
  expect(world.server.dialed).toBe(0);
  world.advance(5_000);
  expect(world.pool.live).toBe(2);
});

test('A start that is spread lets the first fill of a reservoir wait, whose time runs on', () => {
  const world = new VirtualWorld(
    { max: 2, reservoir: { initialFillTimeout: '3s' }, startJitter: '10s' },
    { random: half },
  );
  world.advance(4_999);
  expect(world.server.dialed).toBe(0);
  expect(world.fills.map(({ phase }) => phase)).toEqual(['started', 'timeout']);
  world.advance(100);
  expect(world.pool.idle).toBe(2);
});

test('A start that is spread ends once, whatever the pool is doing then', () => {
  const world = new VirtualWorld({ max: 1, minIdle: 1, startJitter: '10s' }, { random: half });
  world.pool.pause();
  world.advance(60_000);
  expect(world.server.dialed).toBe(0);
  world.pool.resume();
  world.advance(dialMs);
  expect(world.pool.idle).toBe(1);
});

test('Without leases, a limiter, a warmup, a keeper or a spread start nothing of them happens: one caller is one dial, and no alarm is set for the rest', () => {
  const world = new VirtualWorld({ max: 3, idleTimeout: 0, maxLifetime: 0 });
  const callers = world.askMany(2);
  world.advance(dialMs);
  expect(outcomes(callers)).toBe('granted granted');
  for (const caller of callers) caller.release();
  world.advance(60_000);
  expect(world.server.dialed).toBe(2);
  expect(world.alarm.isArmed).toBe(false);
  expect(world.pool.stats()).toMatchObject({ leased: 0, reservoir: undefined });
  expect(world.fills).toEqual([]);
  expect(world.topUps).toEqual([]);
});
