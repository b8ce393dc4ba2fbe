// How connections begin and end in the engine, and what happens when they fail, in virtual time.
import { expect, test } from 'vitest';
import { ConnectFailedError, DialTimeoutError } from '../../src/core/errors.js';
import { discardReasons } from '../../src/core/reasons.js';
import { dialMs, type FakeSocket } from '../support/fake-server.js';
import { type Caller, VirtualWorld } from '../support/virtual-world.js';
import { minute, outcomes, reasons, silent, withIdle } from './scenes.js';

test('Retirement closes connections that were idle for too long, down to minIdle', () => {
  const world = withIdle(4, { max: 4, minIdle: 1, idleTimeout: '30s', maxLifetime: 0 });
  world.advance(29_999);
  expect(world.pool.idle).toBe(4);
  world.advance(2);
  expect(world.pool.idle).toBe(1);
  expect(reasons(world)).toEqual({ idle_timeout: 3 });
});

test('Retirement leaves the last ones open where a floor says so, however long they are idle', () => {
  const world = withIdle(4, { max: 4, idleFloor: 2, idleTimeout: '30s', maxLifetime: 0 });
  world.advance(10 * minute);
  expect(world.pool.live).toBe(2);
  expect(world.server.dialed).toBe(4);
});

test('Retirement closes these, too, once fewer are to be kept', () => {
  const world = withIdle(4, { max: 4, idleFloor: 2, idleTimeout: '30s', maxLifetime: 0 });
  world.advance(10 * minute);
  world.pool.keepAtMost(1);
  world.advance(1);
  expect(world.pool.live).toBe(1);
  world.pool.keepAtMost(0);
  world.advance(1);
  expect(world.pool.live).toBe(0);
});

test('Retirement never closes a connection in use for idleness', () => {
  const world = withIdle(1, { max: 1, idleTimeout: '30s', maxLifetime: 0 });
  const lease = world.mustTake();
  world.advance(10 * minute);
  expect(lease.socket.place).toBe('in_use');
});

test('Retirement replaces an old spare before its end when there is room: make before break', () => {
  const policy = {
    max: 2,
    minIdle: 1,
    maxLifetime: '1m',
    maxLifetimeJitter: 0,
    guardWindow: '5s',
  } as const;
  const world = new VirtualWorld(policy);
  world.advance(dialMs + 55_000);
  expect(world.pool.counts()).toMatchObject({ idle: 1, pending: 1 });
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ idle: 2, closing: 0 });
  world.advance(5_000);
  expect(world.pool.counts()).toMatchObject({ idle: 1 });
  expect(reasons(world)).toEqual({ max_lifetime: 1 });
});

test('Retirement closes an old spare and then opens the next when there is no room: break before make', () => {
  const policy = {
    max: 1,
    minIdle: 1,
    maxLifetime: '1m',
    maxLifetimeJitter: 0,
    guardWindow: '5s',
  } as const;
  const world = new VirtualWorld(policy);
  world.advance(dialMs + minute);
  expect(world.pool.counts()).toMatchObject({ idle: 0, closing: 1, pending: 0 });
  world.advance(1);
  expect(world.pool.counts()).toMatchObject({ closing: 0, pending: 1 });
  expect(world.server.peak).toBe(1);
});

test('Retirement lets a borrower finish with a connection that reached its end, and closes it when it comes back', () => {
  const world = withIdle(1, { max: 1, maxLifetime: '1m', maxLifetimeJitter: 0 });
  const lease = world.mustTake();
  world.advance(5 * minute);
  expect(lease.socket.place).toBe('in_use');
  lease.release();
  expect(lease.socket.reason).toBe('max_lifetime');
});

test('Retirement closes in time a connection that is released in the very millisecond of its end', () => {
  const world = withIdle(1, { max: 1, maxLifetime: '1m', maxLifetimeJitter: 0, idleTimeout: 0 });
  world.alarm.granularityMs = 1;
  const lease = world.mustTake();
  world.advance(minute - 0.5);
  world.ringAlarm();
  lease.release();
  world.advance(1);
  expect(lease.socket.reason).toBe('max_lifetime');
});

