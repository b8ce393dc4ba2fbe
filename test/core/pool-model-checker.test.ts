// The laws can fail: each of these pools is spoiled in one way, and the search must find it and say what is wrong.
import { expect, test } from 'vitest';
import { ConnectionPool } from '../../src/core/connection-pool.js';
import type { Dial } from '../../src/core/dialer.js';
import type { PooledConnection } from '../../src/core/pooled-connection.js';
import type { Waiter } from '../../src/core/waiters.js';
import type { Clock } from '../../src/kernel/clock.js';
import type { FakeSocket } from '../support/fake-server.js';
import { play, type Sabotage } from './model/play.js';
import { find, misled, type Parts, spoiled } from './model/sabotage.js';
import { drawScenario } from './model/scenario.js';
import { describeFinding } from './model/search.js';

type Pooled = PooledConnection<FakeSocket>;

const never = Number.POSITIVE_INFINITY;

class Forgetful extends ConnectionPool<FakeSocket> {
  override closed(): void {}
}

class Leaky extends ConnectionPool<FakeSocket> {
  override dialFailed(_dial: Dial<FakeSocket>): void {}
}

class Stingy extends ConnectionPool<FakeSocket> {
  override tryTake(): Pooled | undefined {
    return this.idle > 0 ? undefined : super.tryTake();
  }
}

class Generous extends ConnectionPool<FakeSocket> {
  #last: Pooled | undefined;

  override tryTake(): Pooled | undefined {
    this.#last = this.#last?.state === 'in_use' ? this.#last : super.tryTake();
    return this.#last;
  }
}

class Unfair extends ConnectionPool<FakeSocket> {
  readonly #clock: Clock;
  readonly #queue: Waiter<FakeSocket>[] = [];

  constructor(parts: Parts) {
    super(parts);
    this.#clock = parts.clock;
  }

