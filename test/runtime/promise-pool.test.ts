// The engine as programs use it: promises, signals and `await using`, in real time but without depending on it.
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import {
  AcquireAbortedError,
  AcquireTimeoutError,
  PoolClosedError,
  ReadyTimeoutError,
} from '../../src/core/errors.js';
import { PromisePool, type PromisePoolOptions } from '../../src/runtime/promise-pool.js';
import { nextTurn, rejectionOf, watch } from '../support/outcomes.js';
import { type FakeConnection, FakeConnections, gate } from './fake-connections.js';

function poolOf(options: Partial<PromisePoolOptions<FakeConnection>> = {}): {
  pool: PromisePool<FakeConnection>;
  made: FakeConnections;
} {
  const made = new FakeConnections();
  const { connect, close, destroy } = made;
  return { made, pool: new PromisePool<FakeConnection>({ connect, close, destroy, ...options }) };
}

test('Acquiring opens connections as they are needed, up to the limit, and hands them on', async () => {
  const { pool, made } = poolOf({ max: 3 });
  const work = Array.from({ length: 50 }, async () => {
    const lease = await pool.acquire();
    expect(lease.connection.isOpen).toBe(true);
    await nextTurn();
    lease.release();
  });
  await Promise.all(work);
  expect(made.peak).toBe(3);
  expect(pool.stats()).toMatchObject({ idle: 3, inUse: 0, waiting: 0, peak: 3 });
  await pool.drain();
});

test('Acquiring counts the timeout of a caller from when it asked, however long the program was busy before that', async () => {
  const { pool } = poolOf({ max: 1 });
  const lease = await pool.acquire();
  await nextTurn();
  expect(pool.tryAcquire()).toBeUndefined();
  const early = watch(pool.acquire({ timeout: 10_000 }));
  const busyUntil = performance.now() + 60;
  while (performance.now() < busyUntil);
  const late = watch(pool.acquire({ timeout: 50 }));
  await nextTurn();
  lease.release();
  (await early.promise).release();
  await expect(late.promise).resolves.toBeDefined();
  (await late.promise).release();
  await pool.drain();
});

test('Acquiring gives a ready connection at once, in the synchronous form, or none', async () => {
  const { pool } = poolOf({ max: 1 });
  expect(pool.tryAcquire()).toBeUndefined();
  (await pool.acquire()).release();
  const lease = pool.tryAcquire();
  expect(lease?.connection.id).toBe(1);
  expect(pool.tryAcquire()).toBeUndefined();
  lease?.release();
  await pool.drain();
});

test('Acquiring serves callers in the order in which they asked', async () => {
  const { pool } = poolOf({ max: 1 });
  const first = await pool.acquire();
  const order: number[] = [];
  const work = Array.from({ length: 20 }, async (_, n) => {
    const lease = await pool.acquire();
    order.push(n);
    lease.release();
  });
  first.release();
  await Promise.all(work);
  expect(order).toEqual(Array.from({ length: 20 }, (_, n) => n));
  await pool.drain();
});

test('Acquiring is given back at the end of the block by `await using` and by `using`, also when the block throws', async () => {
  const { pool } = poolOf({ max: 1 });
  const fails = async (): Promise<void> => {
    await using lease = await pool.acquire();
    expect(lease.connection.id).toBe(1);
    throw new Error('from the block');
  };
  await expect(fails()).rejects.toThrow('from the block');
  {
    using lease = await pool.acquire();
    expect(lease.connection.id).toBe(1);
    // A lease that was given back by hand is not given back again.
    lease.release();
  }
  expect(pool.stats()).toMatchObject({ idle: 1, inUse: 0 });
  await pool.drain();
});

test('Acquiring closes the connection that comes back with an error, or is destroyed, instead of using it again', async () => {
  const { pool, made } = poolOf({ max: 1 });
  (await pool.acquire()).release(new Error('bad'));
  const second = await pool.acquire();
  expect(second.connection.id).toBe(2);
  second.destroy();
  expect((await pool.acquire()).connection.id).toBe(3);
  expect(made.peak).toBe(1);
  expect(pool.stats().totals.discarded.released_with_error).toBe(2);
  await pool.drain({ deadline: 1 });
});

