// Pipelining as its page in docs/ describes it: what is shared and how, that every answer finds its own caller, and that a
// checked-out client is nobody else's.
import type pg from 'pg';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';
import { expect, test } from 'vitest';
import { Pool } from '../../src/index.js';
import { callbackOf, nextTurn, rejectionOf } from '../support/outcomes.js';
import {
  EndlessLoad,
  type PoolOptions,
  usePipelinedPools,
  type WatchedClient,
  watchedClients,
} from '../support/pipelined-pools.js';
import { seededRandom } from '../support/seeded-random.js';

const { newPool, newWatchedPool, server, ask, sessionsOf, newGate } = usePipelinedPools(
  'create table item (id int primary key, label text check (label <> $$bad$$))',
);

const numbers = 'select number from generate_series(1, $1) as number';

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_nothing, index) => make(index));
}

function loadsOf(clients: readonly WatchedClient[]): number[] {
  return clients.map(({ underWay }) => underWay);
}

test('a pool that shares connections has at most `depth` queries under way on one connection, and that many when there are enough', async () => {
  const { pool, clients } = newWatchedPool({ max: 2, pipeline: { depth: 3 } });
  await pool.ready(2);
  await Promise.all(times(300, (index) => pool.query('select $1::int', [index])));
  expect(clients.map(({ peak }) => peak)).toEqual([3, 3]);
});

test('a pool that shares connections keeps the rest in the queue, in which they are counted', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 2, pipeline: { depth: 3 } });
  await pool.ready(2);
  const queries = times(11, () => pool.query(gate.text, gate.values));
  expect(loadsOf(clients)).toEqual([3, 3]);
  expect(pool.waitingCount).toBe(5);
  expect(pool.stats()).toMatchObject({ inUse: 2, idle: 0, waiting: 5 });
  await gate.isReachedBy(2);
  expect(loadsOf(clients)).toEqual([3, 3]);
  await gate.open();
  await Promise.all(queries);
  expect(loadsOf(clients)).toEqual([0, 0]);
  expect(pool.stats()).toMatchObject({ inUse: 0, idle: 2, waiting: 0 });
});

test('a pool that shares connections takes idle connections first, and then the least loaded one', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 3, pipeline: { depth: 10 } });
  await pool.ready(3);
  const queries = times(20, (sent) => {
    const query = pool.query(gate.text, gate.values);
    const loads = loadsOf(clients);
    expect(loads.reduce((sum, load) => sum + load)).toBe(sent + 1);
    expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
    return query;
  });
  await gate.open();
  await Promise.all(queries);
});

test('a pool that shares connections gives the next query to the lane that has become the least loaded', async () => {
  const [gate, other] = [newGate(), newGate()];
  await gate.close();
  await other.close();
  const { pool, clients } = newWatchedPool({ max: 2, pipeline: { depth: 10 } });
  await pool.ready(2);
  const first = times(3, () => [
    pool.query(gate.text, gate.values),
    pool.query(other.text, other.values),
  ]).flat();
  expect(loadsOf(clients)).toEqual([3, 3]);
  await other.open();
  // One of the two lanes has run dry, and is idle again.
  while (pool.idleCount === 0) await nextTurn();
  const further = times(4, () => pool.query(gate.text, gate.values));
  expect(loadsOf(clients).sort()).toEqual([3, 4]);
  await gate.open();
  await Promise.all([...first, ...further]);
});

test('a pool that shares connections opens a connection for each query as long as it may, before any is shared', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 4 });
  const queries = times(4, () => pool.query(gate.text, gate.values));
  await gate.isReachedBy(4);
  expect(await sessionsOf(pool)).toBe(4);
  expect(clients.map(({ peak }) => peak)).toEqual([1, 1, 1, 1]);
  await gate.open();
  await Promise.all(queries);
});

