/** Drivers on the stand-in: cursors, streams, postgres.js, cancel requests, slow readers. */
import { connect } from 'node:net';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Backend } from '../../../src/wire/message-types.js';
import { step } from '../../pooler/raw/trace.js';
import { type Client, conflict, World } from '../conflicts/world.js';
import { connectRaw } from './pair.js';
import { tokenFor } from './token.js';

let world: World;
let a: Client;
let b: Client;

beforeAll(async () => {
  world = await World.start();
  a = await world.connect();
  await a.must('CREATE TABLE t (id int PRIMARY KEY, v text)');
  await a.must(`INSERT INTO t SELECT g, 'x' FROM generate_series(1, 1000) g`);
  b = await world.connect();
});

afterAll(async () => {
  await world?.stop();
});

test('pg reads with pg-cursor in parts, in a transaction and without one', async () => {
  for (const isInside of [false, true]) {
    if (isInside) await a.must('BEGIN');
    const cursor = a.pg.query(new Cursor('SELECT id FROM t ORDER BY id'));
    const parts = [await cursor.read(3), await cursor.read(400), await cursor.read(1000)];
    expect(parts.map(({ length }) => length)).toEqual([3, 400, 597]);
    await cursor.close();
    if (isInside) await a.must('COMMIT');
  }
});

test('pg streams with pg-query-stream', async () => {
  let sum = 0;
  for await (const row of a.pg.query(new QueryStream('SELECT id FROM t'))) sum += (row as { id: number }).id;
  expect(sum).toBe(500_500);
});

test('pg answers rows of a cursor after the transaction has gone on with copies', async () => {
  await a.must('BEGIN');
  await b.must('BEGIN');
  const cursor = b.pg.query(new Cursor('SELECT v FROM t WHERE id <= 4 ORDER BY id'));
  expect(await cursor.read(1)).toEqual([{ v: 'x' }]);
  await a.must(`UPDATE t SET v = 'a' WHERE id <= 4`);
  const again = b.pg.query(`UPDATE t SET v = 'b' WHERE id <= 4`);
  expect(await cursor.read(1)).toEqual([{ v: 'x' }]);
  await cursor.close();
  expect(await again).toMatchObject({ rowCount: 4 });
  expect(await b.must('SELECT v FROM t WHERE id = 1')).toEqual([{ v: 'b' }]);
  await a.must('ROLLBACK');
  await b.must('ROLLBACK');
});

test('pg sees its own writes with a statement that was prepared before the conflict', async () => {
  const text = 'SELECT v FROM t WHERE id = $1';
  const read = (client: Client) =>
    client.pg.query({ name: 'read', text, values: [1] }).then(({ rows }) => rows);
  await a.must('BEGIN');
  await b.must('BEGIN');
  expect(await read(b)).toEqual([{ v: 'x' }]);
  await a.must(`UPDATE t SET v = 'a' WHERE id = 1`);
  await b.must(`UPDATE t SET v = 'b' WHERE id = 1`);
  expect(await read(b)).toEqual([{ v: 'b' }]);
  const update = {
    name: 'update',
    text: `UPDATE t SET v = v || $1 WHERE id = 1 RETURNING v`,
    values: ['2'],
  };
  expect((await b.pg.query(update)).rows).toEqual([{ v: 'b2' }]);
  await a.must('COMMIT');
  expect(await read(b)).toEqual([{ v: 'b2' }]);
  expect(await b.run('COMMIT')).toMatchObject(conflict);
  expect(await read(b)).toEqual([{ v: 'a' }]);
  expect((await b.pg.query(update)).rows).toEqual([{ v: 'a2' }]);
});

test('pg prepares a named statement once, also when it fails', async () => {
  const insert = { name: 'insert', text: 'INSERT INTO t VALUES ($1, $2)', values: [1, 'y'] };
  await expect(a.pg.query(insert)).rejects.toMatchObject({ code: '23505' });
  await expect(a.pg.query(insert)).rejects.toMatchObject({ code: '23505' });
  await a.must('BEGIN');
  await expect(a.pg.query(insert)).rejects.toMatchObject({ code: '23505' });
  await a.must('ROLLBACK');
});