test('Waiting ends at its timeout, with an error that says how the pool stands, and the pool works on', async () => {
  const { pool } = poolOf({ max: 1, acquireTimeout: 5 });
  const lease = await pool.acquire();
  const error = await rejectionOf(pool.acquire());
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect(error).toMatchObject({ code: 'HG_ACQUIRE_TIMEOUT', name: 'AcquireTimeoutError' });
  expect(error.message).toContain('limit 1: 1 in use, 0 idle');
  await expect(pool.acquire({ timeout: '3ms' })).rejects.toThrow(AcquireTimeoutError);
  lease.release();
  (await pool.acquire()).release();
  await pool.drain();
});

test('Waiting without a timeout goes on until there is a connection', async () => {
  const { pool } = poolOf({ max: 1, acquireTimeout: 1 });
  const lease = await pool.acquire({ timeout: '10s' });
  const waiting = watch(pool.acquire({ timeout: 0 }));
  await rejectionOf(pool.acquire());
  expect(waiting.settled).toBe(false);
  lease.release();
  (await waiting.promise).release();
  await pool.drain();
});

test('Waiting ends when its signal fires, with the reason of the signal, and the next in the queue is served', async () => {
  const { pool } = poolOf({ max: 1 });
  const lease = await pool.acquire();
  const controller = new AbortController();
  const aborted = pool.acquire({ signal: controller.signal });
  const next = pool.acquire();
  controller.abort(new Error('the client went away'));
  const error = await rejectionOf(aborted);
  expect(error).toBeInstanceOf(AcquireAbortedError);
  expect(error.cause).toMatchObject({ message: 'the client went away' });
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  lease.release();
  (await next).release();
  await pool.drain();
});

test('Waiting does not begin when the signal has fired already, even if a connection is ready', async () => {
  const { pool } = poolOf({ max: 1 });
  (await pool.acquire()).release();
  const error = await rejectionOf(pool.acquire({ signal: AbortSignal.abort('too late') }));
  expect(error).toBeInstanceOf(AcquireAbortedError);
  expect(error.cause).toBe('too late');
  expect(pool.stats()).toMatchObject({ idle: 1, inUse: 0, waiting: 0 });
  await pool.drain();
});