test('a pool that shares connections grows to `max` under a load that one connection could take', async () => {
  const gate = newGate();
  await gate.close();
  const { pool, clients } = newWatchedPool({ max: 5, pipeline: { depth: 100 } });
  const queries = times(40, () => pool.query(gate.text, gate.values));
  await gate.isReachedBy(5);
  expect(await sessionsOf(pool)).toBe(5);
  expect(loadsOf(clients)).toEqual([8, 8, 8, 8, 8]);
  await gate.open();
  await Promise.all(queries);
});

test('a pool that shares connections puts no query behind another while a connection could be opened for it', async () => {
  const gate = newGate();
  await gate.close();
  const pool = newPool({ max: 3 });
  const first = pool.query(gate.text, gate.values);
  await gate.isReachedBy(1);
  await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  const second = pool.query(gate.text, gate.values);
  await gate.isReachedBy(2);
  await expect(pool.query('select 2 as two')).resolves.toMatchObject({ rows: [{ two: 2 }] });
  await gate.open();
  await Promise.all([first, second]);
});

test('a pool that shares connections needs one connection for one caller after another', async () => {
  const { pool, clients } = newWatchedPool({ max: 5 });
  for (const index of times(20, (at) => at)) await pool.query('select $1::int', [index]);
  expect(clients).toHaveLength(1);
  expect(clients[0]?.peak).toBe(1);
});

test('a pool without the option shares no connection', async () => {
  const { pool, clients } = newWatchedPool({ max: 2, pipeline: undefined });
  await pool.ready(2);
  await Promise.all(times(50, (index) => pool.query('select $1::int', [index])));
  expect(clients.map(({ peak }) => peak)).toEqual([1, 1]);
});

test('a pool that shares connections tells of one acquire and one release for each stretch of use', async () => {
  const pool = newPool({ max: 1, pipeline: { depth: 100 } });
  await pool.ready(1);
  const told: string[] = [];
  for (const event of ['acquire', 'release'] as const) pool.on(event, () => told.push(event));
  await Promise.all(times(100, () => pool.query('select 1')));
  expect(told).toEqual(['acquire', 'release']);
  await pool.query('select 1');
  expect(told).toEqual(['acquire', 'release', 'acquire', 'release']);
});

interface Trial {
  readonly text: string;
  readonly values?: unknown[];
  readonly code?: string;
  readonly row?: object;
}

/** One query of a random kind whose answer is like no other's. */
function trialOf(id: number, kind: number): Trial {
  if (kind < 5) return { text: 'select $1::int as id', values: [id], row: { id } };
  if (kind === 5) return { text: `select ${id} as id, repeat('x', ${id % 3_000}) as filler`, row: { id } };
  if (kind === 6) return { text: `select ${id} fro item`, code: '42601' };
  if (kind === 7) return { text: 'select 1 / ($1::int - $1::int) as id', values: [id], code: '22012' };
  if (kind === 8) return { text: "insert into item values ($1, 'bad')", values: [id], code: '23514' };
  if (kind === 9) return { text: 'select $1::int as id', values: [`${id} apples`], code: '22P02' };
  if (kind === 10) return { text: `select no_such_column_${id} from item`, code: '42703' };
  if (kind === 11) return { text: 'select $1::int, $2::int', values: [id], code: '08P01' };
  return {
    text: 'insert into item values ($1, $2) returning id, label',
    values: [id, `item ${id}`],
    row: { id, label: `item ${id}` },
  };
}

