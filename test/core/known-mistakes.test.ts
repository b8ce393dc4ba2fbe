// Every mistake that other pools are known for, each as a sentence about what happens here instead.
import { expect, test } from 'vitest';
import { AcquireTimeoutError, ConnectFailedError, PoolClosedError } from '../../src/core/errors.js';
import { Ledger } from '../../src/core/ledger.js';
import { drawLifetime } from '../../src/core/lifetime.js';
import { InvariantError } from '../../src/kernel/errors.js';
import { SeededRandom } from '../../src/kernel/random.js';
import { dialMs, type FakeSocket } from '../support/fake-server.js';
import { VirtualWorld } from '../support/virtual-world.js';

const minute = 60_000;

test('Mistakes of pools in general 1. the limit is physical: a slot is free when the socket is gone, not when its close was decided', () => {
  const world = new VirtualWorld({ max: 1, closeTimeout: '5s' }, { manners: () => ({ onClose: () => {} }) });
  const first = world.ask();
  const second = world.ask();
  world.advance(dialMs);
  first.release(new Error('no good'));

  expect(world.pool.counts()).toMatchObject({ live: 0, closing: 1, pending: 0, waiting: 1 });
  world.advance(4_000);
  expect(world.server.dialed).toBe(1);

  // A close that hangs does not starve the pool either: after its deadline the socket is destroyed.
  world.advance(1_000);
  expect(first.socket.place).toBe('gone');
  world.advance(dialMs);
  expect(second.outcome).toBe('granted');
  expect(world.server.peak).toBe(1);
});

test('Mistakes of pools in general 2. growth on demand is no storm: fifty callers at once start as many dials as the dial limit, not fifty', () => {
  const world = new VirtualWorld({ max: 100, dialLimit: 4 });
  const callers = world.askMany(50);
  expect(world.server.opening).toBe(4);
  let most = 0;
  for (let waited = 0; waited < 20; waited++) {
    world.advance(dialMs);
    most = Math.max(most, world.server.opening);
  }
  expect(most).toBe(4);
  expect(callers.every((caller) => caller.outcome === 'granted')).toBe(true);
});

test('Mistakes of pools in general 3. an approval does not leak: a dial that fails, hangs or is not wanted any more gives its slot back', () => {
  const world = new VirtualWorld(
    { max: 3, dialTimeout: 100, closeTimeout: 50 },
    { manners: () => ({ onDial: () => {}, onAbandon: () => {} }) },
  );
  world.askMany(3, 1_000);
  const [fails, hangs, unwanted] = [...world.server.dials];
  fails?.fail();
  expect(hangs?.state).toBe('opening');
  world.advance(2_000);
  const drained = world.drain();
  world.advance(100);
  expect(unwanted?.state).toBe('lost');
  expect(world.pool.counts()).toMatchObject({ pending: 0, live: 0, closing: 0, waiting: 0 });
  expect(drained.times).toBe(1);
});

test('Mistakes of pools in general 3. a failed dial wakes the caller that waits for it', () => {
  let attempts = 0;
  const world = new VirtualWorld(
    { max: 1, backoffBase: 100 },
    { manners: () => ({ onDial: (dial) => (++attempts < 3 ? dial.failAfter(5) : dial.succeedAfter(5)) }) },
  );
  const caller = world.ask();
  world.advance(1_000);
  expect(attempts).toBe(3);
  expect(caller.outcome).toBe('granted');
});

test('Mistakes of pools in general 4. idle reaping stops at minIdle instead of closing all and opening them anew', () => {
  const world = new VirtualWorld({ max: 5, minIdle: 2, idleTimeout: '1m', maxLifetime: 0 });
  const callers = world.askMany(5);
  world.advance(dialMs);
  for (const caller of callers) caller.release();
  const dialsBefore = world.server.dialed;
  world.advance(60 * minute);
  expect(world.pool.counts()).toMatchObject({ idle: 2, live: 2 });
  expect(world.server.discards.get('idle_timeout')).toBe(3);
  expect(world.server.dialed).toBe(dialsBefore);
});

