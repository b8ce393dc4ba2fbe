// Cursors and query streams on checked-out clients: rows in batches, and a clean client afterwards.
import { pipeline } from 'node:stream/promises';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';
import { expect, test } from 'vitest';
import { eventOf, rejectionOf } from '../../support/outcomes.js';
import { everyPool } from './every-pool.js';

const numbers = 'select number from generate_series(1, $1) as number';

everyPool(({ newPool }) => {
  test('cursors read in batches, and leave a client that can be used again', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const cursor = client.query(new Cursor<{ number: number }>(numbers, [25]));
    expect(await cursor.read(10)).toHaveLength(10);
    expect(await cursor.read(10)).toHaveLength(10);
    expect(await cursor.read(10)).toHaveLength(5);
    expect(await cursor.read(10)).toHaveLength(0);
    await cursor.close();
    client.release();
    expect(pool.idleCount).toBe(1);
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test('cursors may be closed half-way', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const cursor = client.query(new Cursor<{ number: number }>(numbers, [1_000]));
    expect(await cursor.read(3)).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }]);
    await cursor.close();
    client.release();
    const again = await pool.connect();
    expect(again).toBe(client);
    await expect(again.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    again.release();
    await pool.end();
  });

  test('cursors tell their reader of their errors', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const cursor = client.query(new Cursor('select no_such_column'));
    expect(await rejectionOf(cursor.read(1))).toMatchObject({ code: '42703' });
    client.release();
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });
});

everyPool(({ newPool }) => {
  test('query streams deliver every row, and leave a client that can be used again', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const seen: number[] = [];
    await pipeline(client.query(new QueryStream(numbers, [500], { batchSize: 50 })), async (rows) => {
      for await (const { number } of rows as AsyncIterable<{ number: number }>) seen.push(number);
    });
    client.release();
    expect(seen).toEqual(Array.from({ length: 500 }, (_nothing, index) => index + 1));
    await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    await pool.end();
  });

  test('query streams may be destroyed half-way', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const stream = client.query(new QueryStream(numbers, [10_000], { batchSize: 10 }));
    for await (const { number } of stream as AsyncIterable<{ number: number }>) if (number === 5) break;
    if (!stream.closed) await eventOf(stream, 'close');
    client.release();
    expect(await pool.connect()).toBe(client);
    await expect(client.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
    client.release();
    await pool.end();
  });

  test('query streams run side by side on as many clients as there are', async () => {
    const pool = newPool({ max: 3 });
    const totals = await Promise.all(
      [100, 200, 300].map(async (rows) => {
        const client = await pool.connect();
        let total = 0;
        const stream = client.query(new QueryStream(numbers, [rows], { batchSize: 20 }));
        for await (const _row of stream) total += 1;
        client.release();
        return total;
      }),
    );
    expect(totals).toEqual([100, 200, 300]);
    await pool.end();
  });
});
