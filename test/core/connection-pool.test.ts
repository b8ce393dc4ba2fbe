// How the engine lends, queues, grows and counts, each in a small scene in virtual time.
import { expect, test } from 'vitest';
import { AcquireTimeoutError, DoubleReleaseError } from '../../src/core/errors.js';
import { TokenBucket } from '../../src/core/token-bucket.js';
import { dialMs } from '../support/fake-server.js';
import { type Caller, VirtualWorld } from '../support/virtual-world.js';
import { minute, outcomes, silent, withIdle } from './scenes.js';

test('Taking and giving back lends an idle connection in the same call, and none when there is none', () => {
  const world = withIdle(1, { max: 1 });
  const lease = world.take();
  expect(lease?.socket.id).toBe(1);
  expect(world.take()).toBeUndefined();
  lease?.release();
  expect(world.take()?.socket.id).toBe(1);
});

test('Taking and giving back hands a returned connection to the first in the queue, inside the call that returned it', () => {
  const world = new VirtualWorld({ max: 1 });
  const [first, second, third] = world.askMany(3) as [Caller, Caller, Caller];
  world.advance(dialMs);
  expect(outcomes([first, second, third])).toBe('granted waiting waiting');
  first.release();
  expect(outcomes([first, second, third])).toBe('granted granted waiting');
  expect(second.socket).toBe(first.socket);
});

test('Taking and giving back refuses a second release, and one that names an earlier checkout of the same connection', () => {
  const world = withIdle(1, { max: 1 });
  const earlier = world.mustTake();
  earlier.release();
  expect(() => earlier.release()).toThrow(DoubleReleaseError);
  const present = world.mustTake();
  expect(present.pooled).toBe(earlier.pooled);
  expect(() => earlier.release()).toThrow(DoubleReleaseError);
  expect(world.pool.counts()).toMatchObject({ inUse: 1, idle: 0 });
  present.release();
  expect(world.pool.counts()).toMatchObject({ inUse: 0, idle: 1 });
});

test('Taking and giving back hands out the connection used last (lifo), which lets the others grow idle', () => {
  const world = withIdle(3, { max: 3 });
  const order = [world.mustTake(), world.mustTake(), world.mustTake()].map((lease) => lease.socket.id);
  expect(order).toEqual([3, 2, 1]);
});

test('Taking and giving back hands out the connection idle for longest (fifo), which uses them all alike', () => {
  const world = withIdle(3, { max: 3, idleOrder: 'fifo' });
  const used: number[] = [];
  for (let use = 0; use < 6; use++) {
    const lease = world.mustTake();
    used.push(lease.socket.id);
    lease.release();
  }
  expect(used).toEqual([1, 2, 3, 1, 2, 3]);
});

test('Taking and giving back lets a caller that was just served overtake no waiting caller', () => {
  const world = withIdle(2, { max: 2 });
  world.pool.pause();
  const took: unknown[] = [];
  const greedy = world.ask(undefined, () => took.push(world.take()));
  const next = world.ask();
  world.pool.resume();
  expect(took).toEqual([undefined]);
  expect(outcomes([greedy, next])).toBe('granted granted');
});

