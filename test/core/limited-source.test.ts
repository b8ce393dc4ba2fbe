// The parts between a pool and its source, one by one: leases, permits, and second chances.
import { expect, test } from 'vitest';
import type { LeaseAnswer, LeaseHolder, Leases } from '../../src/core/leases.js';
import type { RateLimiter } from '../../src/core/rate-limiter.js';
import { dialMs } from '../support/fake-server.js';
import { VirtualWorld } from '../support/virtual-world.js';
import { reasons, silent } from './scenes.js';

const half = { next: () => 0.5 };

/** A budget that writes down what is asked of it, together with the limiter. */
class Notes implements Leases, RateLimiter {
  readonly story: string[] = [];
  holder: LeaseHolder | undefined;
  answer: LeaseAnswer = 'granted';
  waitMs = 0;
  isUrgent: boolean | undefined;

  acquire(_count: number, holder: LeaseHolder): LeaseAnswer {
    this.holder = holder;
    this.story.push('lease?');
    return this.answer;
  }

  release(): void {
    this.story.push('lease back');
  }

  take(_now: number, isUrgent?: boolean): number {
    this.isUrgent = isUrgent;
    this.story.push('permit?');
    return this.waitMs;
  }
}

function noted(options: object = {}): { notes: Notes; world: VirtualWorld } {
  const notes = new Notes();
  const world = new VirtualWorld(
    { max: 2, ...options, leases: notes, rateLimiter: notes },
    { manners: () => ({ onDial: () => notes.story.push('dial') }), random: half },
  );
  return { notes, world };
}

test('A dial takes a lease, then a permit, then begins; its lease goes back when the socket is gone', () => {
  const { notes, world } = noted();
  const caller = world.ask();
  for (const dial of [...world.server.dials]) dial.succeed();
  caller.release(new Error('bad'));
  expect(notes.story).toEqual(['lease?', 'permit?', 'dial']);
  world.advance(1);
  expect(notes.story.slice(3)).toEqual(['lease back']);
});

test('A dial asks for nothing where there is no room, where enough are under way, or where dialing is failing', () => {
  const { notes, world } = noted({ dialLimit: 1, backoffBase: '1s' });
  world.askMany(3);
  expect(notes.story).toEqual(['lease?', 'permit?', 'dial']);
  for (const dial of [...world.server.dials]) dial.fail();
  expect(notes.story).toEqual(['lease?', 'permit?', 'dial', 'lease back']);
  world.advance(499);
  expect(notes.story).toHaveLength(4);
  world.advance(1);
  expect(notes.story.slice(4)).toEqual(['lease?', 'permit?', 'dial']);
});

test('A dial that must wait for its permit keeps its lease, and asks for the permit alone', () => {
  const { notes, world } = noted();
  notes.waitMs = 100;
  world.ask();
  expect(notes.story).toEqual(['lease?', 'permit?']);
  notes.waitMs = 0;
  world.advance(100);
  expect(notes.story).toEqual(['lease?', 'permit?', 'permit?', 'dial']);
});

test('A dial that no caller wants any more gives its lease back before it begins', () => {
  const { notes, world } = noted();
  notes.waitMs = 100;
  const caller = world.ask();
  caller.abort();
  expect(notes.story).toEqual(['lease?', 'permit?', 'lease back']);
  expect(world.pool.stats().leased).toBe(0);
});

test('A dial of a pool that is paused gives its lease back', () => {
  const { notes, world } = noted();
  notes.waitMs = 100;
  world.ask();
  world.pool.pause();
  expect(world.pool.stats().leased).toBe(0);
  world.pool.resume();
  expect(notes.story).toEqual(['lease?', 'permit?', 'lease back', 'lease?', 'permit?']);
});

test('A dial takes no permit while there is no lease', () => {
  const { notes, world } = noted();
  notes.answer = new Error('none left');
  world.ask();
  world.advance(10_000);
  expect(notes.story).not.toContain('permit?');
  expect(world.pool.stats().totals.refillFailures.lease_acquire).toBe(notes.story.length);
});

test('A dial is urgent where fewer live than it takes to be of use', () => {
  const { notes, world } = noted({ max: 3, reservoir: { targetReady: 3, lowWatermark: 2 }, dialLimit: 1 });
  const seen: (boolean | undefined)[] = [];
  for (let n = 0; n < 3; n++) {
    seen.push(notes.isUrgent);
    for (const dial of [...world.server.dials]) dial.succeed();
  }
  expect(seen).toEqual([true, true, false]);
});

test('A dial is not urgent where none are needed, from the first on', () => {
  const { notes } = noted({ reservoir: { targetReady: 2, lowWatermark: 0 } });
  expect(notes.isUrgent).toBe(false);
});

