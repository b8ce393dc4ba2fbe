// Faults between a pool and a limited source, each in virtual time on the real engine: the laws hold at every
// step, the reservoir is full again as soon as the limiter allows, and every lease ends once.
import { describe, expect, test } from 'vitest';
import type { FakeDial } from '../support/fake-server.js';
import { type WatchedOptions, WatchedWorld } from './model/watched-world.js';
import { reasons } from './scenes.js';

const backoffCapMs = 2_000;
const dialMs = 10;

/** Twenty ready of twenty-five, behind ten permits a second. */
function scene(options: Partial<WatchedOptions> = {}): WatchedWorld {
  return new WatchedWorld({
    rate: [10, 5],
    leases: 100,
    ...options,
    policy: {
      max: 25,
      dialTimeout: '1s',
      backoffBase: 100,
      backoffCap: backoffCapMs,
      ...options.policy,
      reservoir: {
        targetReady: 20,
        lowWatermark: 15,
        baseLifetime: '40s',
        lifetimeJitter: '10s',
        guardWindow: '2s',
        ...(options.policy?.reservoir as object | undefined),
      },
    },
  });
}

/** As many as it is to keep ready, and none of them about to go. */
function isFull({ world }: WatchedWorld): boolean {
  const { idle, inUse, limit } = world.pool.counts();
  return idle >= Math.min(20, limit - inUse);
}

/** Full again at the speed of the limiter: what that allows, one backoff that was going on, and the last dial. */
function recovers(watched: WatchedWorld, afterMs = 0): void {
  const { idle, pending } = watched.world.pool.counts();
  const missing = 20 - idle - pending;
  // Otherwise it would be no recovery.
  expect(missing).toBeGreaterThan(5);
  const allowed = watched.msForPermits(missing);
  const took = watched.passUntil(() => isFull(watched), 60_000);
  expect(took).toBeLessThanOrEqual(allowed + afterMs + backoffCapMs + dialMs + 20);
}

const answers = {
  normally: (dial: FakeDial): void => dial.succeedAfter(dialMs),
  refused: (dial: FakeDial): void => dial.failAfter(2),
};

const seeds = [1, 2, 3];