test('Mistakes of pools in general 5. jitter is real: it spreads over its whole width, whatever the lifetime, and is drawn once', () => {
  const random = new SeededRandom(5);
  // One hour, and 2^32 ns, which is where an implementation in 32 bits breaks.
  for (const maxLifetime of [3_600_000, 2 ** 32 / 1_000_000]) {
    const policy = { maxLifetime, maxLifetimeJitter: maxLifetime / 5, guardWindow: 0 };
    const lives = Array.from({ length: 2_000 }, () => drawLifetime(policy, random) / maxLifetime);
    expect(Math.min(...lives)).toBeGreaterThanOrEqual(0.9);
    expect(Math.min(...lives)).toBeLessThan(0.905);
    expect(Math.max(...lives)).toBeLessThanOrEqual(1.1);
    expect(Math.max(...lives)).toBeGreaterThan(1.095);
  }

  const world = new VirtualWorld({ max: 1, maxLifetime: '1h' });
  const ends = new Set<number>();
  world.ask();
  world.advance(dialMs);
  for (const lease of world.leases) lease.release();
  for (let use = 0; use < 50; use++) {
    const lease = world.mustTake();
    ends.add(lease.pooled.expiresAt);
    lease.release();
  }
  expect(ends.size).toBe(1);
});

test('Mistakes of pools in general 5. a lifetime given as a number has jitter as well', () => {
  const world = new VirtualWorld({ max: 8, minIdle: 8, maxLifetime: 100_000 });
  world.advance(dialMs);
  const ends = new Set([...world.pool.connections()].map((connection) => connection.expiresAt));
  expect(ends.size).toBe(8);
});

test('Mistakes of pools in general 6. a shrinking pool makes the others wait: no connection is opened before enough are closed', () => {
  const world = new VirtualWorld({ max: 4 });
  const holders = world.askMany(4);
  world.advance(dialMs);
  world.pool.resize(2);
  const waiting = world.ask();
  holders[0]?.release();
  holders[1]?.release();
  world.advance(minute / 2);
  // Two are closed, two are in use: the limit is reached, not yet passed, and the caller goes on waiting.
  expect(world.pool.counts()).toMatchObject({ inUse: 2, closing: 0, pending: 0, waiting: 1 });
  holders[2]?.release();
  expect(waiting.outcome).toBe('granted');
  expect(world.server.dialed).toBe(4);
});

test('Mistakes of pools in general 6. a limit of zero means "in the queue", not "closed"', () => {
  const world = new VirtualWorld({ max: 2 });
  world.pool.resize(0);
  const caller = world.ask();
  world.advance(minute);
  expect(caller.outcome).toBe('waiting');
  world.pool.resize(1);
  world.advance(dialMs);
  expect(caller.outcome).toBe('granted');
});

test('Mistakes of pools in general 7. a timeout leaves no ghost: a dial whose caller is gone becomes a spare, counted all the time', () => {
  const world = new VirtualWorld(
    { max: 1 },
    { manners: () => ({ onDial: (dial) => dial.succeedAfter(50) }) },
  );
  const impatient = world.ask(20);
  world.advance(20);
  expect(impatient.error).toBeInstanceOf(AcquireTimeoutError);
  expect(world.pool.pending).toBe(1);
  world.advance(30);
  expect(world.pool.counts()).toMatchObject({ idle: 1, pending: 0 });
  expect(world.server.sockets.size).toBe(1);
  world.mustTake();
});

test('Mistakes of pools in general 7. a dial that was given up holds its slot until it answers, and what it opens after that is closed', () => {
  const world = new VirtualWorld(
    { max: 1, dialTimeout: 100, closeTimeout: 50, backoffBase: 1, backoffCap: 1 },
    { manners: () => ({ onDial: () => {}, onAbandon: () => {} }) },
  );
  const caller = world.ask();
  const [ghost] = world.server.dials;
  world.advance(120);
  expect(ghost?.state).toBe('abandoned');
  expect(world.pool.counts()).toMatchObject({ pending: 0, closing: 1 });
  ghost?.succeed();
  expect(ghost?.socket).toMatchObject({ reason: 'late_dial', place: 'closing' });
  expect(caller.outcome).toBe('waiting');
  world.advance(10);
  expect(ghost?.socket?.place).toBe('gone');
  expect(world.server.peak).toBe(1);
});

test('Mistakes of pools in general 8. no waiter is stranded: draining answers every one in the queue', () => {
  const world = new VirtualWorld({ max: 2, acquireTimeout: 0 });
  const holders = world.askMany(2);
  world.advance(dialMs);
  const queue = world.askMany(10);
  world.drain(1_000);
  holders[0]?.release();
  expect(queue[0]?.outcome).toBe('granted');
  world.advance(1_000);
  for (const caller of queue.slice(1)) expect(caller.error).toBeInstanceOf(PoolClosedError);
  expect(world.pool.state).toBe('closed');
});

