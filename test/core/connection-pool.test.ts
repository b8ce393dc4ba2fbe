// What the engine does, feature by feature, each in a small scene in virtual time.
import { describe, expect, it } from 'vitest';
import {
  AcquireTimeoutError,
  ConnectFailedError,
  DialTimeoutError,
  DoubleReleaseError,
  PoolClosedError,
} from '../../src/core/errors.js';
import { TokenBucket } from '../../src/core/token-bucket.js';
import {
  type Caller,
  dialMs,
  type FakeSocket,
  type Manners,
  VirtualWorld,
} from '../support/virtual-world.js';

const minute = 60_000;

/** A server that answers nothing by itself; the test does. */
const silent = (): Manners => ({
  onDial: () => {},
  onAbandon: () => {},
  onClose: () => {},
  onCheck: () => {},
});

function outcomes(callers: readonly Caller[]): string {
  return callers.map((caller) => caller.outcome).join(' ');
}

function reasons(world: VirtualWorld): Record<string, number> {
  return Object.fromEntries(world.server.discards);
}

/** A world in which `count` connections are idle. */
function withIdle(count: number, options: ConstructorParameters<typeof VirtualWorld>[0]): VirtualWorld {
  const world = new VirtualWorld(options);
  const callers = world.askMany(count);
  world.advance(dialMs);
  for (const caller of callers) caller.release();
  return world;
}

describe('Taking and giving back', () => {
  it('lends an idle connection in the same call, and none when there is none', () => {
    const world = withIdle(1, { max: 1 });
    const lease = world.take();
    expect(lease?.socket.id).toBe(1);
    expect(world.take()).toBeUndefined();
    lease?.release();
    expect(world.take()?.socket.id).toBe(1);
  });

  it('hands a returned connection to the first in the queue, inside the call that returned it', () => {
    const world = new VirtualWorld({ max: 1 });
    const [first, second, third] = world.askMany(3) as [Caller, Caller, Caller];
    world.advance(dialMs);
    expect(outcomes([first, second, third])).toBe('granted waiting waiting');
    first.release();
    expect(outcomes([first, second, third])).toBe('granted granted waiting');
    expect(second.socket).toBe(first.socket);
  });

  it('refuses a second release, and one that names an earlier checkout of the same connection', () => {
    const world = withIdle(1, { max: 1 });
    const earlier = world.mustTake();
    earlier.release();
    expect(() => earlier.release()).toThrow(DoubleReleaseError);
    const present = world.mustTake();
    expect(present.pooled).toBe(earlier.pooled);
    expect(() => earlier.release()).toThrow(DoubleReleaseError);
    expect(world.pool.counts()).toMatchObject({ lent: 1, idle: 0 });
    present.release();
    expect(world.pool.counts()).toMatchObject({ lent: 0, idle: 1 });
  });

  it('lends the one used last (lifo), which lets the others grow idle', () => {
    const world = withIdle(3, { max: 3 });
    const order = [world.mustTake(), world.mustTake(), world.mustTake()].map((lease) => lease.socket.id);
    expect(order).toEqual([3, 2, 1]);
  });

  it('lends the one idle for longest (fifo), which uses them all alike', () => {
    const world = withIdle(3, { max: 3, idleOrder: 'fifo' });
    const used: number[] = [];
    for (let use = 0; use < 6; use++) {
      const lease = world.mustTake();
      used.push(lease.socket.id);
      lease.release();
    }
    expect(used).toEqual([1, 2, 3, 1, 2, 3]);
  });

  it('serves what a caller does inside the call that answers it, and still in order', () => {
    const world = new VirtualWorld({ max: 1 });
    const served: string[] = [];
    const callers: Caller[] = [];
    for (let n = 0; n < 200; n++) {
      callers.push(
        world.ask(undefined, (caller) => {
          served.push(caller.name);
          caller.release();
        }),
      );
    }
    world.advance(dialMs);
    expect(served).toEqual(callers.map((caller) => caller.name));
    expect(world.pool.counts()).toMatchObject({ idle: 1, waiting: 0 });
  });
});