test('A dial that was told to wait in need asks in need once more, for a permit that may have been kept for it', () => {
  const granted: string[] = [];
  const limiter: RateLimiter = {
    take: (now, isUrgent) => {
      if (granted.length > 0 && now < 1_100) return 1_100 - now;
      granted.push(isUrgent ? 'in need' : 'not');
      return 0;
    },
  };
  const reservoir = { targetReady: 3, lowWatermark: 1 };
  const world = new VirtualWorld({ max: 3, rateLimiter: limiter, reservoir });
  world.advance(dialMs);
  expect(world.pool.live).toBe(1);
  world.advance(100);
  expect(granted).toEqual(['in need', 'in need', 'not']);
});

test('A dial that is late gives its lease back when its socket is gone, and once', () => {
  const { notes, world } = noted({
    dialTimeout: 100,
    closeTimeout: 50,
    breakerThreshold: 1,
    backoffBase: '1m',
    backoffCap: '1m',
  });
  world.server.manners.onAbandon = () => {};
  world.ask();
  const [dial] = world.server.dials;
  world.advance(100);
  expect(notes.story).not.toContain('lease back');
  dial?.succeed();
  world.advance(10);
  expect(notes.story.filter((what) => what === 'lease back')).toHaveLength(1);
  expect(reasons(world)).toEqual({ late_dial: 1 });
});

test('A budget that is asked and answers later is asked again when it says that it is worth it', () => {
  const { notes, world } = noted();
  notes.answer = 'asking';
  world.askMany(2);
  world.advance(5_000);
  expect(notes.story).toEqual(['lease?']);
  notes.answer = 'granted';
  notes.holder?.leasesAvailable();
  expect(notes.story.slice(1)).toEqual(['lease?', 'permit?', 'dial', 'lease?', 'permit?', 'dial']);
});

test('A budget that is asked and says no, later, is asked again after a backoff, sooner when it says that it is worth it', () => {
  const { notes, world } = noted({ backoffBase: '2s' });
  notes.answer = 'asking';
  world.ask();
  notes.holder?.leasesRefused(new Error('none left'));
  expect(world.pool.lastDialError).toEqual(new Error('none left'));
  world.advance(999);
  expect(notes.story).toEqual(['lease?']);
  world.advance(1);
  expect(notes.story).toEqual(['lease?', 'lease?']);
  notes.holder?.leasesRefused(new Error('none left'));
  // The second in a row: it is left alone for twice as long.
  world.advance(1_999);
  expect(notes.story).toHaveLength(2);
  world.advance(1);
  notes.holder?.leasesRefused(new Error('none left'));
  notes.answer = 'granted';
  notes.holder?.leasesAvailable();
  expect(notes.story.slice(3)).toEqual(['lease?', 'permit?', 'dial']);
  expect(world.pool.lastDialError).toBeUndefined();
});

test('A budget that is asked has one again that the pool itself gave back: that one is asked for at once', () => {
  const { notes, world } = noted({ backoffBase: '1m', backoffCap: '1m' });
  const first = world.ask();
  [...world.server.dials][0]?.succeed();
  notes.answer = new Error('none left');
  const second = world.ask();
  first.release(new Error('bad'));
  notes.answer = 'granted';
  world.advance(1);
  [...world.server.dials][0]?.succeed();
  expect(second.outcome).toBe('granted');
});

test('A budget that is asked and throws has said no, and nothing else suffers: callers are told in time, and the next answer counts', () => {
  let throws = true;
  const leases: Leases = {
    acquire: () => {
      if (throws) throw new Error('unreachable');
      return 'granted';
    },
    release: () => {
      throw new Error('unreachable');
    },
  };
  const world = new VirtualWorld({ max: 1, leases, backoffCap: '1s' });
  const caller = world.ask(5_000);
  world.advance(5_000);
  expect(caller.error).toMatchObject({ code: 'HG_ACQUIRE_TIMEOUT', cause: new Error('unreachable') });
  throws = false;
  const other = world.ask(5_000);
  world.advance(1_000);
  other.release(new Error('bad'));
  world.advance(10);
  expect(world.pool.counts()).toMatchObject({ live: 0, closing: 0 });
  expect(world.ask().outcome).toBe('waiting');
  world.advance(dialMs);
  expect(world.pool.inUse).toBe(1);
});

