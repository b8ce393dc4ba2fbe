// Clients that are not pg's own: how little the pool may ask of them, and the native one where it is installed.
import pg from 'pg';
import { describe, expect, test, vi } from 'vitest';
import { FakeClient } from '../../support/fake-client.js';
import { callbackOf, rejectionOf } from '../../support/outcomes.js';
import { everyPool, usePoolsOf } from './every-pool.js';

everyPool(({ newPool }) => {
  test('a client with no more than connect() and on() may fail to connect, and is asked for nothing else', async () => {
    const failure = new Error('as bare as can be');
    const touched = new Set<string | symbol>();
    class BareClient {
      constructor() {
        // biome-ignore lint/correctness/noConstructorReturn: the pool gets a watched client
        return new Proxy(this, {
          get(target, name, receiver) {
            if (!(name in target)) touched.add(name);
            return Reflect.get(target, name, receiver);
          },
        });
      }
      connect(callback: (error: Error) => void): void {
        process.nextTick(callback, failure);
      }
      on(): this {
        return this;
      }
    }
    const pool = newPool({ Client: BareClient, connectionTimeoutMillis: 5_000 });
    expect(await rejectionOf(pool.connect())).toBe(failure);
    expect(await rejectionOf(pool.query('select 1'))).toBe(failure);
    expect(pool.totalCount).toBe(0);
    for (const method of ['end', 'once', 'removeListener', 'off']) expect(touched).not.toContain(method);
    await pool.end();
  });

  test('a client with no more than connect() and on() may come from a plain function and fail before connect() returns', async () => {
    const seen = vi.fn();
    const failure = new Error('at once');
    function PlainFunction(options: unknown) {
      seen(options);
      return { connect: (callback: (error: Error) => void) => callback(failure), on: () => {} };
    }
    const pool = newPool({
      Client: PlainFunction,
      connectionString: 'postgres://somebody@somewhere/something',
    });
    const [error, client] = await callbackOf((callback) => pool.connect(callback));
    expect(error).toBe(failure);
    expect(client).toBeUndefined();
    expect(seen).toHaveBeenCalledWith(
      expect.objectContaining({ connectionString: 'postgres://somebody@somewhere/something' }),
    );
    expect(pool.totalCount).toBe(0);
  });
});

everyPool(({ newPool }) => {
  test('a client of another kind is connected with a callback, and its promise form is left alone', async () => {
    const argumentCounts: number[] = [];
    class CallbackClient extends FakeClient {
      override connect(...args: [callback: () => void]): void {
        argumentCounts.push(args.length);
        expect(args[0]).toBeInstanceOf(Function);
        super.connect(...args);
      }
    }
    const pool = newPool({ Client: CallbackClient });
    (await pool.connect()).release();
    expect(argumentCounts).toEqual([1]);
    await pool.end();
  });

  test('a client of another kind is ended with a callback, and "remove" waits for it', async () => {
    let ended = () => {};
    class SlowlyEndingClient extends FakeClient {
      override end(callback: () => void): void {
        this._ending = true;
        ended = callback;
      }
    }
    const pool = newPool({ Client: SlowlyEndingClient });
    const removed = vi.fn();
    pool.on('remove', removed);
    const client = await pool.connect();
    client.release(true);
    expect(pool.totalCount).toBe(0);
    expect(removed).not.toHaveBeenCalled();
    ended();
    expect(removed).toHaveBeenCalledWith(client);
  });

  test('a client of another kind answers pool.query', async () => {
    class EchoClient extends FakeClient {
      override query(text: unknown, values: unknown, callback: (error: null, result: unknown) => void): void {
        process.nextTick(callback, null, { rows: [{ text, values }] });
      }
    }
    const pool = newPool({ Client: EchoClient });
    await expect(pool.query('echo', [1])).resolves.toEqual({ rows: [{ text: 'echo', values: [1] }] });
    await pool.end();
  });

  test('a client of another kind that throws from query() rejects the query, and the pool goes on', async () => {
    let queries = 0;
    class ThrowingClient extends FakeClient {
      override query(...args: Parameters<FakeClient['query']>): void {
        queries += 1;
        if (queries === 1) throw new Error('thrown by the client');
        super.query(...args);
      }
    }
    const pool = newPool({ Client: ThrowingClient, max: 1 });
    expect((await rejectionOf(pool.query('select 1'))).message).toBe('thrown by the client');
    await expect(pool.query('select 1')).resolves.toEqual({ rows: [] });
    await pool.end();
  });

  test('a client of another kind is not kept when it says that it cannot be queried', async () => {
    const pool = newPool({ Client: FakeClient });
    const client = await pool.connect();
    (client as unknown as FakeClient)._queryable = false;
    client.release();
    expect(pool.totalCount).toBe(0);
    await pool.end();
  });

  test('a client of another kind is let go and held again around its idle time with allowExitOnIdle', async () => {
    const calls: string[] = [];
    class CountedClient extends FakeClient {
      override ref(): void {
        calls.push('ref');
      }
      override unref(): void {
        calls.push('unref');
      }
    }
    const pool = newPool({ Client: CountedClient, allowExitOnIdle: true });
    (await pool.connect()).release();
    expect(calls.at(-1)).toBe('unref');
    const client = await pool.connect();
    expect(calls.at(-1)).toBe('ref');
    client.release();
    expect(calls.at(-1)).toBe('unref');
    await pool.end();
  });
});

const { native } = pg;
if (native === null) {
  describe('the native client', () => {
    test('a client of another kind is NOT TESTED here, because the package pg-native is not installed', () => {
      process.stderr.write('NOT RUN: the tests of the native client need the package pg-native.\n');
    });
  });
} else {
  everyPool(({ newPool }) => {
    test('the native client connects, queries and ends', async () => {
      const pool = newPool({ Client: native.Client });
      expect(await pool.connect().then((client) => client.release())).toBeUndefined();
      await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
      expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
      await pool.end();
    });

    test('the native client reports its errors to the caller', async () => {
      const pool = newPool({ Client: native.Client });
      await rejectionOf(pool.query('select no_such_column'));
      await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
      await pool.end();
    });
  });
  describe('the native pool of pg', () => {
    const { newPool } = usePoolsOf(native.Pool);
    test('the native pool of pg works here at all', async () => {
      const pool = newPool();
      await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
      await pool.end();
    });
  });
}
