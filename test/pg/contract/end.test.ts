// The end of a pool: what it waits for, and what it answers afterwards.
import { expect, test } from 'vitest';
import { callbackOf, nextTurn, rejectionOf, watch } from '../../support/outcomes.js';
import { everyPool } from './every-pool.js';

const afterEnd = 'Cannot use a pool after calling end on the pool';

everyPool(({ newPool, sessionsOf }) => {
  test('end() ends a pool that was never used', async () => {
    const pool = newPool();
    await pool.end();
    expect([pool.ending, pool.ended]).toEqual([true, true]);
  });

  test('end() ends a pool that was never used, with a callback', async () => {
    const pool = newPool();
    await callbackOf((callback) => pool.end(callback));
    expect([pool.ending, pool.ended]).toEqual([true, true]);
  });

  test('end() says that it is ending at once, and that it has ended when it has', async () => {
    const pool = newPool();
    const client = await pool.connect();
    expect([pool.ending, pool.ended]).toEqual([false, false]);
    const ending = pool.end();
    expect([pool.ending, pool.ended]).toEqual([true, false]);
    client.release();
    await ending;
    expect([pool.ending, pool.ended]).toEqual([true, true]);
  });

  test('end() closes idle clients', async () => {
    const pool = newPool({ max: 3 });
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
    for (const client of clients) client.release();
    expect(pool.idleCount).toBe(3);
    await pool.end();
    expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
    await expect.poll(() => sessionsOf(pool)).toEqual([]);
  });

  test('end() lets running queries finish', async () => {
    const pool = newPool({ max: 5 });
    const finished: number[] = [];
    const queries = [1, 2, 3, 4, 5].map(async (number) => {
      await pool.query('select pg_sleep(0.05)');
      finished.push(number);
    });
    await pool.end();
    expect(finished.sort()).toEqual([1, 2, 3, 4, 5]);
    await Promise.all(queries);
  });

  test('end() lets a connection finish that is being made, and its caller use it', async () => {
    const pool = newPool();
    const connecting = pool.connect();
    const ending = watch(pool.end());
    const client = await connecting;
    await expect(client.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    expect(ending.settled).toBe(false);
    client.release();
    await ending.promise;
  });

  test('end() waits for all clients that are out', async () => {
    const pool = newPool({ max: 2 });
    const [first, second] = await Promise.all([pool.connect(), pool.connect()]);
    const ending = watch(pool.end());
    first.release();
    await expect(second.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await nextTurn();
    expect(ending.settled).toBe(false);
    expect(pool.ended).toBe(false);
    second.release();
    await ending.promise;
    expect(pool.totalCount).toBe(0);
  });

  test('end() closes what is released while it ends', async () => {
    const pool = newPool();
    const client = await pool.connect();
    const ending = pool.end();
    client.release();
    expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
    await ending;
  });

  test('end() makes connect, query and a second end reject', async () => {
    const pool = newPool();
    await pool.end();
    expect((await rejectionOf(pool.connect())).message).toContain(afterEnd);
    expect((await rejectionOf(pool.query('select 1'))).message).toContain(afterEnd);
    expect((await rejectionOf(pool.end())).message).toContain('Called end on pool more than once');
  });

  test('end() makes connect, query and a second end call back with an error', async () => {
    const pool = newPool();
    await pool.end();
    const [connectError, client] = await callbackOf((callback) => pool.connect(callback));
    expect(connectError).toMatchObject({ message: expect.stringContaining(afterEnd) });
    expect(client).toBeUndefined();
    const [queryError] = await callbackOf((callback) => pool.query('select 1', callback));
    expect(queryError).toMatchObject({ message: expect.stringContaining(afterEnd) });
    const [endError] = await callbackOf((callback) => pool.end(callback));
    expect(endError).toMatchObject({ message: expect.stringContaining('Called end on pool more than once') });
  });

  test('end() refuses newcomers from the tick in which it is called', async () => {
    const pool = newPool();
    const client = await pool.connect();
    const ending = pool.end();
    expect((await rejectionOf(pool.connect())).message).toContain(afterEnd);
    expect((await rejectionOf(pool.end())).message).toContain('Called end on pool more than once');
    client.release();
    await ending;
  });
});