test('answers come to their own callers, whatever fails in between', async () => {
  const random = seededRandom();
  const { pool, clients } = newWatchedPool({ max: 3, pipeline: { depth: 8 } });
  await pool.ready(3);
  let removed = 0;
  pool.on('remove', () => {
    removed += 1;
  });
  const trials = times(4_000, (id) => trialOf(id, random.below(13)));
  const outcomes = await Promise.allSettled(trials.map(({ text, values }) => pool.query(text, values)));
  const wrong = trials.filter(({ code, row }, index) => {
    const outcome = outcomes[index];
    if (outcome?.status === 'rejected') return outcome.reason.code !== code;
    return row === undefined || outcome?.value.rows.length !== 1 || !isPartOf(row, outcome.value.rows[0]);
  });
  expect(wrong, `replay with HEADGATE_SEED=${random.seed}`).toEqual([]);
  expect(clients.map(({ peak }) => peak)).toEqual([8, 8, 8]);
  expect(removed).toBe(0);

  const inserted = trials.filter(({ row }) => row !== undefined && 'label' in row);
  const kept = await ask<{ id: number; label: string }>('select id, label from item order by id');
  expect(kept).toEqual(inserted.map(({ row }) => row));
});

function isPartOf(part: object, whole: object): boolean {
  return Object.entries(part).every(([key, value]) => (whole as Record<string, unknown>)[key] === value);
}

test('answers of one lane come in the order in which its queries were sent', async () => {
  const pool = newPool({ max: 1, pipeline: { depth: 16 } });
  const order: number[] = [];
  await Promise.all(times(500, (id) => pool.query('select $1::int', [id]).then(() => order.push(id))));
  expect(order).toEqual(times(500, (id) => id));
});

test('answers have all of what pg returns: rows, fields, counts, arrays and types', async () => {
  const pool = newPool({ max: 1 });
  const [rows, arrays, typed, none, changed, shown] = await Promise.all([
    pool.query(numbers, [3]),
    pool.query({ text: 'select 1 as a, 2 as a', rowMode: 'array' }),
    pool.query({ text: 'select 1 as a', types: { getTypeParser: () => () => 'parsed' } as never }),
    pool.query('select 1 as a where false'),
    pool.query("update item set label = 'new' where id < 0"),
    pool.query('show server_version_num'),
  ]);
  expect(rows.rows).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }]);
  expect(rows).toMatchObject({ command: 'SELECT', rowCount: 3, fields: [{ name: 'number' }] });
  expect(arrays.rows).toEqual([[1, 2]]);
  expect(typed.rows).toEqual([{ a: 'parsed' }]);
  expect(none).toMatchObject({ rows: [], rowCount: 0, fields: [{ name: 'a' }] });
  expect(changed).toMatchObject({ command: 'UPDATE', rowCount: 0 });
  expect(shown.command).toBe('SHOW');
});

test('answers to texts without a statement, and to several statements, are as without pipelining', async () => {
  const pool = newPool({ max: 1 });
  const neighbours = times(10, (id) => pool.query('select $1::int as id', [id]));
  const [empty, comment, several] = await Promise.all([
    pool.query(''),
    pool.query('-- nothing\n /* at /* all */ */ ;'),
    pool.query('select 1 as a; select 2 as b') as unknown as Promise<{ rows: unknown[] }[]>,
  ]);
  expect([empty.rows, comment.rows]).toEqual([[], []]);
  expect(several.map((each) => each.rows)).toEqual([[{ a: 1 }], [{ b: 2 }]]);
  const answers = await Promise.all(neighbours);
  expect(answers.map(({ rows }) => rows[0].id)).toEqual(times(10, (id) => id));
  expect(pool.totalCount).toBe(1);
});

test('answers come by callback too, with or without values, once each', async () => {
  const pool = newPool({ max: 1 });
  const answers = await Promise.all([
    callbackOf((callback) => pool.query('select 1 as a', callback)),
    callbackOf((callback) => pool.query('select $1::int as a', [2], callback)),
    callbackOf((callback) => pool.query({ text: 'select $1::int as a', values: [3] }, callback)),
    callbackOf((callback) => pool.query('select 1 / 0', callback)),
    callbackOf((callback) => pool.query('set work_mem to default', callback)),
  ]);
  expect(answers.slice(0, 3)).toMatchObject(
    [1, 2, 3].map((a) => [undefined, { rows: [{ a }], rowCount: 1 }]),
  );
  expect(answers[3]).toMatchObject([{ code: '22012' }]);
  expect(answers[4]).toMatchObject([{ code: 'HG_SESSION_CHANGED' }]);
});