  override enqueue(waiter: Waiter<FakeSocket>, timeoutMs: number): void {
    super.enqueue(waiter, timeoutMs);
    if (!waiter.queued) return;
    this.#queue.push(waiter);
    const first = this.#queue.shift() as Waiter<FakeSocket>;
    if (this.withdraw(first)) super.enqueue(first, first.heapKey - this.#clock.now());
  }
}

class Forgiving extends ConnectionPool<FakeSocket> {
  override release(connection: Pooled, generation: number): void {
    super.release(connection, generation);
  }
}

class Careless extends ConnectionPool<FakeSocket> {
  override checked(connection: Pooled): void {
    super.checked(connection);
  }
}

class Deaf extends ConnectionPool<FakeSocket> {
  override broken(): void {}
}

class Talkative extends ConnectionPool<FakeSocket> {
  override abort(waiter: Waiter<FakeSocket>, error: Error): boolean {
    if (waiter.queued) waiter.failed(error);
    return super.abort(waiter, error);
  }
}

class Stubborn extends ConnectionPool<FakeSocket> {
  override resize(): void {}
}

class Restless extends ConnectionPool<FakeSocket> {
  override pause(): void {}
}

class Unwelcoming extends ConnectionPool<FakeSocket> {
  override enqueue(waiter: Waiter<FakeSocket>): void {
    waiter.failed(new Error('go away'));
  }
}

class Repetitive extends ConnectionPool<FakeSocket> {
  override drain(deadline: number, onDrained: () => void): void {
    super.drain(deadline, () => {
      onDrained();
      onDrained();
    });
  }
}

/** Says that a socket is gone when it was only told to go, as most pools do. */
function hasty(parts: Parts): ConnectionPool<FakeSocket> {
  const { dialer } = parts;
  const pool: ConnectionPool<FakeSocket> = new ConnectionPool({
    ...parts,
    dialer: {
      dial: (dial) => dialer.dial(dial),
      abandon: (dial) => dialer.abandon(dial),
      close: (connection) => {
        dialer.close(connection);
        pool.closed(connection);
      },
      destroy: (connection) => dialer.destroy(connection),
      check: (connection) => dialer.check(connection),
    },
  });
  return pool;
}

/** Opens one socket more than it says. */
function doubleDialer(parts: Parts): ConnectionPool<FakeSocket> {
  const { dialer } = parts;
  return new ConnectionPool({
    ...parts,
    dialer: {
      dial: (dial) => {
        dialer.dial(dial);
        dialer.dial(dial);
      },
      abandon: (dial) => dialer.abandon(dial),
      close: (connection) => dialer.close(connection),
      destroy: (connection) => dialer.destroy(connection),
      check: (connection) => dialer.check(connection),
    },
  });
}

/** Asks for no alarm. */
function deafToTime(parts: Parts): ConnectionPool<FakeSocket> {
  return new ConnectionPool({
    ...parts,
    alarm: (ring) => {
      const alarm = parts.alarm(ring);
      return { granularityMs: 0, set: () => {}, keepProcessAlive: () => {}, clear: () => alarm.clear() };
    },
  });
}

test.each<[string, Sabotage, RegExp]>([
  ['one connection above the limit', { limitLessBy: 1 }, /law 1|limit/],
  ['a slot that is freed before the socket is gone', spoiled(hasty), /counts closing 0, but it is 1|law 1/],
  ['a dialer that opens two for one approval', spoiled(doubleDialer), /law 1|counts|answered twice/],
  [
    'a socket that is gone and still counted',
    spoiled((p) => new Forgetful(p)),
    /counts closing 1, but it is 0/,
  ],
  ['an approval that never ends', spoiled((p) => new Leaky(p)), /counts pending 1, but it is 0/],
  ['a ready connection that is not given', spoiled((p) => new Stingy(p)), /law 3/],
  ['a connection given out twice', spoiled((p) => new Generous(p)), /given out while it is in_use/],
  ['a queue that is not served in order', spoiled((p) => new Unfair(p)), /served before/],
  [
    'a connection kept after an error',
    spoiled((p) => new Forgiving(p)),
    /released_with_error|after a release/,
  ],
  ['a connection kept after a failed check', spoiled((p) => new Careless(p)), /failed_check|checking/],
  ['a broken connection that is kept', spoiled((p) => new Deaf(p)), /broken/],
  ['two answers to one caller', spoiled((p) => new Talkative(p)), /was failed and then failed/],
  ['an error without a reason', spoiled((p) => new Unwelcoming(p)), /to be repeated|go away/],
  ['a limit that is not taken over', spoiled((p) => new Stubborn(p)), /counts limit|accepted/],
  ['a pause that does not pause', spoiled((p) => new Restless(p)), /paused/],
  ['a drain that ends twice', spoiled((p) => new Repetitive(p)), /drain was answered twice/],
  ['more dials than allowed', misled(() => ({ dialLimit: never })), /dials at once/],
  [
    'dials without permits',
    misled(() => ({ rateLimiter: undefined })),
    /dials with 0 permits|permits in a time/,
  ],
  ['probes in a crowd', misled(() => ({ threshold: never })), /probes at once/],
  ['too long a life', misled((p) => ({ maxLifetime: p.maxLifetime * 2 })), /given a life|after its end/],
  ['too many uses', misled((p) => ({ maxUses: p.maxUses + 1 })), /given out \d+ times|kept after/],
  ['too few spares', misled(() => ({ minIdle: 0 })), /spares/],
  ['dials that never end', misled(() => ({ dialTimeout: never })), /dial \d+ is due/],
  [
    'closes that never end',
    misled((p) => ({ closeTimeout: p.closeTimeout + 1 })),
    /the close of socket|abandoned/,
  ],
  ['idleness cut short', misled((p) => ({ idleTimeout: p.idleTimeout / 2 })), /not idle for that long/],
  ['idle connections without a check', misled(() => ({ checkAfterIdle: never })), /given out unchecked/],
  ['a keepalive that comes late', misled((p) => ({ keepalive: p.keepalive + 1 })), /keepalive/],
  ['leaks that nobody reports', misled(() => ({ leakThreshold: never })), /the leak of socket/],
  [
    'the wrong order of lending',
    misled((p) => ({ idleOrder: p.idleOrder === 'lifo' ? 'fifo' : 'lifo' })),
    /(lifo|fifo): socket \d+ before \d+/,
  ],
  ['an alarm that does not ring', spoiled(deafToTime), /the alarm is set for Infinity|law 4/],
])('The laws notice %s', (_what, sabotage, complaint) => {
  const finding = find(sabotage, 'plain');
  expect(finding.wrong.join('\n')).toMatch(complaint);
  // Small enough to be read.
  expect(finding.scenario.steps.length).toBeLessThan(16);
});

test('A finding names the seed and the way to see it again', () => {
  const finding = find({ limitLessBy: 1 }, 'plain');
  const text = describeFinding(finding, 'fair');
  expect(text).toContain(`Seed ${finding.scenario.seed} (fair, plain) breaks a law`);
  expect(text).toContain(`HEADGATE_SEED=${finding.scenario.seed} npm test -- test/core/pool-model`);
});

test('A finding is the same each time that the seed is played', () => {
  const seeds = Array.from({ length: 20 }, (_, seed) => drawScenario(seed, 'flaky', 'plain'));
  const sabotage = { limitLessBy: 1 };
  expect(seeds.map((scenario) => play(scenario, sabotage).wrong)).toEqual(
    seeds.map((scenario) => play(scenario, sabotage).wrong),
  );
});
