// When a client's time has come: idle too long, too old, used too often.
import { expect, test, vi } from 'vitest';
import { eventOf } from '../../support/outcomes.js';
import { everyPool, type PooledClient } from './every-pool.js';

everyPool(({ newPool, sessionsOf }) => {
  test('idleTimeoutMillis removes a client that stayed idle, and a new one is made on demand', async () => {
    const pool = newPool({ idleTimeoutMillis: 20 });
    const first = await pool.connect();
    const removed = eventOf(pool, 'remove');
    first.release();
    expect(await removed).toEqual([first]);
    expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
    expect(await sessionsOf(pool)).toEqual([]);
    const second = await pool.connect();
    expect(second).not.toBe(first);
    second.release();
    await pool.end();
  });

  test('idleTimeoutMillis never removes a client in use', async () => {
    const pool = newPool({ idleTimeoutMillis: 20, max: 2 });
    const busy = await pool.connect();
    const unused = await pool.connect();
    const removed = eventOf(pool, 'remove');
    unused.release();
    expect(await removed).toEqual([unused]);
    expect(pool.totalCount).toBe(1);
    await expect(busy.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    busy.release();
    expect(pool.idleCount).toBe(1);
    await pool.end();
  });

  test('idleTimeoutMillis starts anew with each return', async () => {
    const pool = newPool({ idleTimeoutMillis: 200, max: 1 });
    const client = await pool.connect();
    client.release();
    for (let turn = 0; turn < 6; turn += 1) {
      await pool.query('select pg_sleep(0.05)');
      expect(pool.idleCount).toBe(1);
    }
    const again = await pool.connect();
    expect(again).toBe(client);
    again.release();
    expect(await eventOf(pool, 'remove')).toEqual([client]);
    await pool.end();
  });

  test('idleTimeoutMillis goes on working when another client is removed because of an error', async () => {
    const pool = newPool({ idleTimeoutMillis: 50, max: 2 });
    const healthy = await pool.connect();
    const broken = await pool.connect();
    const removed: unknown[] = [];
    pool.on('remove', (client) => removed.push(client));
    healthy.release();
    broken.release(new Error('broken'));
    await vi.waitFor(() => expect(new Set(removed)).toEqual(new Set([healthy, broken])));
    expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
    await pool.end();
  });
});

everyPool(({ newPool, sessionsOf }) => {
  test('maxLifetimeSeconds removes an idle client when it is too old', async () => {
    const pool = newPool({ maxLifetimeSeconds: 0.15 });
    const client = await pool.connect();
    const removed = eventOf(pool, 'remove');
    client.release();
    expect(await removed).toEqual([client]);
    expect([pool.totalCount, pool.expiredCount]).toEqual([0, 0]);
    expect(await sessionsOf(pool)).toEqual([]);
    await pool.end();
  });

  test('maxLifetimeSeconds removes a busy client when it comes back too old, and a new one is made on demand', async () => {
    const pool = newPool({ maxLifetimeSeconds: 0.15, max: 1 });
    const client = (await pool.connect()) as PooledClient;
    await vi.waitFor(() => expect(pool.expiredCount).toBe(1));
    await expect(client.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    const waiting = pool.connect();
    client.release();
    expect(client._ending).toBe(true);
    const next = await waiting;
    expect(next).not.toBe(client);
    expect([pool.totalCount, pool.expiredCount]).toEqual([1, 0]);
    next.release();
    await pool.end();
  });

  test('maxLifetimeSeconds is no affair of a pool without it', async () => {
    const pool = newPool();
    await pool.query('select 1');
    expect(pool.expiredCount).toBe(0);
    await pool.end();
  });
});

everyPool(({ newPool }) => {
  test('maxUses lets a client be used that many times, then closes it in the very release', async () => {
    const pool = newPool({ maxUses: 2 });
    const client = (await pool.connect()) as PooledClient;
    client.release();
    expect(client._ending).toBe(false);
    expect(await pool.connect()).toBe(client);
    client.release();
    expect(client._ending).toBe(true);
    expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
    const fresh = await pool.connect();
    expect(fresh).not.toBe(client);
    fresh.release();
    await pool.end();
  });

  test('maxUses gives waiting callers a fresh client', async () => {
    const pool = newPool({ max: 1, maxUses: 2 });
    const first = await pool.connect();
    const second = pool.connect();
    const third = pool.connect();
    expect(pool.waitingCount).toBe(2);
    first.release();
    expect(await second).toBe(first);
    expect(pool.waitingCount).toBe(1);
    (await second).release();
    const fresh = await third;
    expect(fresh).not.toBe(first);
    expect(pool.waitingCount).toBe(0);
    fresh.release();
    await pool.end();
  });

  test('maxUses counts the uses of pool.query too', async () => {
    const pool = newPool({ maxUses: 3 });
    const pids = new Set<number>();
    for (let turn = 0; turn < 6; turn += 1) {
      const { rows } = await pool.query('select pg_backend_pid() as pid');
      pids.add(rows[0].pid);
    }
    expect(pids.size).toBe(2);
    await pool.end();
  });
});