test('Waiting leaves no listener on a long-lived signal, whatever the outcome', async () => {
  const { pool } = poolOf({ max: 1 });
  const { signal } = new AbortController();
  for (let n = 0; n < 20; n++) {
    const lease = await pool.acquire({ signal });
    const served = pool.acquire({ signal });
    await rejectionOf(pool.acquire({ signal, timeout: 1 }));
    lease.release();
    (await served).release();
  }
  const drained = pool.drain();
  await rejectionOf(pool.acquire({ signal }));
  await drained;
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('Waiting of many callers with one signal needs one listener, and ends for all of them when it fires', async () => {
  const { pool } = poolOf({ max: 1 });
  const lease = await pool.acquire();
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = Array.from({ length: 50 }, () => rejectionOf(pool.acquire({ signal })));
  const other = pool.acquire();
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  controller.abort();
  for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(AcquireAbortedError);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  expect(pool.stats()).toMatchObject({ waiting: 1 });
  lease.release();
  (await other).release();
  await pool.drain();
});

test('Waiting of a hundred thousand callers ends for each of them', async () => {
  const { pool, made } = poolOf({ max: 10 });
  let served = 0;
  const work = Array.from({ length: 100_000 }, async () => {
    const lease = await pool.acquire();
    served++;
    lease.release();
  });
  expect(pool.stats().waiting).toBe(100_000);
  await Promise.all(work);
  expect(served).toBe(100_000);
  expect(made.peak).toBeLessThanOrEqual(10);
  expect(pool.stats()).toMatchObject({ waiting: 0, inUse: 0 });
  await pool.drain();
});

test('Waiting of a hundred thousand callers ends with a timeout for each of them when nothing comes back', async () => {
  const { pool } = poolOf({ max: 1 });
  const lease = await pool.acquire();
  const outcomes = Array.from({ length: 100_000 }, (_, n) =>
    rejectionOf(pool.acquire({ timeout: 1 + (n % 20) })),
  );
  const errors = await Promise.all(outcomes);
  expect(errors.every((error) => error instanceof AcquireTimeoutError)).toBe(true);
  expect(pool.stats().totals.timedOut).toBe(100_000);
  lease.release();
  await pool.drain();
});

test('Readiness comes with the spares, or with as many as were asked for', async () => {
  const { pool, made } = poolOf({ max: 5, minIdle: 2 });
  await pool.ready();
  expect(made.open.size).toBe(2);
  await pool.ready(4);
  expect(made.open.size).toBe(4);
  expect(pool.stats().idle).toBe(4);
  await pool.drain();
});

test('Readiness that does not come in time is an error with the reason', async () => {
  const refused = new Error('connection refused');
  const { pool } = poolOf({ connect: () => Promise.reject(refused) });
  const error = await rejectionOf(pool.ready(2, { timeout: 20 }));
  expect(error).toBeInstanceOf(ReadyTimeoutError);
  expect(error.message).toContain('2 connections were not ready within 20ms');
  expect(error.cause).toBe(refused);
  await pool.drain();
});

test('Pausing and resizing holds callers back and serves them afterwards', async () => {
  const { pool, made } = poolOf({ max: 2 });
  pool.pause();
  const waiting = watch(pool.acquire());
  await nextTurn();
  expect([waiting.settled, made.opened]).toEqual([false, 0]);
  pool.resume();
  (await waiting.promise).release();
  await pool.drain();
});

test('Pausing and resizing changes the limit of a pool in use', async () => {
  const { pool, made } = poolOf({ max: 1 });
  const first = await pool.acquire();
  const second = pool.acquire();
  pool.resize(2);
  const leases = [first, await second];
  expect(made.open.size).toBe(2);
  pool.resize(1);
  for (const lease of leases) lease.release();
  await nextTurn();
  expect(made.open.size).toBe(1);
  expect(pool.stats().totals.discarded.over_limit).toBe(1);
  await pool.drain();
});

test('Draining resolves when every connection is gone, not before', async () => {
  const closing = gate();
  const made = new FakeConnections();
  const close = async (connection: FakeConnection): Promise<void> => {
    await closing.promise;
    made.remove(connection);
  };
  const pool = new PromisePool({ connect: made.connect, close, max: 2 });
  await pool.ready(2);
  const drained = watch(pool.drain());
  await nextTurn();
  expect(drained.settled).toBe(false);
  expect(pool.stats()).toMatchObject({ state: 'draining', closing: 2 });
  closing.open();
  await drained.promise;
  expect(made.open.size).toBe(0);
  expect(pool.stats()).toMatchObject({ state: 'closed', closing: 0, live: 0 });
});

test('Draining answers everyone in the queue, serves them while it can and refuses newcomers', async () => {
  const { pool, made } = poolOf({ max: 1 });
  const lease = await pool.acquire();
  const queued = pool.acquire();
  const drained = pool.drain();
  await expect(pool.acquire()).rejects.toThrow(PoolClosedError);
  expect(pool.tryAcquire()).toBeUndefined();
  lease.release();
  (await queued).release();
  await drained;
  expect(made.open.size).toBe(0);
});

test('Draining at its deadline destroys what is not given back', async () => {
  const { pool, made } = poolOf({ max: 1 });
  const lease = await pool.acquire();
  const queued = rejectionOf(pool.acquire());
  await pool.drain({ deadline: 5 });
  expect(await queued).toBeInstanceOf(PoolClosedError);
  expect([made.open.size, made.destroyed]).toEqual([0, 1]);
  lease.release();
});

test('Draining may be asked for again, and is what `await using` of the pool does', async () => {
  const { pool, made } = poolOf({ max: 1 });
  {
    await using used = pool;
    (await used.acquire()).release();
  }
  expect(made.open.size).toBe(0);
  await Promise.all([pool.drain(), pool.drain({ deadline: '1s' })]);
});

test('Draining gives up dials that no caller waits for, and tells connect() so through its signal', async () => {
  let signal: AbortSignal | undefined;
  const { pool } = poolOf({
    minIdle: 1,
    closeTimeout: 20,
    connect: (context) => {
      signal = context.signal;
      return new Promise((_, reject) => {
        context.signal.addEventListener('abort', () => reject(new Error('stopped')));
      });
    },
  });
  await nextTurn();
  await pool.drain();
  expect(signal?.aborted).toBe(true);
});