describe('The queue', () => {
  it('times a caller out at its own deadline, time in the queue included, and says what the pool was doing', () => {
    const world = withIdle(1, { max: 1 });
    world.mustTake();
    const patient = world.ask(500);
    const hasty = world.ask(200);
    const lasting = world.ask();
    world.advance(200);
    expect(outcomes([patient, hasty, lasting])).toBe('waiting failed waiting');
    expect(hasty.error).toBeInstanceOf(AcquireTimeoutError);
    expect(hasty.error?.message).toBe(
      'timeout exceeded when trying to connect: waited 200ms; ' +
        'limit 1: 1 lent, 0 idle, 0 being opened, 0 being closed; 2 waiting',
    );
    world.advance(10 * minute);
    expect(outcomes([patient, hasty, lasting])).toBe('failed failed waiting');
    expect(world.pool.stats().totals).toMatchObject({ timedOut: 2, waitedMs: dialMs + 200 + 500 });
  });

  it('gives nothing to one who timed out or was aborted, and the next gets it instead', () => {
    const world = withIdle(1, { max: 1 });
    const holder = world.mustTake();
    const timed = world.ask(10);
    const aborted = world.ask();
    const next = world.ask();
    world.advance(10);
    const reason = new Error('never mind');
    expect(aborted.abort(reason)).toBe(true);
    expect(aborted.abort(reason)).toBe(false);
    holder.release();
    expect(outcomes([timed, aborted, next])).toBe('failed failed granted');
    expect(aborted.error).toBe(reason);
    expect(world.pool.stats().totals).toMatchObject({ aborted: 1, timedOut: 1 });
  });

  it('lets a caller leave without an answer', () => {
    const world = withIdle(1, { max: 1 });
    const holder = world.mustTake();
    const leaver = world.ask();
    const next = world.ask();
    expect(leaver.withdraw()).toBe(true);
    expect(leaver.withdraw()).toBe(false);
    holder.release();
    expect(next.outcome).toBe('granted');
    expect(leaver.outcome).toBe('withdrawn');
  });

  it('sets one alarm, however many wait', () => {
    const world = withIdle(1, { max: 1, idleTimeout: 0, maxLifetime: 0 });
    world.mustTake();
    const callers = Array.from({ length: 10_000 }, (_, n) => world.ask(1_000 + ((n * 7_919) % 500)));
    expect(world.alarm.at).toBe(world.now + 1_000);
    world.advance(1_250);
    const expired = callers.filter((caller) => caller.outcome === 'failed');
    expect(expired).toHaveLength(callers.filter((caller) => caller.deadlineAt <= world.now).length);
    world.advance(250);
    expect(world.pool.waiting).toBe(0);
  });
});