test('Mistakes of pools in general 8. no waiter is stranded: when the connection it would have got dies, another is opened', () => {
  const world = new VirtualWorld({ max: 1 });
  const holder = world.ask();
  world.advance(dialMs);
  const waiting = world.ask();
  holder.socket.breakDown();
  expect(waiting.outcome).toBe('waiting');
  holder.release();
  world.advance(1 + dialMs);
  expect(waiting.outcome).toBe('granted');
  expect(waiting.socket).not.toBe(holder.lease?.socket);
});

test('Mistakes of pools in general 9. a refusing server is not stormed: a minute of it sees a few dials, not thousands', () => {
  const world = new VirtualWorld({ max: 25 }, { manners: () => ({ onDial: (dial) => dial.fail() }) });
  const callers = [];
  for (let second = 0; second < 60; second++) {
    callers.push(...world.askMany(25, 30_000));
    world.advance(1_000);
  }
  expect(world.server.dialed).toBeLessThan(60);
  expect(callers.filter((caller) => caller.error instanceof ConnectFailedError).length).toBeGreaterThan(
    1_000,
  );
});

test('Mistakes of pools in general 10. time is monotonic and handed in: a clock that stands still does no harm', () => {
  const world = new VirtualWorld({
    max: 2,
    minIdle: 1,
    idleTimeout: 100,
    maxLifetime: 1_000,
    keepalive: 50,
  });
  world.advance(dialMs);
  for (let turn = 0; turn < 1_000; turn++) {
    world.advance(0);
    world.mustTake().release();
  }
  expect(world.now).toBe(1_000 + dialMs);
  expect(world.server.sockets.size).toBeLessThanOrEqual(2);
  expect(world.server.closed).toBe(0);
});

test("bb8's weak points (a) a dial that never answers does not keep its reservation for ever", () => {
  const world = new VirtualWorld(
    { max: 1, dialTimeout: 100, closeTimeout: 50 },
    { manners: () => ({ onDial: (dial) => dial.number > 1 && dial.succeedAfter(1), onAbandon: () => {} }) },
  );
  const caller = world.ask();
  world.advance(100 + 50 + 200);
  expect(caller.outcome).toBe('granted');
});

test("bb8's weak points (a) an approval that ends twice is a loud error, not a wrong count", () => {
  const ledger = new Ledger(1);
  const approval = ledger.approve();
  approval?.rollback();
  expect(() => approval?.rollback()).toThrow(InvariantError);
  expect(() => approval?.commit()).toThrow(InvariantError);
  expect(ledger.total).toBe(0);
});

test("bb8's weak points (b) a failed connect is an event: the next attempt begins without another request", () => {
  const world = new VirtualWorld(
    { max: 1, backoffBase: 10 },
    { manners: () => ({ onDial: (dial) => (dial.number === 1 ? dial.fail() : dial.succeed()) }) },
  );
  const caller = world.ask();
  world.advance(10);
  expect(caller.outcome).toBe('granted');
});

test("bb8's weak points (c) a herd of callers is limited by the dial limit and by the rate limiter", () => {
  const permits: number[] = [];
  const rateLimiter = {
    take: (now: number) => {
      if (permits.length === 3) return 1_000;
      permits.push(now);
      return 0;
    },
  };
  const world = new VirtualWorld({ max: 100, dialLimit: 2, rateLimiter });
  world.askMany(100);
  expect(world.server.opening).toBe(2);
  world.advance(10 * dialMs);
  expect(world.server.dialed).toBe(3);
});

test("bb8's weak points (d) a newcomer does not overtake waiting callers", () => {
  const world = new VirtualWorld({ max: 1 });
  const holder = world.ask();
  world.advance(dialMs);
  const first = world.ask();
  holder.release();
  expect(world.take()).toBeUndefined();
  const late = world.ask();
  expect(first.outcome).toBe('granted');
  first.release();
  expect(late.outcome).toBe('granted');
});

