// What the compiler says about the engine: a pool knows the type of its connections from `connect`, and hands out that.
// The compiler checks this file as a part of `npm test`; what is only for the compiler is never called.
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { expect, expectTypeOf, test } from 'vitest';
import {
  type AcquireOptions,
  type Checkout,
  type ConnectFailedError,
  type DiscardReason,
  type Duration,
  type HeadgateError,
  type PolicyOptions,
  type PoolChannels,
  PoolOptionsError,
  PromisePool,
  type PromisePoolOptions,
  type RateLimiter,
  TokenBucket,
} from '../../src/engine.js';
import type { Pool, PoolStats } from '../../src/index.js';
import { type ObservablePool, observePool } from '../../src/opentelemetry.js';
import HeadgatePgPool from '../../src/pg-pool.js';

/** Compiled, and not run. */
function compiled(_check: (pool: PromisePool<Socket>) => unknown): void {}

test('a PromisePool infers its connections from what connect() returns, now or later', () => {
  const plain = new PromisePool({ connect: () => ({ id: 1 }) });
  expectTypeOf(plain).toEqualTypeOf<PromisePool<{ id: number }>>();
  const later = new PromisePool({ connect: async () => new Socket() });
  expectTypeOf(later).toEqualTypeOf<PromisePool<Socket>>();
  const complete = new PromisePool({
    connect: async ({ signal }) => {
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      return connect({ port: 1, signal });
    },
    close: (connection) => {
      expectTypeOf(connection).toEqualTypeOf<Socket>();
    },
    destroy: (connection) => expectTypeOf(connection).toEqualTypeOf<Socket>(),
    check: (connection) => connection.writable,
  });
  expectTypeOf(complete).toEqualTypeOf<PromisePool<Socket>>();
  for (const pool of [plain, later, complete]) expect(pool.stats().live).toBe(0);
});

test('a PromisePool takes functions that answer at once and functions that answer later', () => {
  const options: PromisePoolOptions<Socket>[] = [
    { connect: () => new Socket() },
    { connect: () => new Socket(), close: () => {}, destroy: () => {}, check: () => true },
    { connect: async () => new Socket(), close: async () => {}, check: async () => false },
    { connect: async () => new Socket(), check: async () => {} },
    {
      connect: () => new Socket(),
      close: (socket) => once(socket.end(), 'close'),
      destroy: (socket) => socket.destroy(),
    },
  ];
  for (const each of options) expect(new PromisePool(each).name).toBe('pool');
  // @ts-expect-error a pool can't open connections without it
  expect(() => new PromisePool<Socket>({ max: 5 })).toThrow(PoolOptionsError);
  // @ts-expect-error another kind of connection
  expect(() => new PromisePool<Socket>({ connect: async () => 'connection' })).not.toThrow();
});

test('a PromisePool lends leases, which are given back in any of several ways', () => {
  compiled(async (pool) => {
    expectTypeOf(pool.acquire()).toEqualTypeOf<Promise<Checkout<Socket>>>();
    expectTypeOf(pool.acquire).parameter(0).toEqualTypeOf<AcquireOptions | undefined>();
    expectTypeOf(pool.tryAcquire()).toEqualTypeOf<Checkout<Socket> | undefined>();
    const lease = await pool.acquire({ timeout: '2s', signal: AbortSignal.abort() });
    expectTypeOf(lease.connection).toEqualTypeOf<Socket>();
    expectTypeOf(lease.release).toEqualTypeOf<(error?: unknown) => void>();
    lease.destroy();
    pool.release(lease, new Error('why'));
    using one = await pool.acquire();
    await using other = await pool.acquire();
    await using _ended = pool;
    // @ts-expect-error a lease is of one connection
    lease.connection = other.connection;
    // @ts-expect-error a lease of another kind of connection
    (pool as unknown as PromisePool<string>).release(one);
  });
});

test('a PromisePool is steered and watched', () => {
  compiled((pool) => {
    expectTypeOf(pool.ready(2, { timeout: '30s' })).toEqualTypeOf<Promise<void>>();
    expectTypeOf(pool.drain({ deadline: 500 })).toEqualTypeOf<Promise<void>>();
    expectTypeOf(pool.resize).toEqualTypeOf<(max: number) => void>();
    expectTypeOf(pool.stats()).toEqualTypeOf<PoolStats>();
    // @ts-expect-error the pool's own functions are not for its users
    pool.enqueue();
  });
});

test('a PromisePool takes durations as numbers and texts, and no option that it does not know', () => {
  expectTypeOf<Duration>().toEqualTypeOf<number | string>();
  const policy: PolicyOptions = {
    acquireTimeout: '30s',
    idleTimeout: 0,
    idleOrder: 'fifo',
    onDialFailure: 'reject',
  };
  expect(new PromisePool({ connect: () => 1, ...policy }).stats().limit).toBe(10);
  // @ts-expect-error no such option
  expect(() => new PromisePool({ connect: () => 1, maxx: 5 })).toThrow(PoolOptionsError);
  // @ts-expect-error that is the name in the drop-in
  expect(() => new PromisePool({ connect: () => 1, idleTimeoutMillis: 5 })).toThrow(PoolOptionsError);
  // @ts-expect-error not an order
  expect(() => new PromisePool({ connect: () => 1, idleOrder: 'random' })).toThrow(PoolOptionsError);
});

test('a PromisePool takes any rate limiter', () => {
  const own: RateLimiter = { take: (now) => (now > 0 ? 0 : 1) };
  expectTypeOf<TokenBucket>().toExtend<RateLimiter>();
  for (const rateLimiter of [own, new TokenBucket({ rate: 1, burst: 1 })]) {
    expect(new PromisePool({ connect: () => 1, rateLimiter }).stats().live).toBe(0);
  }
  // @ts-expect-error a bucket has a size
  expect(() => new TokenBucket({ rate: 1 })).toThrow(PoolOptionsError);
});

test('what both kinds of pool have in common is enough to observe them', () => {
  expectTypeOf<Pool>().toExtend<ObservablePool>();
  expectTypeOf<PromisePool<Socket>>().toExtend<ObservablePool>();
  expectTypeOf(observePool).returns.toHaveProperty('stop').toEqualTypeOf<() => void>();
});

test('what both kinds of pool have in common is told on typed channels', () => {
  expectTypeOf<PoolChannels['headgate:pool:discarded']['reason']>().toEqualTypeOf<DiscardReason>();
  compiled(() => {
    function on<N extends keyof PoolChannels>(name: N, listener: (message: PoolChannels[N]) => void): void {
      subscribe(name, (message) => listener(message as PoolChannels[N]));
    }
    on('headgate:pool:leak', ({ poolName, heldMs, takenAt, connectionId }) => {
      expectTypeOf([poolName, takenAt]).toEqualTypeOf<string[]>();
      expectTypeOf([heldMs, connectionId]).toEqualTypeOf<number[]>();
    });
  });
});

test('what both kinds of pool have in common are errors with a code, and with their numbers', () => {
  expectTypeOf<ConnectFailedError>().toExtend<HeadgateError>();
  expectTypeOf<Pick<ConnectFailedError, 'attempts' | 'retryAfterMs'>>().toEqualTypeOf<{
    readonly attempts: number;
    readonly retryAfterMs: number;
  }>();
});

test('the stand-in for pg-pool has the type of Pool', () => {
  expectTypeOf(HeadgatePgPool).toEqualTypeOf<typeof Pool>();
  expectTypeOf(new HeadgatePgPool({ max: 5 })).toEqualTypeOf<Pool>();
  expect(new HeadgatePgPool({ max: 5 }).stats().limit).toBe(5);
});
