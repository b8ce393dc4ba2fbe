// The three counts (and the fourth) change in the same tick as the thing they count.
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { clientsThatWait, FakeClient } from '../../support/fake-client.js';
import { portWhereNobodyListens } from '../../support/faulty-server.js';
import { callbackOf, eventOf, rejectionOf } from '../../support/outcomes.js';
import { type AnyPool, everyPool } from './every-pool.js';

function counts(pool: AnyPool) {
  return { total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount };
}

everyPool(({ Pool, newPool, terminate }) => {
  /** pg.Pool counts a lost client until it is released; with Headgate its place is free when its socket is gone. */
  const lost = Pool === pg.Pool ? 1 : 0;

  test('a pool starts with nothing', () => {
    const pool = newPool();
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    expect(pool.expiredCount).toBe(0);
  });

  test('a pool counts a connection from the tick in which connect() is called', async () => {
    const pool = newPool();
    const connecting = pool.connect();
    expect(counts(pool)).toEqual({ total: 1, idle: 0, waiting: 0 });
    const client = await connecting;
    expect(counts(pool)).toEqual({ total: 1, idle: 0, waiting: 0 });
    client.release();
    expect(counts(pool)).toEqual({ total: 1, idle: 1, waiting: 0 });
    await pool.end();
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
  });

  test('a pool counts a connection from the tick in which query() is called', async () => {
    const pool = newPool();
    const querying = pool.query('select 1');
    expect(counts(pool)).toEqual({ total: 1, idle: 0, waiting: 0 });
    await querying;
    expect(counts(pool)).toEqual({ total: 1, idle: 1, waiting: 0 });
    await pool.end();
  });

  test('a pool counts one connection for each caller, in the same tick, up to max', async () => {
    const { Client, pending } = clientsThatWait();
    const pool = newPool({ Client, max: 3 });
    const connecting = Array.from({ length: 5 }, () => pool.connect());
    expect(counts(pool)).toEqual({ total: 3, idle: 0, waiting: 2 });
    expect(pending).toHaveLength(3);
    for (const connected of pending) connected();
    for (const client of await Promise.all(connecting.slice(0, 3))) client.release();
    for (const client of await Promise.all(connecting.slice(3))) client.release();
    expect(counts(pool)).toEqual({ total: 3, idle: 3, waiting: 0 });
    await pool.end();
  });

  test('a pool counts a waiter from the tick in which it comes to a full pool', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const second = pool.connect();
    expect(counts(pool)).toEqual({ total: 1, idle: 0, waiting: 1 });
    const third = pool.query('select 1');
    expect(counts(pool)).toEqual({ total: 1, idle: 0, waiting: 2 });
    client.release();
    expect(counts(pool)).toEqual({ total: 1, idle: 0, waiting: 1 });
    (await second).release();
    await third;
    expect(counts(pool)).toEqual({ total: 1, idle: 1, waiting: 0 });
    await pool.end();
  });

  test('a pool has forgotten a failed connection when the failure reaches a promise', async () => {
    const pool = newPool({ port: await portWhereNobodyListens() });
    const connecting = pool.connect();
    expect(pool.totalCount).toBe(1);
    await rejectionOf(connecting);
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
  });

  test('a pool has forgotten a failed connection when the failure reaches a callback', async () => {
    const pool = newPool({ port: await portWhereNobodyListens() });
    const [total] = await callbackOf((callback) => pool.connect(() => callback(pool.totalCount)));
    expect(total).toBe(0);
  });

  test('a pool counts no more what is released with an error, although it is still closing', async () => {
    const pool = newPool();
    const client = await pool.connect();
    client.release(new Error('broken'));
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    await eventOf(pool, 'remove');
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    await pool.end();
  });

  test.each([undefined, null, false, 0, ''])(
    'a pool keeps a client that is released with %o',
    async (value) => {
      const pool = newPool({ Client: FakeClient });
      const client = await pool.connect();
      (client.release as (value: unknown) => void)(value);
      expect(counts(pool)).toEqual({ total: 1, idle: 1, waiting: 0 });
      await pool.end();
    },
  );

  test.each([true, 1, 'broken', {}])('a pool removes a client that is released with %o', async (value) => {
    const pool = newPool({ Client: FakeClient });
    const client = await pool.connect();
    (client.release as (value: unknown) => void)(value);
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    await pool.end();
  });

  test('a pool loses an idle client that fails in the tick of its failure', async () => {
    const pool = newPool();
    pool.on('error', () => {});
    const client = await pool.connect();
    client.release();
    client.emit('error', new Error('gone'));
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    await eventOf(pool, 'remove');
    await pool.end();
  });

  test('a pool counts a checked-out client that the server has ended while it may have to be counted', async () => {
    const pool = newPool();
    const client = await pool.connect();
    client.on('error', () => {});
    const ended = eventOf(client, 'end');
    await terminate(client);
    await ended;
    expect(counts(pool)).toEqual({ total: lost, idle: 0, waiting: 0 });
    client.release();
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    await pool.end();
  });

  test('a pool counts a checked-out client that its user has ended while it may have to be counted', async () => {
    const pool = newPool();
    const client = await pool.connect();
    await client.end();
    expect(counts(pool)).toEqual({ total: lost, idle: 0, waiting: 0 });
    client.release();
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test('a pool counts an expired client while it is out, and no more when it is back', async () => {
    const pool = newPool({ maxLifetimeSeconds: 0.1 });
    const client = await pool.connect();
    expect(pool.expiredCount).toBe(0);
    await vi.waitFor(() => expect(pool.expiredCount).toBe(1));
    expect(counts(pool)).toEqual({ total: 1, idle: 0, waiting: 0 });
    client.release();
    expect(pool.expiredCount).toBe(0);
    expect(counts(pool)).toEqual({ total: 0, idle: 0, waiting: 0 });
    await eventOf(pool, 'remove');
    await pool.end();
  });
});