test('Retirement never lends a connection past its end, even when the alarm is late', () => {
  const world = withIdle(2, { max: 2, maxLifetime: '1m', maxLifetimeJitter: 0 });
  world.stall(2 * minute);
  expect(world.take()).toBeUndefined();
  expect(reasons(world)).toEqual({ max_lifetime: 2 });
});

test('Retirement spreads the ends of connections that were opened together', () => {
  const world = new VirtualWorld({
    max: 50,
    minIdle: 50,
    dialLimit: 50,
    maxLifetime: '10m',
    maxLifetimeJitter: '2m',
  });
  world.advance(dialMs);
  const ends = [...world.pool.connections()].map((connection) => connection.expiresAt - connection.bornAt);
  expect(Math.min(...ends)).toBeGreaterThanOrEqual(9 * minute);
  expect(Math.max(...ends)).toBeLessThanOrEqual(11 * minute);
  expect(Math.max(...ends) - Math.min(...ends)).toBeGreaterThan(minute);
});

test('Retirement closes a connection that was used as often as it may', () => {
  const world = withIdle(1, { max: 1, maxUses: 3 });
  world.mustTake().release();
  const last = world.mustTake();
  last.release();
  expect(last.socket.reason).toBe('max_uses');
  const next = world.ask();
  world.advance(1 + dialMs);
  expect(next.socket.id).toBe(2);
});

test('Retirement closes connections that are released with an error, or broke while in use', () => {
  const world = withIdle(2, { max: 2 });
  const [bad, broken] = [world.mustTake(), world.mustTake()];
  bad.release(new Error('protocol out of step'));
  broken.socket.breakDown();
  expect(broken.socket.place).toBe('in_use');
  broken.release();
  expect([bad.socket.reason, broken.socket.reason]).toEqual(['released_with_error', 'broken']);
});

test('Retirement closes an idle connection that breaks, at once, and opens another where one is wanted', () => {
  const world = new VirtualWorld({ max: 2, minIdle: 1 });
  world.advance(dialMs);
  const [socket] = world.server.sockets as unknown as [FakeSocket];
  socket.breakDown();
  expect(socket.reason).toBe('broken');
  expect(world.pool.counts()).toMatchObject({ idle: 0, closing: 1, pending: 1 });
});

test('Retirement gives every discard one reason, and counts it under that one alone', () => {
  const world = withIdle(1, { max: 1 });
  world.mustTake().release('anything but undefined is an error');
  const none = Object.fromEntries(discardReasons.map((reason) => [reason, 0]));
  expect(world.pool.stats().totals.discarded).toEqual({ ...none, released_with_error: 1 });
});

test('Closing is given a deadline, then the socket is destroyed, and the slot counts until then', () => {
  const world = new VirtualWorld({ max: 1, closeTimeout: '5s' }, { manners: () => ({ onClose: () => {} }) });
  const first = world.ask();
  world.advance(dialMs);
  first.release(new Error('bad'));
  world.advance(4_999);
  expect(world.pool.counts()).toMatchObject({ closing: 1, live: 0 });
  world.advance(1);
  expect(first.socket.place).toBe('gone');
  expect(world.pool.counts()).toMatchObject({ closing: 0 });
  // The close answers yet, when nobody waits for it any more.
  first.socket.finishClosing();
  expect(world.pool.stats().totals.closed).toBe(1);
});

test('Closing does not wait at all where the time for it is 0', () => {
  const world = new VirtualWorld({ max: 1, closeTimeout: 0 }, { manners: () => ({ onClose: () => {} }) });
  const first = world.ask();
  world.advance(dialMs);
  first.release(new Error('bad'));
  world.advance(0);
  expect(first.socket.place).toBe('gone');
  expect(world.pool.counts()).toMatchObject({ closing: 0 });
});

