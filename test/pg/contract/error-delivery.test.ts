// Errors reach the caller that caused them, the pool where no caller did, and no other caller.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FakeClient } from '../../support/fake-client.js';
import { type FaultyServer, portWhereNobodyListens, startFaultyServer } from '../../support/faulty-server.js';
import { callbackOf, eventOf, rejectionOf, watch } from '../../support/outcomes.js';
import { everyPool, type PooledClient } from './every-pool.js';
import { useVirtualTime } from './virtual-timers.js';

everyPool(({ newPool, server }) => {
  let front: FaultyServer;

  beforeEach(async () => {
    front = await startFaultyServer(server());
  });

  afterEach(async () => {
    await front.stop();
  });

  /** Fails every connect with an error of its own. */
  function clientsThatFail(): { Client: typeof FakeClient; errors: Error[] } {
    const errors: Error[] = [];
    class FailingClient extends FakeClient {
      override connect(callback: (error: Error) => void): void {
        const error = new Error(`failure ${errors.length + 1}`);
        errors.push(error);
        process.nextTick(callback, error);
      }
    }
    return { Client: FailingClient, errors };
  }

  test('connect errors reach the caller as the very same object, by promise, by callback and by query', async () => {
    const { Client, errors } = clientsThatFail();
    const pool = newPool({ Client });
    expect(await rejectionOf(pool.connect())).toBe(errors[0]);
    const [second] = await callbackOf((callback) => pool.connect(callback));
    expect(second).toBe(errors[1]);
    expect(await rejectionOf(pool.query('select 1'))).toBe(errors[2]);
    const [fourth] = await callbackOf((callback) => pool.query('select 1', callback));
    expect(fourth).toBe(errors[3]);
    expect(errors).toHaveLength(4);
  });

  test('connect errors reach each waiting caller as an error of its own', async () => {
    const { Client, errors } = clientsThatFail();
    const pool = newPool({ Client, max: 1 });
    const callers = [watch(pool.connect()), watch(pool.connect()), watch(pool.query('select 1'))];
    expect(pool.waitingCount).toBe(2);
    const received = await Promise.all(callers.map((caller) => rejectionOf(caller.promise)));
    expect(received).toEqual(errors);
    expect(new Set(received).size).toBe(3);
    expect(pool.totalCount).toBe(0);
  });

  test('connect errors carry the code of a server that refuses', async () => {
    const pool = newPool({ port: await portWhereNobodyListens() });
    expect(await rejectionOf(pool.connect())).toMatchObject({ code: 'ECONNREFUSED' });
    expect(await rejectionOf(pool.query('select 1'))).toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('connect errors carry the SQLSTATE of a server that turns the user away', async () => {
    const pool = newPool({ database: 'no_such_database' });
    expect(await rejectionOf(pool.connect())).toMatchObject({ code: '3D000' });
    expect(pool.totalCount).toBe(0);
  });

  test('connect errors come to the first and to each queued caller of a server that resets', async () => {
    front.resetNew();
    const pool = newPool({ port: front.port, max: 1 });
    const callers = [pool.connect(), pool.connect(), pool.connect()].map((caller) => watch(caller));
    const errors = await Promise.all(callers.map((caller) => rejectionOf(caller.promise)));
    expect(new Set(errors).size).toBe(3);
    for (const error of errors) {
      // A reset that comes after the greeting was sent is reported without a code.
      const { code = 'ECONNRESET' } = error as NodeJS.ErrnoException;
      expect(code).toBe('ECONNRESET');
    }
    front.behave();
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test('connect errors come from a server that hangs up without a word', async () => {
    front.hangUpOnNew();
    const pool = newPool({ port: front.port, max: 1 });
    const callers = [pool.connect(), pool.connect()].map((caller) => watch(caller));
    for (const caller of callers) {
      expect((await rejectionOf(caller.promise)).message).toContain('Connection terminated');
    }
    expect(pool.totalCount).toBe(0);
  });

  test('connect errors do not reach a later caller, when the caller that the dial was for has left', async () => {
    const dials: ((error?: Error) => void)[] = [];
    class HeldClient extends FakeClient {
      isConnected(): boolean {
        return true;
      }
      override connect(callback: (error?: Error | null) => void): void {
        dials.push(callback);
      }
    }
    useVirtualTime();
    const pool = newPool({ Client: HeldClient, max: 1, connectionTimeoutMillis: 300 });
    const first = watch(pool.connect());
    const second = watch(pool.connect());
    // The second caller's dial starts late, so that the caller leaves before the dial has had its time.
    await vi.advanceTimersByTimeAsync(150);
    dials[0]?.(new Error('the first dial failed'));
    expect((await rejectionOf(first.promise)).message).toBe('the first dial failed');
    await vi.advanceTimersByTimeAsync(150);
    expect(dials).toHaveLength(2);
    expect((await rejectionOf(second.promise)).message).toContain('timeout');
    const third = pool.connect();
    dials[1]?.(new Error('the second dial failed'));
    await vi.advanceTimersByTimeAsync(0);
    expect(dials).toHaveLength(3);
    dials[2]?.();
    (await third).release();
    await pool.end();
  });

  test('connect errors do not become errors of the pool', async () => {
    const { Client } = clientsThatFail();
    const pool = newPool({ Client });
    const poolError = vi.fn();
    pool.on('error', poolError);
    await rejectionOf(pool.connect());
    expect(poolError).not.toHaveBeenCalled();
  });
});

everyPool(({ newPool, terminate }) => {
  test('errors of idle clients become errors of the pool, with the client, which is gone by then', async () => {
    const pool = newPool();
    const client = (await pool.connect()) as PooledClient;
    client.release();
    const seen = vi.fn();
    pool.on('error', (error, origin) => {
      seen(error, origin, (error as Error & { client?: unknown }).client, pool.totalCount, pool.idleCount);
    });
    const ended = eventOf(client.connection.stream, 'close');
    const error = new Error('on purpose');
    client.emit('error', error);
    expect(seen).toHaveBeenCalledTimes(1);
    expect(seen).toHaveBeenCalledWith(error, client, client, 0, 0);
    expect(client._ending).toBe(true);
    await ended;
    await pool.end();
  });

  test('errors of idle clients reach the listeners of the client too, and further ones are harmless', async () => {
    const pool = newPool();
    const poolError = vi.fn();
    pool.on('error', poolError);
    const client = await pool.connect();
    client.release();
    const clientError = vi.fn();
    client.once('error', clientError);
    client.emit('error', new Error('on purpose'));
    expect(clientError).toHaveBeenCalledTimes(1);
    client.emit('error', new Error('an echo'));
    client.emit('error', new Error('another'));
    expect(poolError).toHaveBeenCalledTimes(1);
    await eventOf(pool, 'remove');
    await pool.end();
  });

  test('errors of idle clients are thrown when the pool has no listener, as an emitter does', async () => {
    const pool = newPool();
    const client = await pool.connect();
    client.release();
    expect(() => client.emit('error', new Error('nobody listens'))).toThrow('nobody listens');
    expect(pool.totalCount).toBe(0);
    await pool.end();
  });

  test('errors of idle clients come when the server ends the session', async () => {
    const pool = newPool({ max: 1 });
    const client = (await pool.connect()) as PooledClient;
    client.release();
    const poolError = eventOf(pool, 'error');
    const removed = eventOf(pool, 'remove');
    await terminate(client);
    const [error, origin] = await poolError;
    expect(error).toMatchObject({ code: '57P01', client });
    expect(origin).toBe(client);
    expect(pool.totalCount).toBe(0);
    expect(await removed).toEqual([client]);
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test.each([
    { listeners: 'all its listeners', events: [] },
    { listeners: 'its error listeners', events: ['error'] },
  ])('come also when the caller has removed $listeners before the release', async ({ events }) => {
    const pool = newPool({ max: 1 });
    for (let checkouts = 0; checkouts < 3; checkouts += 1) {
      const client = (await pool.connect()) as PooledClient;
      client.on('error', () => {});
      expect(client.removeAllListeners(...events)).toBe(client);
      client.release();
    }
    const client = pool._clients[0] as PooledClient;
    expect(client.listenerCount('error')).toBe(1);
    const poolError = eventOf(pool, 'error');
    await terminate(client);
    expect(await poolError).toEqual([expect.objectContaining({ code: '57P01', client }), client]);
    expect(pool.totalCount).toBe(0);
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });
});

everyPool(({ newPool, terminate }) => {
  test('errors of clients in use are not errors of the pool', async () => {
    const pool = newPool();
    const poolError = vi.fn();
    pool.on('error', poolError);
    const client = await pool.connect();
    const clientError = vi.fn();
    client.on('error', clientError);
    const ended = eventOf(client, 'end');
    await terminate(client);
    await ended;
    expect(clientError).toHaveBeenCalled();
    expect(poolError).not.toHaveBeenCalled();
    client.release();
    await pool.end();
  });

  test('errors of clients in use reject the pool.query that they interrupt, and the next one works', async () => {
    const pool = newPool({ max: 1 });
    const poolError = vi.fn();
    pool.on('error', poolError);
    const acquired = eventOf(pool, 'acquire');
    const sleeping = watch(pool.query('select pg_sleep(30)'));
    const [client] = (await acquired) as [PooledClient];
    await terminate(client);
    expect(await rejectionOf(sleeping.promise)).toMatchObject({ code: '57P01' });
    expect(pool.totalCount).toBe(0);
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    expect(poolError).not.toHaveBeenCalled();
    await pool.end();
  });

  test('errors of clients in use on the socket reach the callback of pool.query when the socket is already destroyed', async () => {
    const pool = newPool({ max: 1 });
    const acquired = eventOf(pool, 'acquire');
    const answer = callbackOf((callback) => {
      pool.query('select pg_sleep(30)', (error) => {
        callback(error, stream?.destroyed, pool.totalCount);
      });
    });
    const stream = pool._clients[0]?.connection.stream;
    await acquired;
    stream?.emit('error', new Error('network trouble'));
    const [error, destroyed, total] = await answer;
    expect(error).toMatchObject({ message: 'network trouble' });
    expect(destroyed).toBe(true);
    expect(total).toBe(0);
    await pool.end();
  });

  test('errors of clients in use reject the pool.query whose client is ended', async () => {
    const pool = newPool({ max: 1 });
    pool.on('error', () => {});
    const acquired = eventOf(pool, 'acquire');
    const sleeping = watch(pool.query('select pg_sleep(30)'));
    await acquired;
    void pool._clients[0]?.end();
    expect((await rejectionOf(sleeping.promise)).message).toContain('Connection terminated');
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });
});