test('pg cancels a statement, also one that changes rows', async () => {
  const { processID, secretKey } = a.pg as unknown as { processID: number; secretKey: number };
  const locks = `SELECT count(*)::int AS n FROM pg_locks WHERE relation = 't'::regclass`;
  const cancel = async (): Promise<void> => {
    // The statement runs as soon as it has locked its table.
    await expect.poll(async () => (await b.must(locks))[0], { timeout: 10_000 }).not.toEqual({ n: 0 });
    const packet = Buffer.from([0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.writeInt32BE(processID, 8);
    packet.writeInt32BE(secretKey, 12);
    connect(world.dsql.port, world.dsql.host)
      .on('error', () => {})
      .end(packet);
  };
  const select = 'SELECT pg_sleep(20), (SELECT count(*) FROM t)';
  for (const sql of [select, `UPDATE t SET v = 'c' WHERE pg_sleep(20) IS NULL`]) {
    const [outcome] = await Promise.all([a.run(sql), cancel()]);
    expect(outcome).toMatchObject({ code: '57014', message: 'canceling statement due to user request' });
  }
  await a.must('BEGIN');
  const [outcome] = await Promise.all([a.run(select), cancel()]);
  expect(outcome).toMatchObject({ code: '57014' });
  expect(await a.run('SELECT 1')).toMatchObject({ code: '25P02' });
  await a.must('ROLLBACK');
  expect(world.troubles).toEqual([]);
});

test('a slow reader does not make the stand-in keep a large result', async () => {
  const session = await connectRaw(world.dsql);
  const { writer } = step((s) => s.query(`SELECT repeat('x', 10000) FROM generate_series(1, 4000)`)).send;
  session.socket.pause();
  const before = process.memoryUsage().rss;
  session.socket.write(Buffer.from(writer.buffer.subarray(0, writer.length)));
  // Enough for the whole result to come, if it were read.
  for (let n = 0; n < 500; n++) await a.run('SELECT 1');
  expect(process.memoryUsage().rss - before).toBeLessThan(30 * 1_048_576);
  session.socket.resume();
  const messages = await session.until(Backend.readyForQuery);
  expect(messages.filter(({ type }) => type === Backend.dataRow)).toHaveLength(4_000);
  session.socket.destroy();
});

test('postgres.js runs statements, transactions, batches and cursors', async () => {
  const { host, port, ca } = world.dsql;
  const sql = postgres({
    host,
    port,
    user: 'admin',
    database: 'postgres',
    password: await tokenFor(world.dsql),
    ssl: { ca },
    max: 2,
    onnotice: () => {},
  });
  try {
    expect(await sql`SELECT id FROM t WHERE id = ${5}`).toEqual([{ id: 5 }]);
    expect(await sql`INSERT INTO t ${sql([{ id: 2001, v: 'new' }])} RETURNING v`).toEqual([{ v: 'new' }]);
    await expect(sql`INSERT INTO t VALUES (${2001}, 'again')`).rejects.toMatchObject({ code: '23505' });
    const inside = await sql.begin(async (tx) => {
      const [one, two] = await Promise.all([
        tx`SELECT 1 AS x`,
        tx`UPDATE t SET v = 'z' WHERE id = ${2001} RETURNING v`,
      ]);
      return [one, two];
    });
    expect(inside).toEqual([[{ x: 1 }], [{ v: 'z' }]]);
    const pipelined = await Promise.all(Array.from({ length: 20 }, (_, n) => sql`SELECT ${n}::int AS n`));
    expect(pipelined.map(([row]) => row?.['n'])).toEqual(Array.from({ length: 20 }, (_, n) => n));
    let seen = 0;
    await sql`SELECT id FROM t`.cursor(100, (rows) => {
      seen += rows.length;
    });
    expect(seen).toBe(1001);
    expect((await sql.unsafe('SELECT 1 AS a; SELECT 2 AS b')).map((result) => result)).toHaveLength(2);
  } finally {
    await sql.end();
  }
  expect(world.troubles).toEqual([]);
});