test('answers that are errors lead to the caller', async () => {
  const pool = newPool({ max: 1 });
  async function whereItWasAsked(text: string): Promise<void> {
    await pool.query(text);
  }
  const errors = await Promise.all(
    ['select 1 / 0', 'select nonsense', 'begin', 'set work_mem to default'].map((text) =>
      rejectionOf(whereItWasAsked(text)),
    ),
  );
  for (const { stack } of errors) expect(stack).toContain('whereItWasAsked');
});

test('answers refuse what is no query, and harm no neighbour by it', async () => {
  const pool = newPool({ max: 1 });
  const neighbours = times(10, (id) => pool.query('select $1::int as id', [id]));
  const nonsense = [
    [undefined],
    [null],
    [{}],
    [{ text: 7 }],
    ['select $1::int', 'not an array'],
    [{ text: 'select 1', values: 5 }],
  ];
  for (const args of nonsense) {
    const error = await rejectionOf(pool.query(...(args as [string])));
    expect(error.message).toMatch(/null or undefined|either text or a name|must be an array/);
  }
  const answers = await Promise.all(neighbours);
  expect(answers.map(({ rows }) => rows[0].id)).toEqual(times(10, (id) => id));
});

test('a checked-out client is never shared, and does not pipeline', async () => {
  const { pool, clients } = newWatchedPool({ max: 2 });
  await Promise.all(times(20, () => pool.query('select 1')));
  const own = (await pool.connect()) as unknown as WatchedClient & { release(): void };
  const before = own.asked.length;
  expect(own.pipeline).toBe(false);
  await Promise.all(times(100, () => pool.query('select 2')));
  expect(own.pipeline).toBe(false);
  expect(own.asked).toHaveLength(before);
  expect(own.underWay).toBe(0);
  expect(clients.reduce((sum, { asked }) => sum + asked.length, 0)).toBe(120);
  own.release();
});

test('a checked-out client does not pipeline whichever way it was had, after any load', async () => {
  const pool = newPool({ max: 1 });
  const load = new EndlessLoad(10, () => pool.query('select 1'));
  const seen: unknown[] = [];
  for (const _turn of times(10, () => 0)) {
    const client = await pool.connect();
    seen.push((client as unknown as WatchedClient).pipeline);
    client.release();
    await new Promise<void>((resolve) => {
      pool.connect((_error, other, release) => {
        seen.push((other as unknown as WatchedClient).pipeline);
        release();
        resolve();
      });
    });
  }
  await load.stop();
  const atOnce = pool.tryConnect();
  seen.push((atOnce as unknown as WatchedClient).pipeline);
  atOnce?.release();
  expect(seen).toEqual(times(21, () => false));
});

test('a checked-out client can have a cursor or a stream while the others are shared', async () => {
  const pool = newPool({ max: 2 });
  const load = new EndlessLoad(10, () => pool.query('select 1'));
  for (const rows of [1, 30, 250]) {
    const client = await pool.connect();
    const cursor = client.query(new Cursor<{ number: number }>(numbers, [rows]));
    let read = 0;
    for (let batch = await cursor.read(20); batch.length > 0; batch = await cursor.read(20))
      read += batch.length;
    await cursor.close();
    let streamed = 0;
    for await (const _row of client.query(new QueryStream(numbers, [rows], { batchSize: 20 }))) streamed++;
    client.release();
    expect([read, streamed]).toEqual([rows, rows]);
  }
  await load.stop();
});

test('a checked-out client has its transaction to itself', async () => {
  const pool = newPool({ max: 2 });
  const load = new EndlessLoad(10, () => pool.query('select 1'));
  const client = await pool.connect();
  await client.query('begin');
  await client.query("insert into item values (-1, 'mine')");
  await load.goesOn(100);
  const seen = await pool.query('select * from item where id = -1');
  await client.query('rollback');
  client.release();
  await load.stop();
  expect(seen.rows).toEqual([]);
});

