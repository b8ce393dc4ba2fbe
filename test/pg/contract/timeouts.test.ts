// Timeouts of callers, in the queue or while a connection is opened.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FakeClient } from '../../support/fake-client.js';
import { type FaultyServer, startFaultyServer } from '../../support/faulty-server.js';
import { callbackOf, rejectionOf, watch } from '../../support/outcomes.js';
import { everyPool } from './every-pool.js';
import { useVirtualTime } from './virtual-timers.js';

everyPool(({ newPool }) => {
  test('timeouts in the queue reject connect() with an error that says so, and leave no waiter behind', async () => {
    const pool = newPool({ Client: FakeClient, max: 1, connectionTimeoutMillis: 50 });
    const client = await pool.connect();
    const error = await rejectionOf(pool.connect());
    expect(error.message).toContain('timeout exceeded when trying to connect');
    expect(pool.waitingCount).toBe(0);
    expect(pool.totalCount).toBe(1);
    client.release();
    await pool.end();
  });

  test('timeouts in the queue reach a connect callback without a client', async () => {
    const pool = newPool({ Client: FakeClient, max: 1, connectionTimeoutMillis: 50 });
    const client = await pool.connect();
    const [error, nobody] = await callbackOf((callback) => pool.connect(callback));
    expect(error).toBeInstanceOf(Error);
    expect(nobody).toBeUndefined();
    client.release();
    await pool.end();
  });

  test('timeouts in the queue hold for query() too, and the pool recovers', async () => {
    const pool = newPool({ Client: FakeClient, max: 1, connectionTimeoutMillis: 50 });
    const client = await pool.connect();
    expect((await rejectionOf(pool.query('select 1'))).message).toContain('timeout');
    client.release();
    await expect(pool.query('select 1')).resolves.toEqual({ rows: [] });
    await pool.end();
  });

  test('timeouts in the queue of one waiter do not disturb the waiters behind it', async () => {
    useVirtualTime();
    const pool = newPool({ Client: FakeClient, max: 1, connectionTimeoutMillis: 600 });
    const client = await pool.connect();
    const early = watch(pool.connect());
    await vi.advanceTimersByTimeAsync(300);
    const late = pool.connect();
    expect(pool.waitingCount).toBe(2);
    await vi.advanceTimersByTimeAsync(300);
    await rejectionOf(early.promise);
    expect(pool.waitingCount).toBe(1);
    client.release();
    expect(await late).toBe(client);
    client.release();
    await pool.end();
  });

  test('timeouts in the queue are never given a client afterwards', async () => {
    const pool = newPool({ Client: FakeClient, max: 1, connectionTimeoutMillis: 50 });
    const client = await pool.connect();
    const outcome = vi.fn();
    pool.connect(outcome);
    await vi.waitFor(() => expect(outcome).toHaveBeenCalled());
    client.release();
    expect(pool.idleCount).toBe(1);
    await pool.query('select 1');
    await pool.end();
    expect(outcome).toHaveBeenCalledTimes(1);
  });

  test('timeouts in the queue do not reach callers that were served in time', async () => {
    const pool = newPool({ Client: FakeClient, max: 1, connectionTimeoutMillis: 150 });
    const client = await pool.connect();
    const served = vi.fn();
    pool.connect(served);
    client.release();
    await vi.waitFor(() => expect(served).toHaveBeenCalled());
    // A caller that comes after it and times out shows that the first one's time has passed as well.
    await rejectionOf(pool.connect());
    expect(served).toHaveBeenCalledTimes(1);
    expect(served).toHaveBeenCalledWith(undefined, client, client.release);
    client.release();
    await pool.end();
  });
});