describe.each(seeds)('With a source that is at fault (seed %i)', (seed) => {
  test('down for a minute: what is ready is given to callers until it ends, and then the reservoir fills up again', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    world.server.manners.onDial = answers.refused;
    watched.pass(10_000);
    // The crowd that was born together is not thrown away while nothing can be opened in its place.
    expect(world.pool.idle).toBeGreaterThanOrEqual(15);
    const lease = world.mustTake();
    watched.pass(100);
    lease.release();
    watched.pass(50_000);
    expect(world.pool.idle).toBe(0);
    expect(world.pool.stats().breaker).not.toBe('closed');
    expect(world.refillFailures.connection_open).toBeGreaterThan(5);

    world.server.manners.onDial = answers.normally;
    recovers(watched);
    watched.pass(5_000);
    expect(world.pool.stats().breaker).toBe('closed');
    watched.finish();
  });

  test('down for a minute: probes are few, and callers are told at once that it is', () => {
    const watched = scene({ seed, policy: { reservoir: { baseLifetime: '10s', lifetimeJitter: 0 } } });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    world.server.manners.onDial = answers.refused;
    watched.pass(15_000);
    const before = world.server.dialed;
    watched.pass(45_000);
    // One at a time, and after the first few each after up to the cap: the mean is half of that.
    expect(world.server.dialed - before).toBeLessThan((3 * 45_000) / backoffCapMs);
    expect(world.pool.live).toBe(0);
    world.server.manners.onDial = answers.normally;
    recovers(watched);
    watched.finish();
  });

  test('every connection dropped at once: all are replaced, as fast as the limiter allows', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    const inUse = Array.from({ length: 5 }, () => world.mustTake());
    watched.pass(4_000);
    const dialedBefore = world.server.dialed;
    for (const socket of [...world.server.sockets]) socket.breakDown();
    for (const lease of inUse) lease.release();
    watched.check();
    expect(world.pool.live).toBe(0);
    recovers(watched);
    expect(world.server.dialed - dialedBefore).toBe(20);
    expect(reasons(world)).toMatchObject({ broken: 25 });
    watched.finish();
  });

  test('a token provider that fails and heals: that is the cause that is told, and no connection is touched', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    const noToken = new Error('no credentials');
    world.server.manners.onDial = (dial) => dial.fail(noToken, 'token_provider');
    const inUse = Array.from({ length: 10 }, () => world.mustTake());
    watched.pass(20_000);
    expect(world.pool.stats().totals.refillFailures).toMatchObject({
      token_provider: world.server.failures,
      connection_open: 0,
      rate_limit: 0,
      lease_acquire: 0,
    });
    expect(world.server.failures).toBeGreaterThan(5);
    expect(world.pool.lastDialError).toBe(noToken);
    expect(reasons(world)).toEqual({});
    world.server.manners.onDial = answers.normally;
    recovers(watched);
    expect(world.pool.lastDialError).toBeUndefined();
    for (const lease of inUse) lease.release();
    watched.finish();
  });

  test('half of the dials hanging: the others fill the reservoir, and later it is as fast as before', () => {
    const watched = scene({ seed });
    const { world } = watched;
    world.server.manners.onDial = (dial) => (dial.number % 2 === 0 ? undefined : answers.normally(dial));
    watched.passUntil(() => isFull(watched), 60_000);
    watched.pass(30_000);
    expect(world.server.peak).toBeLessThanOrEqual(25);
    expect(world.refillFailures.connection_open).toBeGreaterThan(5);
    world.server.manners.onDial = answers.normally;
    for (const socket of [...world.server.sockets]) if (socket.place === 'idle') socket.breakDown();
    // The dial that hangs must be given up first.
    recovers(watched, 1_000);
    watched.finish();
  });

  test('half of the dials hanging for ever, and no answer to being given up: their places come back', () => {
    const watched = scene({ seed, policy: { closeTimeout: '1s' } });
    const { world } = watched;
    world.server.manners.onDial = (dial) => (dial.number % 2 === 0 ? undefined : answers.normally(dial));
    world.server.manners.onAbandon = () => {};
    watched.passUntil(() => isFull(watched), 60_000);
    watched.pass(60_000);
    expect(world.pool.idle).toBeGreaterThan(0);
    world.server.manners.onDial = answers.normally;
    for (const socket of [...world.server.sockets]) if (socket.place === 'idle') socket.breakDown();
    recovers(watched, 2_000);
    watched.finish();
  });

  test('a server that finds it too fast: that is the cause that is told', () => {
    const watched = scene({ seed });
    const { world } = watched;
    world.server.manners.onDial = (dial) => dial.failAfter(2, new Error('53400'), 'rate_limit');
    watched.pass(10_000);
    expect(world.pool.stats().totals.refillFailures).toMatchObject({
      rate_limit: world.server.failures,
      connection_open: 0,
    });
    world.server.manners.onDial = answers.normally;
    recovers(watched);
    watched.finish();
  });

  test('a rate limiter that is out of order: nothing is opened, nothing is lost, and then it goes on', () => {
    const watched = scene({ seed });
    const { world, limiter } = watched;
    if (limiter === undefined) throw new Error('There is a limiter.');
    watched.passUntil(() => isFull(watched), 10_000);
    limiter.throws = () => true;
    for (const socket of [...world.server.sockets].slice(0, 12)) socket.breakDown();
    const before = world.server.dialed;
    watched.pass(20_000);
    expect(world.server.dialed).toBe(before);
    expect(world.pool.stats().totals.refillFailures.rate_limit).toBe(limiter.failures);
    expect(limiter.failures).toBeGreaterThan(5);
    limiter.throws = () => false;
    recovers(watched);
    watched.finish();
  });
});

