// onConnect and verify: when they run, for whom, and what their failures do.
import { expect, test, vi } from 'vitest';
import { callbackOf, eventOf, rejectionOf, watch } from '../../support/outcomes.js';
import { everyPool, type PooledClient } from './every-pool.js';

everyPool(({ newPool, sessionsOf }) => {
  test('onConnect runs once for each new client, and not when a client is used again', async () => {
    const greeted: PooledClient[] = [];
    const pool = newPool({ max: 2, onConnect: (client) => greeted.push(client) });
    const [first, second] = await Promise.all([pool.connect(), pool.connect()]);
    first.release();
    second.release();
    await pool.query('select 1');
    (await pool.connect()).release();
    expect(greeted).toHaveLength(2);
    expect(new Set(greeted)).toEqual(new Set([first, second]));
    await pool.end();
  });

  test('onConnect is awaited before the client is handed out', async () => {
    let done = false;
    const pool = newPool({
      onConnect: async (client) => {
        await client.query("set search_path to 'prepared'");
        done = true;
      },
    });
    const client = await pool.connect();
    expect(done).toBe(true);
    const { rows } = await client.query('show search_path');
    expect(rows).toEqual([{ search_path: 'prepared' }]);
    client.release();
    await pool.end();
  });

  test('onConnect is awaited by pool.query too, in both forms', async () => {
    const onConnect = (client: PooledClient) => client.query("set search_path to 'prepared'");
    const pool = newPool({ onConnect });
    expect((await pool.query('show search_path')).rows).toEqual([{ search_path: 'prepared' }]);
    await pool.end();
    const other = newPool({ onConnect });
    const [, result] = await callbackOf((callback) => other.query('show search_path', callback));
    expect(result).toMatchObject({ rows: [{ search_path: 'prepared' }] });
    await other.end();
  });

  test('onConnect runs before the client reaches a caller or an event', async () => {
    const order: string[] = [];
    const pool = newPool({
      onConnect: () => {
        order.push('onConnect');
      },
    });
    pool.on('connect', () => order.push('connect'));
    pool.on('acquire', () => order.push('acquire'));
    (await pool.connect()).release();
    expect(order).toEqual(['onConnect', 'connect', 'acquire']);
    await pool.end();
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('the hook says no');
      },
    ],
    ['rejects', () => Promise.reject(new Error('the hook says no'))],
  ])(
    'onConnect that %s fails that connect, leaves no count and no session behind',
    async (_how, onConnect) => {
      const pool = newPool({ onConnect });
      const events = vi.fn();
      for (const name of ['connect', 'acquire', 'error'] as const) pool.on(name, events);
      expect((await rejectionOf(pool.connect())).message).toBe('the hook says no');
      expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
      const [error, client] = await callbackOf((callback) => pool.connect(callback));
      expect(error).toMatchObject({ message: 'the hook says no' });
      expect(client).toBeUndefined();
      expect(pool.totalCount).toBe(0);
      expect((await rejectionOf(pool.query('select 1'))).message).toBe('the hook says no');
      expect(events).not.toHaveBeenCalled();
      await pool.end();
      await vi.waitFor(async () => expect(await sessionsOf(pool)).toEqual([]));
    },
  );

  test('onConnect that fails once keeps neither the pool from recovering nor waiting callers from a client', async () => {
    let runs = 0;
    const pool = newPool({
      max: 1,
      onConnect: () => {
        runs += 1;
        if (runs === 1) throw new Error('the hook says no');
      },
    });
    const unlucky = watch(pool.connect());
    const next = pool.connect();
    expect(pool.waitingCount).toBe(1);
    expect((await rejectionOf(unlucky.promise)).message).toBe('the hook says no');
    (await next).release();
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    expect(runs).toBe(2);
    await pool.end();
  });
});

everyPool(({ newPool }) => {
  test('verify runs on new clients only, before they are handed out', async () => {
    const verified: PooledClient[] = [];
    const pool = newPool({
      max: 1,
      verify: (client, done) => {
        verified.push(client);
        done();
      },
    });
    const client = await pool.connect();
    expect(verified).toEqual([client]);
    client.release();
    await pool.query('select 1');
    expect(verified).toHaveLength(1);
    await pool.end();
  });

  test('verify may use the client', async () => {
    const pool = newPool({
      verify: (client, done) => {
        client.query('select 1').then(() => done(), done);
      },
    });
    await expect(pool.query('select 2 as two')).resolves.toMatchObject({ rows: [{ two: 2 }] });
    await pool.end();
  });

  test('verify passes with null, and the caller sees undefined as the error', async () => {
    const pool = newPool({ verify: (_client, done) => done(null) });
    const [error, client] = await callbackOf((callback) => pool.connect(callback));
    expect(error).toBeUndefined();
    (client as PooledClient).release();
    await pool.end();
  });

  test('verify fails the connect with its own error, and the client is removed', async () => {
    const refusal = new Error('not this one');
    const pool = newPool({ verify: (_client, done) => done(refusal) });
    const removed = eventOf(pool, 'remove');
    expect(await rejectionOf(pool.connect())).toBe(refusal);
    expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
    await removed;
    const [error, client, release] = await callbackOf((callback) => pool.connect(callback));
    expect(error).toBe(refusal);
    expect(client).toBeUndefined();
    expect(release).toBeInstanceOf(Function);
    expect(await rejectionOf(pool.query('select 1'))).toBe(refusal);
    await pool.end();
  });

  test('verify that fails once does not keep the pool from recovering', async () => {
    let runs = 0;
    const pool = newPool({
      max: 1,
      verify: (_client, done) => {
        runs += 1;
        done(runs === 1 ? new Error('not this one') : undefined);
      },
    });
    const unlucky = watch(pool.connect());
    const next = pool.connect();
    await rejectionOf(unlucky.promise);
    (await next).release();
    expect(runs).toBe(2);
    await pool.end();
  });

  test('verify runs after onConnect', async () => {
    const order: string[] = [];
    const pool = newPool({
      onConnect: async (client) => {
        await client.query('select 1');
        order.push('onConnect');
      },
      verify: (_client, done) => {
        order.push('verify');
        done();
      },
    });
    (await pool.connect()).release();
    expect(order).toEqual(['onConnect', 'verify']);
    await pool.end();
  });
});