test('Checking asks a connection that was idle for too long before a checkout, and hands it out if it answers', () => {
  const world = withIdle(1, { max: 1, checkAfterIdle: '10s' });
  world.advance(10_001);
  expect(world.take()).toBeUndefined();
  expect(world.pool.counts()).toMatchObject({ checking: 1, live: 1 });
  const caller = world.ask();
  world.advance(1);
  expect(caller.socket.id).toBe(1);
  expect(world.server.dialed).toBe(1);
});

test('Checking lends without a check what worked a moment ago', () => {
  const world = withIdle(1, { max: 1, checkAfterIdle: '10s' });
  world.advance(9_999);
  expect(world.take()?.socket.id).toBe(1);
});

test('Checking discards what fails its check, and opens another for the caller', () => {
  const unwell = (world: VirtualWorld) => ({
    onCheck: (socket: FakeSocket) =>
      world.time.plan(world.now + 1, () => socket.answerCheck(new Error('no'))),
  });
  const world = new VirtualWorld({ max: 1, checkAfterIdle: '10s' }, { manners: unwell });
  world.ask().reaction = undefined;
  world.advance(dialMs);
  for (const lease of world.leases) lease.release();
  world.advance(11_000);
  const caller = world.ask();
  world.advance(2 + dialMs);
  expect(caller.socket.id).toBe(2);
  expect(reasons(world)).toEqual({ failed_check: 1 });
});

test('Checking checks as many as there are callers for the outcome, and not all that are idle', () => {
  const world = withIdle(5, { max: 5, checkAfterIdle: '10s' });
  world.advance(11_000);
  world.take();
  world.take();
  expect(world.pool.counts()).toMatchObject({ checking: 1, idle: 4 });
  world.askMany(3);
  expect(world.pool.counts()).toMatchObject({ checking: 3, idle: 2, pending: 0 });
});

test('Checking gives a check that hangs its time, and then discards the connection', () => {
  const world = new VirtualWorld(
    { max: 2, checkAfterIdle: '10s', checkTimeout: '2s' },
    { manners: () => ({ onCheck: () => {} }) },
  );
  const first = world.ask();
  world.advance(dialMs);
  first.release();
  world.advance(11_000);
  expect(world.take()).toBeUndefined();
  world.advance(1_999);
  expect(first.socket.place).toBe('checking');
  world.advance(1);
  expect(first.socket.reason).toBe('failed_check');
});

test('Checking lends a fresh one at once while another is being checked', () => {
  const world = withIdle(3, { max: 3, checkAfterIdle: '10s', idleOrder: 'fifo' });
  const fresh = world.mustTake();
  world.advance(11_000);
  fresh.release();
  expect(world.take()?.socket).toBe(fresh.socket);
  expect(world.pool.counts().checking).toBe(1);
});

test('Checking keeps idle connections alive at least as often as it was told to, and each keeps its place', () => {
  const world = withIdle(3, { max: 3, keepalive: '1m', idleTimeout: 0, maxLifetime: 0 });
  world.advance(30_000);
  const later = world.mustTake();
  later.release();
  let longest = 0;
  for (let second = 0; second < 600; second++) {
    world.advance(1_000);
    for (const connection of world.pool.connections())
      longest = Math.max(longest, world.now - connection.aliveAt);
  }
  expect(longest).toBeLessThanOrEqual(minute);
  expect(world.mustTake().socket).toBe(later.socket);
  expect(world.server.closed).toBe(0);
});

test('Dials have a deadline; what answers after it is closed, never handed out and never leaked', () => {
  const world = new VirtualWorld(
    { max: 2, dialTimeout: '1s', closeTimeout: '5s', onDialFailure: 'reject' },
    { manners: () => ({ onDial: () => {}, onAbandon: () => {} }) },
  );
  const first = world.ask();
  const [dial] = world.server.dials;
  world.advance(1_000);
  expect(first.error).toBeInstanceOf(DialTimeoutError);
  const second = world.ask();
  dial?.succeed();
  expect(second.outcome).toBe('waiting');
  expect(dial?.socket?.reason).toBe('late_dial');
  world.advance(1);
  expect(world.server.sockets.size).toBe(0);
  expect(world.pool.counts()).toMatchObject({ pending: 1, closing: 0 });
});

