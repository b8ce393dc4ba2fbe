// Which events there are, with what, in which order, and what the counts say by then.
import { expect, test, vi } from 'vitest';
import { clientsThatWait, FakeClient } from '../../support/fake-client.js';
import { portWhereNobodyListens } from '../../support/faulty-server.js';
import { eventOf, rejectionOf } from '../../support/outcomes.js';
import { type AnyPool, everyPool } from './every-pool.js';

/** Everything the pool says, in order. */
function record(pool: AnyPool): string[] {
  const said: string[] = [];
  for (const name of ['connect', 'acquire', 'release', 'remove', 'error'] as const) {
    pool.on(name, () => said.push(name));
  }
  return said;
}

everyPool(({ newPool }) => {
  test('pool events say connect, then acquire, with the client, before the callback', async () => {
    const pool = newPool();
    const said = record(pool);
    const seen: unknown[] = [];
    pool.on('connect', (client) => seen.push(client));
    pool.on('acquire', (client) => seen.push(client));
    await new Promise<void>((resolve) => {
      pool.connect((_error, client, release) => {
        said.push('callback');
        expect(seen).toEqual([client, client]);
        release();
        said.push('released');
        resolve();
      });
    });
    expect(said).toEqual(['connect', 'acquire', 'callback', 'release', 'released']);
    await pool.end();
  });

  test('pool events let a listener of connect speak to the client first', async () => {
    const pool = newPool();
    pool.on('connect', (client) => {
      client.query("set search_path to 'from the listener'").catch(() => {});
    });
    const { rows } = await pool.query('show search_path');
    expect(rows).toEqual([{ search_path: '"from the listener"' }]);
    await pool.end();
  });

  test('pool events say acquire and release for each use, and connect only for the first', async () => {
    const pool = newPool();
    const said = record(pool);
    (await pool.connect()).release();
    (await pool.connect()).release();
    expect(said).toEqual(['connect', 'acquire', 'release', 'acquire', 'release']);
    await pool.end();
  });

  test('pool events say release before the answer of pool.query arrives', async () => {
    const pool = newPool();
    const said = record(pool);
    await pool.query('select 1').then(() => said.push('promise'));
    await new Promise<void>((resolve) => {
      pool.query('select 1', () => {
        said.push('callback');
        resolve();
      });
    });
    expect(said).toEqual(['connect', 'acquire', 'release', 'promise', 'acquire', 'release', 'callback']);
    await pool.end();
  });

  test('pool events count every checkout and every return, of connect and of query alike', async () => {
    const pool = newPool({ max: 3 });
    const acquired = vi.fn();
    const released = vi.fn();
    pool.on('acquire', acquired);
    pool.on('release', released);
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const query = pool.query('select 1');
        (await pool.connect()).release();
        await query;
      }),
    );
    expect(acquired).toHaveBeenCalledTimes(20);
    expect(released).toHaveBeenCalledTimes(20);
    for (const [error, client] of released.mock.calls) {
      expect(error).toBeFalsy();
      expect(client).toBeTruthy();
    }
    await pool.end();
  });

  test('pool events give release what the client was released with', async () => {
    const pool = newPool({ Client: FakeClient });
    const released = vi.fn();
    pool.on('release', released);
    const first = await pool.connect();
    first.release();
    expect(released).toHaveBeenLastCalledWith(undefined, first);
    const error = new Error('broken');
    const second = await pool.connect();
    second.release(error);
    expect(released).toHaveBeenLastCalledWith(error, second);
    const third = await pool.connect();
    third.release(true);
    expect(released).toHaveBeenLastCalledWith(true, third);
    await pool.end();
  });

  test('pool events give release the error of a query that failed', async () => {
    const pool = newPool();
    const released = vi.fn();
    pool.on('release', released);
    const error = await rejectionOf(pool.query('select no_such_column'));
    expect(released).toHaveBeenCalledTimes(1);
    expect(released.mock.calls[0]?.[0]).toBe(error);
    await pool.end();
  });

  test('pool events say remove after the counts were lowered and the connection was closed', async () => {
    const pool = newPool();
    const client = await pool.connect();
    const removed = eventOf(pool, 'remove').then(([gone]) => ({
      gone,
      total: pool.totalCount,
      idle: pool.idleCount,
      destroyed: client.connection.stream.destroyed,
    }));
    client.release(true);
    expect(await removed).toEqual({ gone: client, total: 0, idle: 0, destroyed: true });
    await pool.end();
  });

  test('pool events say release, then remove, of a client that is returned broken', async () => {
    const pool = newPool();
    const said = record(pool);
    const client = await pool.connect();
    const removed = eventOf(pool, 'remove');
    client.release(new Error('broken'));
    expect(said).toEqual(['connect', 'acquire', 'release']);
    await removed;
    expect(said).toEqual(['connect', 'acquire', 'release', 'remove']);
    await pool.end();
  });

  test('pool events say error, then remove, of an idle client that fails', async () => {
    const pool = newPool();
    const said = record(pool);
    const client = await pool.connect();
    client.release();
    const removed = eventOf(pool, 'remove');
    client.emit('error', new Error('on purpose'));
    expect(said).toEqual(['connect', 'acquire', 'release', 'error']);
    await removed;
    expect(said).toEqual(['connect', 'acquire', 'release', 'error', 'remove']);
    await pool.end();
  });

  test('pool events say nothing of a connection that could not be made', async () => {
    const pool = newPool({ port: await portWhereNobodyListens() });
    const said = record(pool);
    await rejectionOf(pool.connect());
    await rejectionOf(pool.query('select 1'));
    await pool.end();
    expect(said).toEqual([]);
  });

  test('pool events say nothing of a caller that waited too long', async () => {
    const { Client, pending } = clientsThatWait();
    const pool = newPool({ Client, max: 1, connectionTimeoutMillis: 40 });
    const holding = pool.connect();
    for (const connected of pending) connected();
    const client = await holding;
    const said = record(pool);
    await rejectionOf(pool.connect());
    expect(said).toEqual([]);
    client.release();
    await pool.end();
  });

  test('pool events say remove of every client when the pool ends', async () => {
    const pool = newPool({ max: 3 });
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
    const removed = new Set<unknown>();
    const allRemoved = new Promise<void>((resolve) => {
      pool.on('remove', (client) => {
        removed.add(client);
        if (removed.size === 3) resolve();
      });
    });
    for (const client of clients) client.release();
    await pool.end();
    await allRemoved;
    expect(removed).toEqual(new Set(clients));
  });
});
