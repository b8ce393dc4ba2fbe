// Which caller gets which client, and in which order.
import { expect, test } from 'vitest';
import { everyPool } from './every-pool.js';

everyPool(({ newPool }) => {
  test('a pool serves waiting callers in the order in which they came', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const order: number[] = [];
    const waiters = [1, 2, 3, 4].map(async (place) => {
      const own = await pool.connect();
      order.push(place);
      own.release();
    });
    client.release();
    await Promise.all(waiters);
    expect(order).toEqual([1, 2, 3, 4]);
    await pool.end();
  });

  test('a pool serves queries and checkouts from one queue', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    await client.query('create temporary sequence places');
    const place = "select nextval('places')::int as place";
    const waiters = [
      pool.query(place),
      pool.connect().then(async (own) => {
        const answer = await own.query(place);
        own.release();
        return answer;
      }),
      pool.query(place),
    ];
    client.release();
    const places = (await Promise.all(waiters)).map(({ rows }) => rows[0].place);
    expect(places).toEqual([1, 2, 3]);
    await pool.end();
  });

  test('a pool hands out the idle client that came back last', async () => {
    const pool = newPool({ max: 3 });
    const [first, second, third] = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
    first.release();
    third.release();
    second.release();
    const again = [await pool.connect(), await pool.connect(), await pool.connect()];
    expect(again).toEqual([second, third, first]);
    for (const client of again) client.release();
    await pool.end();
  });

  test('a pool gives the next waiter the very client that was released', async () => {
    const pool = newPool({ max: 1 });
    const client = await pool.connect();
    const waiting = pool.connect();
    client.release();
    expect(await waiting).toBe(client);
    client.release();
    await pool.end();
  });

  test('a pool prefers an idle client to a new one', async () => {
    const pool = newPool({ max: 5 });
    for (let turn = 0; turn < 5; turn += 1) await pool.query('select 1');
    expect(pool.totalCount).toBe(1);
    await pool.end();
  });

  test('a pool never runs two queries of a pool of one at the same time', async () => {
    const pool = newPool({ max: 1 });
    const text = `select count(*)::int as active from pg_stat_activity
                  where application_name = $1 and state = 'active'`;
    const asked = Array.from({ length: 20 }, () => pool.query(text, [pool.options.application_name]));
    for (const { rows } of await Promise.all(asked)) expect(rows).toEqual([{ active: 1 }]);
    await pool.end();
  });

  test('a pool serves many more callers than it has clients', async () => {
    const pool = newPool({ max: 4 });
    const answers = await Promise.all(
      Array.from({ length: 60 }, async (_nothing, number) => {
        const client = await pool.connect();
        const { rows } = await client.query('select $1::int as number', [number]);
        client.release();
        return rows[0].number;
      }),
    );
    expect(answers).toEqual(Array.from({ length: 60 }, (_nothing, number) => number));
    expect(pool.totalCount).toBe(4);
    await pool.end();
  });
});