describe.each(seeds)('With a coordinator that is at fault (seed %i)', (seed) => {
  test('a coordinator which refuses and then grants: nothing is opened meanwhile, and the reservoir fills up then', () => {
    const watched = scene({ seed, leases: 0 });
    const { world, budget } = watched;
    if (budget === undefined) throw new Error('There is a budget.');
    watched.pass(30_000);
    expect(world.server.dialed).toBe(0);
    expect(world.fills.map(({ phase }) => phase)).toEqual(['started', 'timeout']);
    expect(world.pool.stats().totals.refillFailures.lease_acquire).toBe(budget.refusals);
    // Asked again after a backoff that grows, not in a loop.
    expect(budget.refusals).toBeGreaterThan(10);
    expect(budget.refusals).toBeLessThan((3 * 30_000) / backoffCapMs);
    budget.size = 100;
    recovers(watched);
    watched.finish();
  });

  test('a coordinator which refuses and then says that there are some: that is heard at once', () => {
    const watched = scene({ seed, leases: 0, rate: [1_000, 100] });
    const { budget } = watched;
    watched.pass(30_000);
    if (budget === undefined) throw new Error('There is a budget.');
    budget.size = 100;
    budget.tellAvailable();
    expect(watched.passUntil(() => isFull(watched), 1_000)).toBeLessThanOrEqual(3 * dialMs + 20);
    watched.finish();
  });

  test('a coordinator which has fewer than are wanted: as many are ready as it grants, and others are asked for now and then', () => {
    const watched = scene({ seed, leases: 7 });
    const { world, budget } = watched;
    watched.pass(60_000);
    expect(budget?.held).toBe(7);
    expect(world.server.total).toBeLessThanOrEqual(7);
    expect(world.pool.stats().leased).toBe(7);
    if (budget !== undefined) budget.size = 100;
    recovers(watched);
    watched.finish();
  });

  test('a coordinator which lets requests wait: one request, one failure counted, and the reservoir looks no oftener than once a second', () => {
    const watched = scene({ seed, leases: 7, policy: { max: 20 } });
    const { world, budget } = watched;
    if (budget === undefined) throw new Error('There is a budget.');
    budget.queues = () => true;
    // All permits that it takes, and before the first life ends.
    watched.pass(5_000);
    expect(world.pool.stats()).toMatchObject({ leased: 7, live: 7 });
    const wakeUps = new Set<number>();
    watched.pass(20_000, () => wakeUps.add(world.alarm.at));
    expect(world.pool.stats().totals.refillFailures.lease_acquire).toBe(1);
    expect(budget.refusals).toBe(1);
    expect(wakeUps.size).toBeLessThanOrEqual(21);
    budget.queues = () => false;
    budget.size = 100;
    expect(budget.grant()).toBe(true);
    recovers(watched);
    watched.finish();
  });

  test('a coordinator which answers late: one question at a time, and none is forgotten', () => {
    const watched = scene({ seed });
    const { world, budget } = watched;
    if (budget === undefined) throw new Error('There is a budget.');
    let asked = 0;
    budget.answers = () => (++asked % 2 === 0 ? 'granted' : 'asking');
    budget.onAsking = () => world.time.plan(world.now + 50, () => budget.tellAvailable());
    watched.passUntil(() => isFull(watched), 20 * 100);
    watched.pass(5_000);
    watched.finish();
  });

  test('a coordinator which never answers: nothing is opened, callers are told, and closing does not wait for it', () => {
    const watched = scene({ seed });
    const { world, budget } = watched;
    if (budget === undefined) throw new Error('There is a budget.');
    watched.passUntil(() => isFull(watched), 10_000);
    budget.answers = () => 'asking';
    for (const socket of [...world.server.sockets]) socket.breakDown();
    const caller = world.ask(500);
    watched.pass(10_000);
    expect(caller.error).toMatchObject({ code: 'HG_RESERVOIR_EMPTY' });
    expect(world.pool.live).toBe(0);
    watched.finish();
    expect(budget.isAsking).toBe(true);
  });

  test('a coordinator which takes leases back: their connections go, idle ones now and those in use when they come back', () => {
    const watched = scene({ seed });
    const { world, budget } = watched;
    if (budget === undefined) throw new Error('There is a budget.');
    watched.passUntil(() => isFull(watched), 10_000);
    const inUse = Array.from({ length: 12 }, () => world.mustTake());
    watched.pass(5_000);
    const { live } = world.pool;
    budget.size = budget.held - 15;
    budget.lose(15);
    watched.check();
    const idleBefore = live - inUse.length;
    expect(reasons(world)).toEqual({ lease_lost: Math.min(15, idleBefore) });
    watched.pass(1_000);
    for (const lease of inUse) lease.release();
    watched.check();
    expect(reasons(world)).toEqual({ lease_lost: 15 });
    expect(budget).toMatchObject({ released: 0, lost: 15 });
    watched.pass(1_000);
    expect(world.server.total).toBe(live - 15);
    budget.size = 100;
    recovers(watched);
    watched.finish();
  });
});

