// `min` is where reaping stops; it opens nothing and replaces nothing.
import { expect, test } from 'vitest';
import { eventOf, nextTurn } from '../../support/outcomes.js';
import { type AnyOptions, type AnyPool, everyPool } from './every-pool.js';

/** Opens the given number of clients, and releases them all in the same tick. */
async function openAndRelease(pool: AnyPool, count: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => pool.connect()));
  for (const client of clients) client.release();
}

everyPool(({ newPool }) => {
  /** Resolves when an idle timeout that began after this call has passed, as another pool shows. */
  async function idleTimeHasPassed(options: AnyOptions): Promise<void> {
    const witness = newPool({ ...options, min: 0 });
    const removed = eventOf(witness, 'remove');
    await witness.query('select 1');
    await removed;
    await witness.end();
  }

  test('the option min opens nothing by itself', async () => {
    const pool = newPool({ min: 3 });
    await nextTurn();
    expect(pool.totalCount).toBe(0);
    await pool.query('select 1');
    expect(pool.totalCount).toBe(1);
    await pool.end();
  });

  test('the option min is where the reaping of idle clients stops', async () => {
    const options = { max: 2, min: 1, idleTimeoutMillis: 30 };
    const pool = newPool(options);
    const first = await pool.connect();
    const second = await pool.connect();
    const removed = eventOf(pool, 'remove');
    first.release();
    await removed;
    second.release();
    await idleTimeHasPassed(options);
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
    await pool.end();
  });

  test('the option min keeps exactly that many when more are released together', async () => {
    const options = { max: 6, min: 2, idleTimeoutMillis: 30 };
    const pool = newPool(options);
    await openAndRelease(pool, 5);
    expect(pool.idleCount).toBe(5);
    await idleTimeHasPassed(options);
    expect([pool.totalCount, pool.idleCount]).toEqual([2, 2]);
    await pool.end();
  });

  test('the option min keeps all when there are no more than that', async () => {
    const options = { max: 2, min: 2, idleTimeoutMillis: 30 };
    const pool = newPool(options);
    await openAndRelease(pool, 2);
    await idleTimeHasPassed(options);
    expect(pool.idleCount).toBe(2);
    await pool.end();
  });

  test('the option min does not keep, nor replace, a client that has had its uses', async () => {
    const pool = newPool({ max: 1, min: 1, maxUses: 1 });
    const removed = eventOf(pool, 'remove');
    await pool.query('select 1');
    expect(pool.totalCount).toBe(0);
    await removed;
    await nextTurn();
    expect(pool.totalCount).toBe(0);
    await pool.end();
  });

  test('the option min does not keep, nor replace, a client that is too old', async () => {
    const pool = newPool({ max: 1, min: 1, maxLifetimeSeconds: 0.1 });
    const removed = eventOf(pool, 'remove');
    await pool.query('select 1');
    await removed;
    await nextTurn();
    expect(pool.totalCount).toBe(0);
    await pool.end();
  });

  test('the option min does not replace an idle client that failed', async () => {
    const pool = newPool({ max: 2, min: 1 });
    pool.on('error', () => {});
    const client = await pool.connect();
    client.release();
    const removed = eventOf(pool, 'remove');
    client.emit('error', new Error('on purpose'));
    await removed;
    await nextTurn();
    expect(pool.totalCount).toBe(0);
    await pool.end();
  });
});