everyPool(({ newPool, server, sessionsOf }) => {
  let front: FaultyServer;

  beforeEach(async () => {
    front = await startFaultyServer(server());
  });

  afterEach(async () => {
    await front.stop();
  });

  test('timeouts while connecting reject connect() and query() and leave nothing behind', async () => {
    front.stall();
    const pool = newPool({ port: front.port, connectionTimeoutMillis: 50 });
    expect((await rejectionOf(pool.connect())).message).toContain('timeout');
    expect((await rejectionOf(pool.query('select 1'))).message).toContain('timeout');
    expect([pool.totalCount, pool.idleCount, pool.waitingCount]).toEqual([0, 0, 0]);
    expect(await sessionsOf(pool)).toEqual([]);
  });

  test('timeouts while connecting give a callback the error, no client, and a function', async () => {
    front.stall();
    const pool = newPool({ port: front.port, connectionTimeoutMillis: 50 });
    const [error, client] = await callbackOf((callback) => pool.connect(callback));
    expect((error as Error).message).toContain('timeout');
    expect(client).toBeUndefined();
    expect(pool.idleCount).toBe(0);
  });

  test('timeouts while connecting reach the caller that connects and the caller behind it', async () => {
    front.stall();
    const pool = newPool({ port: front.port, max: 1, connectionTimeoutMillis: 100 });
    const connecting = watch(pool.connect());
    const waiting = watch(pool.connect());
    expect(pool.waitingCount).toBe(1);
    expect((await rejectionOf(connecting.promise)).message).toContain('timeout');
    expect((await rejectionOf(waiting.promise)).message).toContain('timeout');
    await vi.waitFor(() => expect([pool.totalCount, pool.waitingCount]).toEqual([0, 0]));
  });

  test('timeouts while connecting may come many times in a row, and the pool recovers', async () => {
    front.stall();
    const pool = newPool({ port: front.port, connectionTimeoutMillis: 40 });
    for (let turn = 0; turn < 15; turn += 1) {
      expect((await rejectionOf(pool.connect())).message).toContain('timeout');
    }
    front.behave();
    await vi.waitFor(() => pool.query('select 1'), { timeout: 20_000 });
    await pool.end();
  });

  test('timeouts while connecting leave a client that arrives after its caller has left in the pool, where it is used', async () => {
    useVirtualTime();
    const refusal = new Error('not yet');
    let dials = 0;
    let refuse = () => {};
    let letThrough = () => {};
    class SlowClient extends FakeClient {
      override connect(callback: (error?: Error | null) => void): void {
        dials += 1;
        if (dials === 1) refuse = () => callback(refusal);
        else letThrough = () => super.connect(callback);
      }
    }
    const pool = newPool({ Client: SlowClient, max: 1, connectionTimeoutMillis: 700 });
    const first = watch(pool.connect());
    const outcome = vi.fn();
    // Its time runs from here, that of the connection made for it only from the failure of the first.
    pool.connect(outcome);
    await vi.advanceTimersByTimeAsync(400);
    refuse();
    expect(await rejectionOf(first.promise)).toBe(refusal);
    await vi.advanceTimersByTimeAsync(300);
    expect(outcome).toHaveBeenCalledTimes(1);
    expect(outcome.mock.calls[0]?.[0]).toBeInstanceOf(Error);
    letThrough();
    await vi.advanceTimersByTimeAsync(0);
    expect(pool.idleCount).toBe(1);
    await expect(pool.query('select 1')).resolves.toEqual({ rows: [] });
    expect(dials).toBe(2);
    expect(outcome).toHaveBeenCalledTimes(1);
    await pool.end();
  });

  test('timeouts while connecting end a client without a socket of its own that is not connected', async () => {
    const ended = vi.fn();
    class NativeLikeClient extends FakeClient {
      #connected: (error?: Error) => void = () => {};
      isConnected(): boolean {
        return false;
      }
      override connect(callback: (error?: Error) => void): void {
        this.#connected = callback;
      }
      override end(callback?: () => void): void {
        ended();
        this.#connected(new Error('ended before it was connected'));
        callback?.();
      }
    }
    const pool = newPool({ Client: NativeLikeClient, connectionTimeoutMillis: 30 });
    expect((await rejectionOf(pool.connect())).message).toContain('timeout');
    await vi.waitFor(() => expect(ended).toHaveBeenCalled());
    expect(pool.totalCount).toBe(0);
  });
});