test('Dials that never answer are counted until it is clear that they will not, and not longer', () => {
  const world = new VirtualWorld(
    { max: 1, dialTimeout: '1s', closeTimeout: '5s', backoffBase: 1, backoffCap: 1 },
    { manners: () => ({ onDial: () => {}, onAbandon: () => {} }) },
  );
  world.ask();
  const [dial] = world.server.dials;
  world.advance(5_999);
  expect(world.server.dialed).toBe(1);
  expect(world.pool.counts().closing).toBe(1);
  world.advance(2);
  expect(world.server.dialed).toBe(2);
  // And should it answer even then, it is destroyed on the spot.
  dial?.succeed();
  expect(dial?.socket?.place).toBe('gone');
  expect(world.pool.counts()).toMatchObject({ pending: 1, closing: 0, live: 0 });
});

test('Dials that fail belong to the caller for whom they were made, where failures are rejected', () => {
  const world = new VirtualWorld({ max: 5, onDialFailure: 'reject' }, { manners: silent });
  const [first, second] = world.askMany(2) as [Caller, Caller];
  const [dialOfFirst, dialOfSecond] = [...world.server.dials];
  const [one, two] = [new Error('one'), new Error('two')];
  dialOfSecond?.fail(two);
  expect([first.error, second.error]).toEqual([undefined, two]);
  dialOfFirst?.fail(one);
  expect(first.error).toBe(one);
  expect(world.pool.counts()).toMatchObject({ pending: 0, waiting: 0 });
});

test('Dials that fail are repeated after a growing delay, where failures are retried', () => {
  const world = new VirtualWorld(
    { max: 1, backoffBase: 100, backoffCap: 10_000, breakerThreshold: 100 },
    { manners: () => ({ onDial: (dial) => dial.fail() }), random: { next: () => 0.999 } },
  );
  world.ask();
  const counts = [100, 200, 400, 800].map((delay) => {
    world.advance(delay);
    return world.server.dialed;
  });
  expect(counts).toEqual([2, 3, 4, 5]);
});

const failing = { max: 4, breakerThreshold: 3, backoffBase: '1s', backoffCap: '1s', dialLimit: 4 } as const;
const half = { next: () => 0.5 };

test('The breaker opens after the failures in a row, probes with one dial at a time, and closes with a success', () => {
  let isDown = true;
  const world = new VirtualWorld(failing, {
    manners: () => ({ onDial: (dial) => (isDown ? dial.failAfter(1) : dial.succeedAfter(1)) }),
    random: half,
  });
  world.askMany(4);
  world.advance(1);
  expect(world.pool.stats().breaker).toBe('open');
  expect(world.server.dialed).toBe(4);
  const waiting = world.ask();
  expect(waiting.error).toBeInstanceOf(ConnectFailedError);
  world.advance(1_000);
  expect(world.pool.stats().breaker).toBe('half_open');
  const probing = world.askMany(4);
  expect(world.server.opening).toBe(1);
  isDown = false;
  world.advance(1);
  expect(probing.every((caller) => caller.error instanceof ConnectFailedError)).toBe(true);
  world.advance(1_000);
  const served = world.askMany(4);
  world.advance(2);
  expect(world.pool.stats().breaker).toBe('closed');
  expect(outcomes(served)).toBe('granted granted granted granted');
});

test('The breaker tells a caller the real error with the number of attempts, at once', () => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432');
  const world = new VirtualWorld(failing, {
    manners: () => ({ onDial: (dial) => dial.fail(refused) }),
    random: half,
  });
  const caller = world.ask();
  world.advance(2_000);
  expect(caller.error).toMatchObject({
    code: 'HG_CONNECT_FAILED',
    attempts: 3,
    retryAfterMs: 500,
    cause: refused,
  });
  expect(caller.error?.message).toBe(
    '3 dials in a row failed, next attempt in 500ms: connect ECONNREFUSED 127.0.0.1:5432',
  );
});