test('through pool.query() a query stream has a connection to itself, given back at its end', async () => {
  const { pool, clients } = newWatchedPool({ max: 2 });
  const load = new EndlessLoad(10, () => pool.query('select 1'));
  const streams = times(5, async (index) => {
    const stream = new QueryStream(numbers, [100 + index], { batchSize: 10 });
    const end = pool.query(stream as unknown as pg.QueryConfig);
    let rows = 0;
    for await (const _row of stream) rows++;
    await end;
    return rows;
  });
  expect(await Promise.all(streams)).toEqual([100, 101, 102, 103, 104]);
  await load.stop();
  expect(pool.stats()).toMatchObject({ inUse: 0, waiting: 0 });
  expect(clients).toHaveLength(2);
});

test('through pool.query() a cursor can be read, and keeps its connection, as with pg.Pool', async () => {
  const pool = newPool({ max: 2 });
  const load = new EndlessLoad(10, () => pool.query('select 1'));
  const cursor = new Cursor<{ number: number }>(numbers, [25]);
  pool.query(cursor as unknown as pg.QueryConfig).catch(() => {});
  expect(await cursor.read(10)).toHaveLength(10);
  expect(await cursor.read(100)).toHaveLength(15);
  await load.goesOn(50);
  await load.stop();
  expect(pool.stats().inUse).toBe(1);
  await pool.end({ deadline: 1 });
});

test('through pool.query() rows in batches have a connection to themselves', async () => {
  const pool = newPool({ max: 2 });
  const load = new EndlessLoad(10, () => pool.query('select 1'));
  const { rows } = await pool.query({ text: numbers, values: [95], rows: 10 } as never);
  await load.stop();
  expect(rows).toHaveLength(95);
});

test('without what it needs works with clients that know nothing of pipelining, one query at a time on each', async () => {
  const { Client, made } = watchedClients();
  class OldClient extends Client {
    constructor(options: object) {
      super(options);
      delete (this as { pipeline?: boolean }).pipeline;
    }
  }
  const pool = newPool({ max: 2, Client: OldClient as typeof pg.Client });
  const outcomes = await Promise.allSettled(
    times(200, (id) => pool.query(id % 7 === 0 ? 'select 1 / 0' : `select ${id} as id`)),
  );
  for (const [id, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') expect(outcome.value.rows).toEqual([{ id }]);
    else expect([id % 7, outcome.reason.code]).toEqual([0, '22012']);
  }
  // Unshared, a query that fails costs its connection, as in pg.Pool.
  expect(Math.max(...made.map(({ peak }) => peak))).toBe(1);
  const client = await pool.connect();
  await expect(client.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  client.release();
  expect(await sessionsOf(pool)).toBeLessThanOrEqual(2);
});

test('without what it needs leaves all to connect() where a subclass has its own', async () => {
  let checkouts = 0;
  class CountingPool extends Pool {
    override connect(...args: unknown[]): never {
      checkouts += 1;
      return super.connect(...(args as [])) as never;
    }
  }
  const { Client, made } = watchedClients();
  const { url: connectionString } = server();
  const pool = new CountingPool({
    connectionString,
    max: 2,
    pipeline: { depth: 4 },
    Client,
  } as PoolOptions);
  await pool.ready(2);
  const answers = await Promise.all(times(50, (id) => pool.query('select $1::int as id', [id])));
  expect(answers.map(({ rows }) => rows[0].id)).toEqual(times(50, (id) => id));
  expect(await rejectionOf(pool.query('begin'))).toMatchObject({ code: 'HG_TRANSACTION_LEFT_OPEN' });
  expect(checkouts).toBe(51);
  expect(made.map(({ peak }) => peak)).toEqual([1, 1]);
  await pool.end();
});
