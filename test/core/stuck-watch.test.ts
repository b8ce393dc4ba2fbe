// When a pool says that it makes someone wait: once, as soon as the wait is long, and then seldom.
import { expect, test } from 'vitest';
import { ConnectionPool } from '../../src/core/connection-pool.js';
import type { Dialer } from '../../src/core/dialer.js';
import type { PoolListener } from '../../src/core/pool-listener.js';
import { readPolicy } from '../../src/core/pool-policy.js';
import type { StuckReport } from '../../src/core/stuck-report.js';
import { Waiter } from '../../src/core/waiters.js';
import type { AlarmFactory } from '../../src/kernel/clock.js';
import { OptionReader } from '../../src/kernel/option-reader.js';
import { SeededRandom } from '../../src/kernel/random.js';
import { Planned, Timeline } from '../../src/simulator/time/timeline.js';

const never = Number.POSITIVE_INFINITY;

class Caller extends Waiter<object> {
  override granted(): void {}
  override failed(): void {}
}

/** Everything else is of no interest. */
function hearing(some: Partial<PoolListener<object>>): PoolListener<object> {
  const get = (_: object, name: string) => some[name as keyof typeof some] ?? (() => {});
  return new Proxy({}, { get }) as PoolListener<object>;
}

/** A pool of two connections, which opens them at once, and warns after five seconds. */
function start() {
  const time = new Timeline();
  const clock = { now: () => time.now, coarse: () => time.now, arrival: () => time.now };
  const alarm: AlarmFactory = (ring) => {
    const planned = new Planned(0, ring);
    return {
      granularityMs: 1,
      set: (at) => time.replan(planned, at),
      keepProcessAlive: () => {},
      clear: () => time.cancel(planned),
    };
  };
  const told: [number, StuckReport<object>['waits'], number][] = [];
  const dialer: Dialer<object> = {
    dial: (dial) => pool.dialed(dial, {}),
    abandon: () => {},
    close: (connection) => pool.closed(connection),
    destroy: () => {},
    check: () => {},
  };
  const pool: ConnectionPool<object> = new ConnectionPool<object>({
    policy: readPolicy(new OptionReader({ max: 2 }), false),
    dialer,
    clock,
    alarm,
    random: new SeededRandom(1),
    listener: hearing({ stuck: ({ waits, seenAgain }) => told.push([time.now, waits, seenAgain]) }),
    warnAfter: 5_000,
  });
  const ask = (): void => pool.enqueue(new Caller(), never);
  return { pool, told, ask, until: (at: number) => time.runUntil(at) };
}

test('a caller that waits for long is reported when it has waited for as long as warnAfter says, whoever waited before it', () => {
  const { told, ask, until } = start();
  ask();
  ask();
  until(30);
  ask();
  until(60_000);
  expect(told).toEqual([[5_030, 'callers', 0]]);
});

test('an end() that waits is reported, although callers were before', () => {
  const { pool, told, ask, until } = start();
  for (let n = 0; n < 3; n++) ask();
  until(7_000);
  pool.drain(never, () => {});
  until(60_000);
  expect(told.map(([at, waits]) => [at, waits])).toEqual([
    [5_000, 'callers'],
    [12_000, 'end'],
  ]);
});

test('a wait that goes on is reported again after one minute, then after two, with what was seen meanwhile', () => {
  const { told, ask, until } = start();
  for (let n = 0; n < 3; n++) ask();
  until(500_000);
  expect(told).toEqual([
    [5_000, 'callers', 0],
    [65_000, 'callers', 11],
    [185_000, 'callers', 23],
    [425_000, 'callers', 47],
  ]);
});