test('The breaker fails no patient caller: one probe at a time is made for them, and they are served when dialing works again', () => {
  let isDown = true;
  const world = new VirtualWorld(failing, {
    manners: () => ({ onDial: (dial) => (isDown ? dial.failAfter(1) : dial.succeedAfter(1)) }),
    random: half,
  });
  const patient = [1, 2, 3, 4].map(() => world.askPatiently());
  const other = world.ask();
  world.advance(1);
  expect(world.pool.stats().breaker).toBe('open');
  expect(other.error).toBeInstanceOf(ConnectFailedError);
  const late = world.askPatiently();
  const dialed = world.server.dialed;
  world.advance(5_000);
  expect(outcomes([...patient, late])).toBe('waiting waiting waiting waiting waiting');
  expect(world.server.dialed - dialed).toBeLessThanOrEqual(10);
  isDown = false;
  world.advance(1_000);
  expect(outcomes(patient)).toBe('granted granted granted granted');
  patient[0]?.release();
  expect(late.outcome).toBe('granted');
});

test('The breaker tells who was patient to the end of its time why', () => {
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432');
  const world = new VirtualWorld(failing, {
    manners: () => ({ onDial: (dial) => dial.fail(refused) }),
    random: half,
  });
  const caller = world.askPatiently(10_000);
  world.advance(9_999);
  expect(caller.outcome).toBe('waiting');
  world.advance(1);
  expect(caller.error).toMatchObject({ code: 'HG_ACQUIRE_TIMEOUT', cause: refused });
});

test('The breaker fails no caller fast while a live connection could come back', () => {
  let isDown = false;
  const world = new VirtualWorld(failing, {
    manners: () => ({ onDial: (dial) => (isDown ? dial.fail() : dial.succeed()) }),
    random: half,
  });
  const holder = world.ask();
  isDown = true;
  const waiting = world.ask();
  world.advance(10_000);
  expect(world.pool.stats().breaker).not.toBe('closed');
  expect(waiting.outcome).toBe('waiting');
  holder.release();
  expect(waiting.outcome).toBe('granted');
});

test('Numbers that are adjusted hold for the connections that there are, and none of them is replaced', () => {
  const world = withIdle(4, { max: 4, idleTimeout: 0, maxLifetime: 0 });
  const { policy } = world.pool;
  world.advance(10 * minute);
  expect(world.pool.live).toBe(4);
  world.pool.adjust({ ...policy, idleTimeout: 20 * minute });
  world.advance(9 * minute);
  expect(world.pool.live).toBe(4);
  world.advance(minute);
  expect(world.pool.live).toBe(0);
  expect(world.server.dialed).toBe(4);
});

test('Numbers that are adjusted can be those of which connection is taken first, and how often', () => {
  const world = withIdle(3, { max: 3, idleTimeout: 0, maxLifetime: 0 });
  const takenFirst = (): number => {
    const lease = world.mustTake();
    lease.release();
    return [...world.server.sockets].indexOf(lease.socket) + 1;
  };
  expect([takenFirst(), takenFirst()]).toEqual([3, 3]);
  world.pool.adjust({ ...world.pool.policy, idleOrder: 'fifo' });
  expect([takenFirst(), takenFirst(), takenFirst()]).toEqual([1, 2, 3]);
  world.pool.adjust({ ...world.pool.policy, maxUses: 1 });
  takenFirst();
  expect(world.pool.live).toBe(2);
});

test('Numbers that are adjusted can be the size that it is kept at, where it was kept at none', () => {
  const world = new VirtualWorld({ max: 4, maxLifetime: 0 });
  world.pool.adjust({
    ...world.pool.policy,
    keeper: { target: 3, interval: 1_000, perTick: 3 },
    idleFloor: 3,
  });
  world.advance(2_000);
  expect(world.pool.live).toBe(3);
  world.pool.adjust({ ...world.pool.policy, keeper: undefined, idleFloor: 0, idleTimeout: minute });
  world.advance(2 * minute);
  expect(world.pool.live).toBe(0);
});