test('Taking and giving back serves what callers do inside the call that answers them in order, and without growing the stack', () => {
  const world = new VirtualWorld({ max: 1 });
  const served: string[] = [];
  const callers: Caller[] = [];
  for (let n = 0; n < 20_000; n++) {
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

test('The queue times a caller out at its own deadline, time in the queue included, and says what the pool was doing', () => {
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
      'limit 1: 1 in use, 0 idle, 0 being opened, 0 being closed; 2 waiting. ' +
      'Pool pool has all its connections in use.',
  );
  world.advance(10 * minute);
  expect(outcomes([patient, hasty, lasting])).toBe('failed failed waiting');
  expect(world.pool.stats().totals).toMatchObject({ timedOut: 2, waitedMs: dialMs + 200 + 500 });
});

test('The queue gives no connection to a caller that timed out or was aborted, and the next gets it instead', () => {
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

test('The queue lets a caller leave without an answer', () => {
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

test('The queue lets all callers leave without an answer, in the order of the queue', () => {
  const world = withIdle(1, { max: 1 });
  const holder = world.mustTake();
  const callers = [world.ask(), world.ask(50), world.ask()];
  expect(world.pool.withdrawAll()).toEqual(callers);
  expect(world.pool.withdrawAll()).toEqual([]);
  holder.release();
  world.advance(100);
  expect([world.pool.waiting, world.pool.idle]).toEqual([0, 1]);
  expect(callers.map(({ outcome }) => outcome)).toEqual(callers.map(() => 'waiting'));
});

test('The queue sets one alarm, however many wait', () => {
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

test('Growth fills up to minIdle at the start, as many at once as the dial limit allows', () => {
  const world = new VirtualWorld({ max: 20, minIdle: 6, dialLimit: 4 });
  expect(world.pool.counts()).toMatchObject({ pending: 4, live: 0 });
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ pending: 2, idle: 4 });
  world.advance(dialMs);
  expect(world.pool.counts()).toMatchObject({ pending: 0, idle: 6 });
});

test('Growth opens a new spare as soon as one is taken', () => {
  const world = new VirtualWorld({ max: 4, minIdle: 2 });
  world.advance(dialMs);
  world.mustTake();
  expect(world.pool.pending).toBe(1);
});

test('Growth opens one more for each caller for whom none is on its way', () => {
  const world = new VirtualWorld({ max: 10 });
  world.ask();
  expect(world.pool.pending).toBe(1);
  world.askMany(2);
  expect(world.pool.pending).toBe(3);
  const [one] = world.server.dials;
  one?.succeed();
  expect(world.pool.counts()).toMatchObject({ pending: 2, inUse: 1, waiting: 2 });
});

test('Growth opens one for one caller even when the dialer answers at once', () => {
  const world = new VirtualWorld({ max: 4 }, { manners: () => ({ onDial: (dial) => dial.succeed() }) });
  const callers = world.askMany(2);
  expect(outcomes(callers)).toBe('granted granted');
  expect(world.server.opened).toBe(2);
});

test('Growth counts a dial that lost its caller as on its way to the next', () => {
  const world = new VirtualWorld({ max: 10 });
  world.ask().abort();
  world.ask();
  expect(world.server.dialed).toBe(1);
});

test('Growth opens no faster than the rate limiter permits, and goes on by itself', () => {
  const world = new VirtualWorld({ max: 100, rateLimiter: new TokenBucket({ rate: 10, burst: 3 }) });
  const callers = world.askMany(10);
  expect(world.server.dialed).toBe(3);
  world.advance(500);
  expect(world.server.dialed).toBe(8);
  world.advance(200 + dialMs);
  expect(outcomes(callers)).toBe(Array(10).fill('granted').join(' '));
});

test('Growth takes no permit for a dial that can not begin', () => {
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

test('Growth makes ready the number that was asked for, and says when they are there', () => {
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

test('Growth says when they are not there in time', () => {
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

test('Leaks are reported once, with who holds it and for how long, and the holder may still give it back', () => {
  const world = withIdle(2, { max: 2, leakThreshold: '10s', idleTimeout: 0, maxLifetime: 0 });
  const leaked = world.mustTake('the nightly report');
  world.advance(5_000);
  const quick = world.mustTake('someone quick');
  quick.release();
  world.advance(60_000);
  expect(world.leaks).toEqual([
    { socket: leaked.socket, generation: leaked.generation, holder: 'the nightly report', heldMs: 10_000 },
  ]);
  expect(world.pool.counts()).toMatchObject({ inUse: 1 });
  leaked.release();
  expect(world.pool.counts()).toMatchObject({ inUse: 0, idle: 2 });
  expect(world.pool.stats().totals.leaks).toBe(1);
});

test('A connection that the pool itself uses is no leak, and its user can ask whether it would be closed now', () => {
  const world = withIdle(1, { max: 1, leakThreshold: '1s', maxLifetime: '1m', maxLifetimeJitter: 0 });
  const lease = world.mustTake();
  world.pool.exemptFromLeaks(lease.pooled);
  expect(world.pool.wouldRetire(lease.pooled)).toBe(false);
  world.advance(minute);
  expect(world.leaks).toEqual([]);
  expect(world.pool.wouldRetire(lease.pooled)).toBe(true);
  lease.release();
  expect(lease.socket.reason).toBe('max_lifetime');
});

test('Counting keeps live = idle + inUse + checking, and the highest total there ever was', () => {
  const world = withIdle(3, { max: 3, checkAfterIdle: '1s' });
  world.advance(2_000);
  world.take();
  const { live, idle, inUse, checking } = world.pool.counts();
  expect({ live, idle, inUse, checking }).toEqual({ live: 3, idle: 2, inUse: 0, checking: 1 });
  world.pool.resize(1);
  world.advance(minute);
  expect(world.pool.stats()).toMatchObject({ peak: 3, live: 1 });
});

test('Counting counts checkouts, waits and their time', () => {
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