test("bb8's weak points (e) a reaped pool never dips below minIdle: the replacement of an old spare comes before its end", () => {
  const world = new VirtualWorld({ max: 4, minIdle: 2, maxLifetime: '1m', guardWindow: '1s' });
  world.advance(dialMs);
  for (let tick = 0; tick < 6_000; tick++) {
    world.advance(100);
    expect(world.pool.idle).toBeGreaterThanOrEqual(2);
  }
  expect(world.server.discards.get('max_lifetime')).toBeGreaterThan(10);
});

test("bb8's weak points (f) the time in the queue is counted from the first moment, through every retry", () => {
  const world = new VirtualWorld(
    { max: 1, backoffBase: 100, breakerThreshold: 50 },
    {
      manners: () => ({
        onDial: (dial) => (dial.number <= 3 ? dial.failAfter(40) : dial.succeedAfter(40)),
      }),
    },
  );
  const start = world.now;
  const caller = world.ask();
  while (caller.outcome === 'waiting') world.advance(1);
  const { waited, waitedMs } = world.pool.stats().totals;
  expect(waited).toBe(1);
  expect(waitedMs).toBeGreaterThanOrEqual(160);
  expect(Math.abs(waitedMs - (world.now - start))).toBeLessThan(1);
});

test("bb8's weak points (g) a connection that comes back wakes only the caller that gets it", () => {
  const world = new VirtualWorld({ max: 1 });
  const holder = world.ask();
  world.advance(dialMs);
  const queue = world.askMany(100);
  const socket: FakeSocket = holder.socket;
  holder.release();
  expect(queue.map((caller) => caller.outcome).filter((outcome) => outcome === 'granted')).toHaveLength(1);
  expect(queue[0]?.socket).toBe(socket);
  expect(world.pool.waiting).toBe(99);
});

test('What the approval seed leaves open 39. growth opens as many as callers wait for and none is on its way to, within the dial limit', () => {
  const world = new VirtualWorld({ max: 20, dialLimit: 5 });
  world.askMany(3);
  expect(world.server.opening).toBe(3);
  world.askMany(10);
  expect(world.server.opening).toBe(5);
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ inUse: 5, pending: 5, waiting: 8 });
});

test('What the approval seed leaves open 40. an approval is reserved when it is handed out, and there is none for a batch that could leak the rest', () => {
  const ledger = new Ledger(10);
  for (let granted = 0; granted < 3; granted++) ledger.approve()?.commit();
  expect(ledger).toMatchObject({ pending: 0, live: 3, room: 7 });
});

test('What the approval seed leaves open 41. with the breaker open, a caller whom nothing can serve is told at once, with the cause', () => {
  const refused = new Error('connect ECONNREFUSED');
  const world = new VirtualWorld(
    { max: 3, breakerThreshold: 3, backoffBase: 1_000, dialLimit: 1 },
    { manners: () => ({ onDial: (dial) => dial.failAfter(1, refused) }), random: { next: () => 0.5 } },
  );
  const early = world.askMany(4);
  // The delays are 500 ms, then 1 s; the third failure opens the breaker for 2 s.
  world.advance(2_000);
  for (const caller of early) {
    expect(caller.error).toBeInstanceOf(ConnectFailedError);
    expect(caller.error).toMatchObject({ attempts: 3, cause: refused });
  }
  const now = world.ask();
  expect(now.error).toBeInstanceOf(ConnectFailedError);
  expect(now.error?.message).toContain('connect ECONNREFUSED');
});

test('What the approval seed leaves open 42. at the limit, where there is no room to make before breaking, an old spare is retired and then replaced', () => {
  const world = new VirtualWorld({
    max: 2,
    minIdle: 2,
    maxLifetime: '1m',
    maxLifetimeJitter: 0,
    guardWindow: '5s',
  });
  world.advance(minute + dialMs + 1 + dialMs);
  expect(world.server.discards.get('max_lifetime')).toBe(2);
  expect(world.pool.counts()).toMatchObject({ idle: 2, live: 2 });
  expect(world.server.peak).toBe(2);
});

test('What the approval seed leaves open 43. minIdle is best effort below max, and never pushes past it', () => {
  const world = new VirtualWorld({ max: 3, minIdle: 2 });
  world.advance(dialMs);
  world.mustTake();
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ inUse: 1, idle: 2 });
  world.mustTake();
  world.mustTake();
  world.advance(minute);
  expect(world.pool.counts()).toMatchObject({ inUse: 3, idle: 0, pending: 0 });
  expect(world.server.peak).toBe(3);
});