describe('Growth', () => {
  it('fills up to minIdle at the start, as many at once as the dial limit allows', () => {
    const world = new VirtualWorld({ max: 20, minIdle: 6, dialLimit: 4 });
    expect(world.pool.counts()).toMatchObject({ pending: 4, live: 0 });
    world.advance(dialMs);
    expect(world.pool.counts()).toMatchObject({ pending: 2, idle: 4 });
    world.advance(dialMs);
    expect(world.pool.counts()).toMatchObject({ pending: 0, idle: 6 });
  });

  it('opens a new spare as soon as one is taken', () => {
    const world = new VirtualWorld({ max: 4, minIdle: 2 });
    world.advance(dialMs);
    world.mustTake();
    expect(world.pool.pending).toBe(1);
  });

  it('opens one more for each caller for whom none is on its way', () => {
    const world = new VirtualWorld({ max: 10 });
    world.ask();
    expect(world.pool.pending).toBe(1);
    world.askMany(2);
    expect(world.pool.pending).toBe(3);
    const [one] = world.server.dials;
    one?.succeed();
    expect(world.pool.counts()).toMatchObject({ pending: 2, lent: 1, waiting: 2 });
  });

  it('counts a dial that lost its caller as on its way to the next', () => {
    const world = new VirtualWorld({ max: 10 });
    world.ask().abort();
    world.ask();
    expect(world.server.dialed).toBe(1);
  });

  it('opens no faster than the rate limiter permits, and goes on by itself', () => {
    const world = new VirtualWorld({ max: 100, rateLimiter: new TokenBucket({ rate: 10, burst: 3 }) });
    const callers = world.askMany(10);
    expect(world.server.dialed).toBe(3);
    world.advance(500);
    expect(world.server.dialed).toBe(8);
    world.advance(200 + dialMs);
    expect(outcomes(callers)).toBe(Array(10).fill('granted').join(' '));
  });

  it('takes no permit for a dial that can not begin', () => {
    let taken = 0;
    const rateLimiter = {
      take: () => {
        taken++;
        return 0;
      },
    };
    const world = new VirtualWorld({ max: 2, dialLimit: 1, rateLimiter });
    world.askMany(20);
    expect(taken).toBe(1);
    world.advance(20 * dialMs);
    expect(taken).toBe(2);
  });

  it('makes ready the number that was asked for, and says when they are there', () => {
    const world = new VirtualWorld({ max: 5, dialLimit: 2 });
    const answers: string[] = [];
    world.pool.whenReady({
      target: 4,
      deadline: Number.POSITIVE_INFINITY,
      reached: () => answers.push('reached'),
      missed: () => answers.push('missed'),
    });
    world.advance(dialMs);
    expect(answers).toEqual([]);
    world.advance(dialMs);
    expect(answers).toEqual(['reached']);
    expect(world.pool.idle).toBe(4);
  });

  it('says when they are not there in time', () => {
    const world = new VirtualWorld({ max: 5 }, { manners: silent });
    const answers: string[] = [];
    world.pool.whenReady({
      target: 1,
      deadline: world.now + 100,
      reached: () => answers.push('reached'),
      missed: () => answers.push('missed'),
    });
    world.advance(99);
    expect(answers).toEqual([]);
    world.advance(1);
    expect(answers).toEqual(['missed']);
  });
});