test('A budget that is asked and lets the request wait hands the lease over when there is one, and is not asked again until then', () => {
  const { notes, world } = noted();
  notes.answer = { reason: new Error('none left') };
  const caller = world.ask();
  world.advance(60_000);
  expect(notes.story).toEqual(['lease?']);
  expect(world.pool.lastDialError).toEqual(new Error('none left'));
  expect(world.pool.stats().totals.refillFailures.lease_acquire).toBe(1);
  expect(notes.holder?.leasesGranted(1)).toBe(1);
  expect(notes.story.slice(1)).toEqual(['permit?', 'dial']);
  expect(world.pool.lastDialError).toBeUndefined();
  [...world.server.dials][0]?.succeed();
  expect(caller.outcome).toBe('granted');
});

test('A budget that is asked and says later that the request waits is not asked again until it hands the lease over', () => {
  const { notes, world } = noted();
  notes.answer = 'asking';
  world.ask();
  notes.holder?.leasesDelayed?.(new Error('none left'));
  world.advance(60_000);
  expect(notes.story).toEqual(['lease?']);
  expect(world.pool.stats().totals.refillFailures.lease_acquire).toBe(1);
  expect(notes.holder?.leasesGranted(1)).toBe(1);
  expect(notes.story.slice(1)).toEqual(['permit?', 'dial']);
});

test('A budget grants leases without effect when the request was withdrawn', () => {
  const { notes, world } = noted();
  notes.answer = { reason: new Error('none left') };
  const caller = world.ask();
  caller.abort();
  expect(notes.holder?.leasesGranted(1)).toBe(0);
  expect(world.pool.stats().leased).toBe(0);
});

test('A budget that is asked tells a caller whose time is up why its request waits', () => {
  const { notes, world } = noted();
  notes.answer = { reason: new Error('none left') };
  const caller = world.ask(5_000);
  world.advance(5_000);
  expect(caller.error).toMatchObject({ code: 'HG_ACQUIRE_TIMEOUT', cause: new Error('none left') });
});

test('A budget that is asked is asked again, and counts no further failure, when the pool releases a lease while its request waits', () => {
  const { notes, world } = noted();
  const first = world.ask();
  [...world.server.dials][0]?.succeed();
  notes.answer = { reason: new Error('none left') };
  const second = world.ask();
  first.release(new Error('bad'));
  world.advance(1);
  expect(notes.story.slice(-2)).toEqual(['lease back', 'lease?']);
  expect(world.pool.stats().totals.refillFailures.lease_acquire).toBe(1);
  notes.holder?.leasesGranted(1);
  [...world.server.dials][0]?.succeed();
  expect(second.outcome).toBe('granted');
});

test('A budget that is asked knows the pool by its name', () => {
  const { notes, world } = noted();
  world.ask();
  expect(notes.holder?.name).toBe('pool');
});

test('A lease that is lost closes an idle connection, or one that comes back, and is not given back', () => {
  const { notes, world } = noted();
  const callers = world.askMany(2);
  for (const dial of [...world.server.dials]) dial.succeed();
  callers[0]?.release();
  notes.holder?.leasesLost(2);
  expect(reasons(world)).toEqual({ lease_lost: 1 });
  callers[1]?.release();
  expect(reasons(world)).toEqual({ lease_lost: 2 });
  world.advance(10);
  expect(notes.story).not.toContain('lease back');
  expect(world.pool.stats()).toMatchObject({ leased: 0, live: 0, closing: 0 });
});

test('A lease that is lost closes a connection that is being opened when it arrives', () => {
  const { notes, world } = noted();
  world.ask();
  notes.holder?.leasesLost(1);
  for (const dial of [...world.server.dials]) dial.succeed();
  expect(reasons(world)).toEqual({ lease_lost: 1 });
});

test('A lease that is lost lets no dial begin until it is paid for', () => {
  const { notes, world } = noted();
  const caller = world.ask();
  for (const dial of [...world.server.dials]) dial.succeed();
  notes.holder?.leasesLost(1);
  const other = world.ask();
  world.advance(1_000);
  expect(world.server.dialed).toBe(1);
  caller.release();
  world.advance(1);
  expect(world.server.dialed).toBe(2);
  for (const dial of [...world.server.dials]) dial.succeed();
  expect(other.outcome).toBe('granted');
});

test('A second chance is a dial with a lease and a permit of its own, and no failure', () => {
  const { notes, world } = noted();
  const caller = world.ask();
  [...world.server.dials][0]?.failForNow();
  expect(notes.story).toEqual(['lease?', 'permit?', 'dial', 'lease back', 'lease?', 'permit?', 'dial']);
  expect(world.pool.stats().totals).toMatchObject({ dialsFailed: 0 });
  [...world.server.dials][0]?.succeed();
  expect(caller.outcome).toBe('granted');
});

