// The async context of what the classes of headgate/dynamodb ask their table.
import { AsyncLocalStorage } from 'node:async_hooks';
import { install } from '@sinonjs/fake-timers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DynamoLeases, DynamoNodeIds, DynamoRateLimiter } from '../../../src/dynamodb.js';
import { PromisePool } from '../../../src/engine.js';
import { nextTurn, watch } from '../../support/outcomes.js';

const current = new AsyncLocalStorage<number>();
let fakes: ReturnType<typeof install>;
let asked: (number | undefined)[] = [];

beforeEach(() => {
  asked = [];
  fakes = install({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
});
afterEach(() => fakes.uninstall());

/** A table that can't be reached: it is asked again and again. */
const options = {
  table: 'connections',
  endpoint: 'orders',
  client: {
    send: () => {
      asked.push(current.getStore());
      return Promise.reject(new Error('no way to the table'));
    },
  } as never,
};

async function asksOften(): Promise<void> {
  while (asked.length < 4) {
    await nextTurn();
    fakes.tick(1_000);
  }
}

test('A node id that a request waits for is asked for in no context, the first time and later', async () => {
  const lease = new DynamoNodeIds(options).lease();
  const waiting = watch(current.run(1, () => lease.ready(Date.now(), 600_000)));
  await asksOften();
  expect(new Set(asked)).toEqual(new Set([undefined]));
  const ended = lease.end(Date.now());
  fakes.tick(10_000);
  await ended;
  await waiting.promise.then(
    () => {},
    () => {},
  );
});

test.each([
  ['A lease', () => ({ leases: new DynamoLeases({ ...options, limit: 10 }) })],
  ['A permit', () => ({ rateLimiter: new DynamoRateLimiter({ ...options, rate: 1, burst: 10 }) })],
])(
  '%s that the dial of a request needs is asked for in no context, the first time and later',
  async (_what, makeOptions) => {
    const pool = new PromisePool({
      connect: () => ({}),
      max: 2,
      acquireTimeout: 0,
      warnAfter: 0,
      ...makeOptions(),
    });
    const waiting = watch(current.run(1, () => pool.acquire()));
    await asksOften();
    expect(new Set(asked)).toEqual(new Set([undefined]));
    const drained = pool.drain({ deadline: 1 });
    fakes.tick(1_000);
    await drained;
    await waiting.promise.then(
      () => {},
      () => {},
    );
  },
);