describe.each(seeds)('With a clock that is at fault (seed %i)', (seed) => {
  test('a clock that jumps ahead by an hour: no caller gets a connection past its end, and the reservoir is full again', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    world.stall(3_600_000);
    // Before the alarm has rung: the checkout finds them itself, and gives none of them to a caller.
    expect(world.take()).toBeUndefined();
    watched.check();
    expect(reasons(world)).toEqual({ expired_on_checkout: 20 });
    recovers(watched);
    watched.finish();
  });

  test('a clock which jumps ahead while connections are in use: they go when they come back', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    const inUse = Array.from({ length: 5 }, () => world.mustTake());
    watched.pass(3_000);
    world.stall(3_600_000);
    watched.pass(10);
    for (const lease of inUse) lease.release();
    expect(reasons(world)).toEqual({ expired_on_scan: 20, expired_on_return: 5 });
    recovers(watched);
    watched.finish();
  });

  test('a clock which jumps ahead by a little, again and again: no scan is lost', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    for (let jumps = 0; jumps < 60; jumps++) {
      world.stall(1_700);
      watched.pass(300);
      for (const { lendUntil } of world.pool.connections()) expect(world.now).toBeLessThan(lendUntil + 1_000);
    }
    watched.finish();
  });

  test('a clock which stands still: checkouts and returns go on, and nothing is done twice', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    for (let turns = 0; turns < 300; turns++) {
      const inUse = Array.from({ length: 1 + (turns % 20) }, () => world.mustTake());
      world.advance(0);
      for (const lease of inUse) lease.release();
      world.advance(0);
      watched.check();
    }
    watched.pass(5_000);
    expect(isFull(watched)).toBe(true);
    watched.finish();
  });

  test('a clock whose coarse reading is behind: a connection in use has most of its guard window left', () => {
    const watched = scene({ seed });
    const { world } = watched;
    watched.passUntil(() => isFull(watched), 10_000);
    const lease = world.mustTake();
    const { lendUntil, expiresAt } = lease.pooled;
    watched.pass(lendUntil - world.now - 1);
    // All others away, so that it is the one to be taken next.
    const others = Array.from({ length: world.pool.idle }, () => world.mustTake());
    // Time passes, and the coarse clock still says that it may be taken.
    world.creep(50);
    lease.release();
    const again = world.mustTake();
    expect(again.socket).toBe(lease.socket);
    expect(expiresAt - world.now).toBeGreaterThanOrEqual(2_000 - 50);
    watched.check();
    // The next reading says that it may not.
    world.time.newTurn();
    again.release();
    expect(lease.socket.reason).toBe('insufficient_remaining_lifetime');
    for (const other of others) other.release();
    watched.finish();
  });
});
