// What a failed query costs, what a second release does, and where stack traces lead.
import { describe, expect, test } from 'vitest';
import { FakeClient } from '../../support/fake-client.js';
import { portWhereNobodyListens } from '../../support/faulty-server.js';
import { callbackOf, rejectionOf } from '../../support/outcomes.js';
import { everyPool, type PooledClient } from './every-pool.js';

everyPool(({ newPool }) => {
  test('failed queries never poison the pool, however many there are', async () => {
    const pool = newPool({ max: 3 });
    const failures = Array.from({ length: 30 }, () => rejectionOf(pool.query('select no_such_column')));
    for (const error of await Promise.all(failures)) expect(error).toMatchObject({ code: '42703' });
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test('failed queries cost pool.query its client, as it cannot know what state the session is in', async () => {
    const pool = newPool({ max: 1 });
    await rejectionOf(pool.query('select no_such_column'));
    expect(pool.totalCount).toBe(0);
    expect(pool.idleCount).toBe(0);
    await pool.end();
  });

  test('failed queries cost a checked-out client nothing', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    await rejectionOf(client.query('select no_such_column'));
    client.release();
    expect(pool.idleCount).toBe(1);
    await pool.end();
  });
});

everyPool(({ newPool }) => {
  const message = 'Release called on client which has already been released to the pool.';

  test('a second release throws each time, through the client', async () => {
    const pool = newPool();
    const client = await pool.connect();
    client.release();
    expect(() => client.release()).toThrow(message);
    expect(() => client.release(new Error('again'))).toThrow(message);
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
    await pool.end();
  });

  test('a second release throws each time, through the release function of the callback', async () => {
    const pool = newPool();
    const [, client, release] = (await callbackOf((callback) => pool.connect(callback))) as [
      unknown,
      PooledClient,
      () => void,
    ];
    release();
    expect(() => release()).toThrow(message);
    expect(() => client.release()).toThrow(message);
    await pool.end();
  });

  test('a second release throws when the client is checked out again by another caller', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const stale = client.release;
    stale();
    const other = await pool.connect();
    expect(other).toBe(client);
    expect(() => stale()).toThrow(message);
    expect(pool.idleCount).toBe(0);
    other.release();
    await pool.end();
  });

  test('a second release throws after a release with an error as well', async () => {
    const pool = newPool();
    const client = await pool.connect();
    client.release(true);
    expect(() => client.release()).toThrow(message);
    await pool.end();
  });
});

everyPool(({ newPool }) => {
  test('stack traces of a failed query lead to the function that asked', async () => {
    const pool = newPool();
    async function askInVain() {
      await pool.query('select no_such_column');
    }
    expect((await rejectionOf(askInVain())).stack).toContain('askInVain');
    await pool.end();
  });

  test('stack traces of a failed connect lead to the function that asked', async () => {
    const pool = newPool({ port: await portWhereNobodyListens() });
    async function connectInVain() {
      await pool.connect();
    }
    expect((await rejectionOf(connectInVain())).stack).toContain('connectInVain');
  });

  test('stack traces of a timeout lead to the function that asked', async () => {
    const pool = newPool({ Client: FakeClient, max: 1, connectionTimeoutMillis: 30 });
    const client = await pool.connect();
    async function waitInVain() {
      await pool.connect();
    }
    expect((await rejectionOf(waitInVain())).stack).toContain('waitInVain');
    client.release();
    await pool.end();
  });
});

describe('a callback that throws', () => {
  // Node reports it as an uncaught exception; what matters here is that the pool has its client back.
  everyPool(({ newPool }) => {
    test('a callback that throws has its client back', async () => {
      const pool = newPool({ max: 1 });
      const uncaught = catchUncaught();
      pool.query('select 1', () => {
        throw new Error('thrown by the callback of query');
      });
      expect((await uncaught).message).toBe('thrown by the callback of query');
      expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
      await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
      await pool.end();
    });
  });

  /** The next uncaught exception, kept from the test runner. */
  function catchUncaught(): Promise<Error> {
    const others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    return new Promise((resolve) => {
      process.once('uncaughtException', (error) => {
        for (const listener of others) process.on('uncaughtException', listener);
        resolve(error);
      });
    });
  }
});