test('A second chance is given once: a dial that fails again has failed', () => {
  const { world } = noted();
  world.ask();
  [...world.server.dials][0]?.failForNow();
  const [second] = world.server.dials;
  expect(second && world.pool.dialAgain(second.dial)).toBe(false);
  second?.failForNow();
  expect(world.pool.stats().totals.refillFailures.connection_open).toBe(1);
});

test('A second chance waits for its permit like any other', () => {
  const { notes, world } = noted();
  world.ask();
  notes.waitMs = 100;
  [...world.server.dials][0]?.failForNow();
  expect(world.server.dialed).toBe(1);
  notes.waitMs = 0;
  world.advance(100);
  expect(world.server.dialed).toBe(2);
});

test('A second chance is not kept for another dial when its caller has left', () => {
  const { notes, world } = noted();
  const caller = world.ask();
  notes.waitMs = 100;
  [...world.server.dials][0]?.failForNow();
  caller.abort();
  notes.waitMs = 0;
  world.ask();
  const [dial] = world.server.dials;
  expect(dial?.dial.isSecondChance).toBe(false);
});

test('A second chance is one: the dial after it is a first one', () => {
  const { world } = noted();
  world.askMany(2);
  [...world.server.dials][0]?.failForNow();
  const [, second] = world.server.dials;
  expect(second?.dial.isSecondChance).toBe(true);
  second?.succeed();
  for (const lease of [...world.leases]) lease.release(new Error('bad'));
  world.ask();
  world.advance(1);
  expect([...world.server.dials].at(-1)?.dial.isSecondChance).toBe(false);
});

test('A second chance is not for a dial that was given up', () => {
  const world = new VirtualWorld({ max: 1, dialTimeout: 50 }, { manners: silent });
  world.ask();
  const [dial] = world.server.dials;
  world.advance(50);
  expect(dial && world.pool.dialAgain(dial.dial)).toBe(false);
});

test('A rate limiter is told of each connection that is opened, and when the server finds that too fast', () => {
  const told: string[] = [];
  const limiter: RateLimiter = {
    take: () => 0,
    opened: (now) => told.push(`opened at ${now}`),
    refused: (now) => told.push(`refused at ${now}`),
  };
  const world = new VirtualWorld({ max: 2, rateLimiter: limiter }, { manners: silent });
  world.askMany(2);
  world.advance(5);
  const [first, second] = world.server.dials;
  first?.succeed();
  world.pool.rateExceeded();
  second?.fail(new Error('53400'), 'rate_limit');
  expect(told).toEqual(['opened at 1005', 'refused at 1005']);
  expect(world.pool.stats().totals.refillFailures).toMatchObject({ rate_limit: 1, connection_open: 0 });
});

test('A rate limiter that throws has said no: it is asked again after a backoff, and that is counted as its failure', () => {
  let failing = true;
  const error = new Error('unreachable');
  const limiter: RateLimiter = {
    take: () => {
      if (failing) throw error;
      return 0;
    },
  };
  const world = new VirtualWorld({ max: 1, rateLimiter: limiter, backoffBase: 100 }, { random: half });
  const caller = world.ask();
  expect(world.pool.lastDialError).toBe(error);
  world.advance(50);
  world.advance(100);
  expect(world.pool.stats().totals).toMatchObject({ dialsFailed: 0, opened: 0 });
  expect(world.pool.stats().totals.refillFailures.rate_limit).toBe(3);
  failing = false;
  world.advance(1_000);
  expect(caller.outcome).toBe('granted');
  expect(world.pool.lastDialError).toBeUndefined();
});

test('A rate limiter that throws is left alone until the backoff is over, however many ask', () => {
  let asked = 0;
  const limiter: RateLimiter = {
    take: () => {
      asked++;
      throw new Error('unreachable');
    },
  };
  const world = new VirtualWorld({ max: 5, rateLimiter: limiter, backoffBase: 100 }, { random: half });
  world.askMany(5);
  world.advance(49);
  expect(asked).toBe(1);
  world.advance(1);
  expect(asked).toBe(2);
});

test('A rate limiter that throws something that is no error is told as one', () => {
  const limiter: RateLimiter = {
    take: () => {
      throw 'gone';
    },
  };
  const world = new VirtualWorld({ max: 1, rateLimiter: limiter });
  world.ask();
  expect(world.pool.lastDialError).toEqual(new Error('gone'));
});

test('A rate limiter that throws while the delay that is drawn is none does not leave a caller behind', () => {
  let throws = 1;
  const limiter: RateLimiter = {
    take: () => {
      if (throws-- > 0) throw new Error('unreachable');
      return 0;
    },
  };
  const world = new VirtualWorld({ max: 1, rateLimiter: limiter }, { random: { next: () => 0 } });
  const caller = world.ask();
  world.advance(dialMs);
  expect(caller.outcome).toBe('granted');
});