describe('Retirement', () => {
  it('closes what was idle for too long, down to minIdle', () => {
    const world = withIdle(4, { max: 4, minIdle: 1, idleTimeout: '30s', maxLifetime: 0 });
    world.advance(29_999);
    expect(world.pool.idle).toBe(4);
    world.advance(2);
    expect(world.pool.idle).toBe(1);
    expect(reasons(world)).toEqual({ idle_timeout: 3 });
  });

  it('leaves the last ones open where a floor says so, however long they are idle', () => {
    const world = withIdle(4, { max: 4, idleFloor: 2, idleTimeout: '30s', maxLifetime: 0 });
    world.advance(10 * minute);
    expect(world.pool.live).toBe(2);
    expect(world.server.dialed).toBe(4);
  });

  it('never closes for idleness what is in use', () => {
    const world = withIdle(1, { max: 1, idleTimeout: '30s', maxLifetime: 0 });
    const lease = world.mustTake();
    world.advance(10 * minute);
    expect(lease.socket.place).toBe('lent');
  });

  it('replaces an old spare before its end when there is room: make before break', () => {
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

  it('closes an old spare and then opens the next when there is no room: break before make', () => {
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

  it('lets a borrower finish with a connection that reached its end, and closes it when it comes back', () => {
    const world = withIdle(1, { max: 1, maxLifetime: '1m', maxLifetimeJitter: 0 });
    const lease = world.mustTake();
    world.advance(5 * minute);
    expect(lease.socket.place).toBe('lent');
    lease.release();
    expect(lease.socket.reason).toBe('max_lifetime');
  });

  it('never lends a connection past its end, even when the alarm is late', () => {
    const world = withIdle(2, { max: 2, maxLifetime: '1m', maxLifetimeJitter: 0 });
    world.stall(2 * minute);
    expect(world.take()).toBeUndefined();
    expect(reasons(world)).toEqual({ max_lifetime: 2 });
  });

  it('spreads the ends of connections that were opened together', () => {
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

  it('closes a connection that was used as often as it may', () => {
    const world = withIdle(1, { max: 1, maxUses: 3 });
    world.mustTake().release();
    const last = world.mustTake();
    last.release();
    expect(last.socket.reason).toBe('max_uses');
    const next = world.ask();
    world.advance(1 + dialMs);
    expect(next.socket.id).toBe(2);
  });

  it('closes what comes back with an error, and what broke while it was lent', () => {
    const world = withIdle(2, { max: 2 });
    const [bad, broken] = [world.mustTake(), world.mustTake()];
    bad.release(new Error('protocol out of step'));
    broken.socket.breakDown();
    expect(broken.socket.place).toBe('lent');
    broken.release();
    expect([bad.socket.reason, broken.socket.reason]).toEqual(['released_with_error', 'broken']);
  });

  it('closes an idle connection that breaks, at once, and opens another where one is wanted', () => {
    const world = new VirtualWorld({ max: 2, minIdle: 1 });
    world.advance(dialMs);
    const [socket] = world.server.sockets as unknown as [FakeSocket];
    socket.breakDown();
    expect(socket.reason).toBe('broken');
    expect(world.pool.counts()).toMatchObject({ idle: 0, closing: 1, pending: 1 });
  });

  it('gives every discard one of ten reasons, and counts it under it', () => {
    const world = withIdle(1, { max: 1 });
    world.mustTake().release('anything but undefined is an error');
    expect(world.pool.stats().totals.discarded).toEqual({
      idle_timeout: 0,
      max_lifetime: 0,
      max_uses: 0,
      broken: 0,
      failed_check: 0,
      released_with_error: 1,
      over_limit: 0,
      drained: 0,
      drain_deadline: 0,
      late_dial: 0,
    });
  });
});

describe('Closing', () => {
  it('is given a deadline, then the socket is destroyed, and the slot counts until then', () => {
    const world = new VirtualWorld(
      { max: 1, closeTimeout: '5s' },
      { manners: () => ({ onClose: () => {} }) },
    );
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
});

describe('Checking', () => {
  it('checks on checkout what was idle for longer than it should have been, and lends it if it is well', () => {
    const world = withIdle(1, { max: 1, checkAfterIdle: '10s' });
    world.advance(10_001);
    expect(world.take()).toBeUndefined();
    expect(world.pool.counts()).toMatchObject({ checking: 1, live: 1 });
    const caller = world.ask();
    world.advance(1);
    expect(caller.socket.id).toBe(1);
    expect(world.server.dialed).toBe(1);
  });

  it('lends without a check what worked a moment ago', () => {
    const world = withIdle(1, { max: 1, checkAfterIdle: '10s' });
    world.advance(9_999);
    expect(world.take()?.socket.id).toBe(1);
  });

  it('discards what fails its check, and opens another for the caller', () => {
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

  it('gives a check that hangs its time, and then discards the connection', () => {
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

  it('lends a fresh one at once while another is being checked', () => {
    const world = withIdle(3, { max: 3, checkAfterIdle: '10s', idleOrder: 'fifo' });
    const fresh = world.mustTake();
    world.advance(11_000);
    fresh.release();
    expect(world.take()?.socket).toBe(fresh.socket);
    expect(world.pool.counts().checking).toBe(1);
  });

  it('keeps idle connections alive at least as often as it was told to, and each keeps its place', () => {
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
});

describe('Dials', () => {
  it('have a deadline; what answers after it is closed, never handed out and never leaked', () => {
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

  it('that never answer are counted until it is clear that they will not, and not longer', () => {
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

  it('that fail belong to the caller for whom they were made, where failures are rejected', () => {
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

  it('that fail are repeated after a growing delay, where failures are retried', () => {
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
});

describe('The breaker', () => {
  const failing = { max: 4, breakerThreshold: 3, backoffBase: '1s', backoffCap: '1s', dialLimit: 4 } as const;
  const half = { next: () => 0.5 };

  it('opens after the failures in a row, probes with one dial at a time, and closes with a success', () => {
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
    expect(world.pool.stats().breaker).toBe('half-open');
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

  it('tells a caller the real error with the number of attempts, at once', () => {
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

  it('fails nobody fast while a connection lives that could come back', () => {
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
});

describe('Pausing', () => {
  it('hands out nothing and opens nothing, and what waits is served after it', () => {
    const world = withIdle(1, { max: 3 });
    world.pool.pause();
    expect(world.take()).toBeUndefined();
    const callers = world.askMany(2);
    world.advance(minute);
    expect(world.server.dialed).toBe(1);
    world.pool.resume();
    expect(outcomes(callers)).toBe('granted waiting');
    world.advance(dialMs);
    expect(outcomes(callers)).toBe('granted granted');
    expect(world.states).toEqual(['paused', 'open']);
  });

  it('does not stop the deadlines of those who wait', () => {
    const world = new VirtualWorld({ max: 1 });
    world.pool.pause();
    const caller = world.ask(50);
    world.advance(50);
    expect(caller.error).toBeInstanceOf(AcquireTimeoutError);
  });

  it('does nothing to a pool that is paused, resumed or closing already', () => {
    const world = withIdle(1, { max: 1 });
    world.pool.resume();
    world.pool.pause();
    world.pool.pause();
    world.drain();
    world.pool.pause();
    world.pool.resume();
    expect(world.states).toEqual(['paused', 'draining']);
  });
});

describe('Resizing', () => {
  it('serves the queue when the limit grows', () => {
    const world = withIdle(1, { max: 1 });
    world.mustTake();
    const callers = world.askMany(3);
    world.pool.resize(3);
    world.advance(dialMs);
    expect(outcomes(callers)).toBe('granted granted waiting');
  });

  it('closes the longest idle first when the limit shrinks, and lent ones when they come back', () => {
    const world = withIdle(4, { max: 4 });
    const lent = world.mustTake();
    world.pool.resize(1);
    expect(reasons(world)).toEqual({ over_limit: 3 });
    expect(world.pool.counts()).toMatchObject({ limit: 1, live: 1, closing: 3 });
    world.pool.resize(0);
    lent.release();
    expect(lent.socket.reason).toBe('over_limit');
  });

  it('approves nothing until enough has closed', () => {
    const world = new VirtualWorld({ max: 4 }, { manners: () => ({ onClose: () => {} }) });
    const holders = world.askMany(4);
    world.advance(dialMs);
    for (const holder of holders) holder.release(new Error('bad'));
    world.pool.resize(2);
    world.ask();
    expect(world.pool.room).toBe(0);
    holders[0]?.socket.finishClosing();
    holders[1]?.socket.finishClosing();
    expect(world.server.dialed).toBe(4);
    holders[2]?.socket.finishClosing();
    expect(world.server.dialed).toBe(5);
  });

  it('refuses what is no limit, and changes nothing', () => {
    const world = withIdle(1, { max: 1 });
    for (const nonsense of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => world.pool.resize(nonsense)).toThrow(RangeError);
    }
    expect(world.pool.limit).toBe(1);
    expect(world.mustTake().socket.id).toBe(1);
  });
});

describe('Draining', () => {
  it('takes no more callers, serves the queue, closes each connection as it comes back, then says so once', () => {
    const world = withIdle(2, { max: 2 });
    const holder = world.mustTake();
    const second = world.mustTake();
    const queued = world.ask();
    const drained = world.drain();
    expect(world.ask().error).toBeInstanceOf(PoolClosedError);
    expect(world.take()).toBeUndefined();
    holder.release();
    expect(queued.outcome).toBe('granted');
    queued.release();
    second.release();
    expect(drained.times).toBe(0);
    expect(world.pool.counts()).toMatchObject({ live: 0, closing: 2 });
    world.advance(1);
    expect(drained.times).toBe(1);
    expect(world.pool.state).toBe('closed');
    expect(world.alarm.isArmed).toBe(false);
    expect(reasons(world)).toEqual({ drained: 2 });
  });

  it('is done at once when there is nothing, also when it is asked again', () => {
    const world = new VirtualWorld({ max: 1 });
    expect([world.drain().times, world.drain().times]).toEqual([1, 1]);
    expect(world.states).toEqual(['draining', 'closed']);
  });

  it('opens connections for those who wait, and gives up those that nobody waits for', () => {
    const world = new VirtualWorld({ max: 2, minIdle: 1 });
    const waiting = world.ask();
    expect(world.server.opening).toBe(2);
    const drained = world.drain();
    world.advance(dialMs);
    expect(waiting.outcome).toBe('granted');
    waiting.release();
    world.advance(5);
    expect(drained.times).toBe(1);
    expect(world.server.sockets.size).toBe(0);
  });

  it('at its deadline refuses the queue and destroys what is still lent; a release after that is no mistake', () => {
    const world = withIdle(1, { max: 1 });
    const holder = world.mustTake();
    const queued = world.ask();
    const drained = world.drain(1_000);
    world.advance(999);
    expect(drained.times).toBe(0);
    world.advance(1);
    expect(queued.error).toBeInstanceOf(PoolClosedError);
    expect(holder.socket).toMatchObject({ place: 'gone', reason: 'drain_deadline' });
    expect(drained.times).toBe(1);
    expect(() => holder.release()).not.toThrow();
    expect(world.pool.stats().totals).toMatchObject({ opened: 1, closed: 1 });
  });

  it('takes the earliest of several deadlines', () => {
    const world = withIdle(1, { max: 1 });
    world.mustTake();
    const [patient, hasty] = [world.drain(10_000), world.drain(100)];
    world.advance(100);
    expect([patient.times, hasty.times]).toEqual([1, 1]);
  });

  it('answers a ready() that can not come true any more', () => {
    const world = new VirtualWorld({ max: 1 }, { manners: silent });
    const answers: string[] = [];
    world.pool.whenReady({
      target: 1,
      deadline: Number.POSITIVE_INFINITY,
      reached: () => answers.push('reached'),
      missed: () => answers.push('missed'),
    });
    world.drain();
    for (const dial of [...world.server.dials]) dial.fail();
    expect(answers).toEqual(['missed']);
  });
});

describe('Leaks', () => {
  it('are reported once, with who holds it and for how long, and the holder may still give it back', () => {
    const world = withIdle(2, { max: 2, leakThreshold: '10s', idleTimeout: 0, maxLifetime: 0 });
    const leaked = world.mustTake('the nightly report');
    world.advance(5_000);
    const quick = world.mustTake('someone quick');
    quick.release();
    world.advance(60_000);
    expect(world.leaks).toEqual([
      { socket: leaked.socket, generation: leaked.generation, holder: 'the nightly report', heldMs: 10_000 },
    ]);
    expect(world.pool.counts()).toMatchObject({ lent: 1 });
    leaked.release();
    expect(world.pool.counts()).toMatchObject({ lent: 0, idle: 2 });
    expect(world.pool.stats().totals.leaks).toBe(1);
  });
});

describe('Counting', () => {
  it('keeps live = idle + lent + checking, and the highest total there ever was', () => {
    const world = withIdle(3, { max: 3, checkAfterIdle: '1s' });
    world.advance(2_000);
    world.take();
    const { live, idle, lent, checking } = world.pool.counts();
    expect({ live, idle, lent, checking }).toEqual({ live: 3, idle: 2, lent: 0, checking: 1 });
    world.pool.resize(1);
    world.advance(minute);
    expect(world.pool.stats()).toMatchObject({ peak: 3, live: 1 });
  });

  it('counts checkouts, waits and their time', () => {
    const world = withIdle(1, { max: 1 });
    world.mustTake().release();
    const holder = world.mustTake();
    world.ask();
    world.advance(250);
    holder.release();
    const { acquired, waited, waitedMs, opened } = world.pool.stats().totals;
    expect({ acquired, waited, waitedMs, opened }).toEqual({
      acquired: 4,
      waited: 2,
      waitedMs: dialMs + 250,
      opened: 1,
    });
  });
});
