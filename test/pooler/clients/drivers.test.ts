import pg from 'pg';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { mostSessionsWhile } from './programs.js';

let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, { pooling: { poolSize: 4, maxPreparedStatements: 5 } });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

function sqlOf(options: postgres.Options<Record<string, postgres.PostgresType>> = {}): postgres.Sql {
  const { host, port, user, password, database } = pooler;
  const sql = postgres({ host, port, user, password, database, onnotice: () => {}, ...options });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}

test('node-postgres runs transactions, errors and everything between through the pooler', async () => {
  const client = await pooler.connect();
  expect((await client.query('select $1::int + 1 as sum', [41])).rows).toEqual([{ sum: 42 }]);
  await client.query('begin');
  await client.query('create table t1 (a int)');
  await client.query('insert into t1 values ($1)', [1]);
  await client.query('commit');
  expect((await client.query('select count(*)::int as n from t1')).rows).toEqual([{ n: 1 }]);
  await expect(client.query('select nonsense')).rejects.toMatchObject({ code: '42703' });
  await client.query('begin');
  await expect(client.query('insert into t1 values ($1)', ['x'])).rejects.toMatchObject({ code: '22P02' });
  await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' });
  await client.query('rollback');
  expect((await client.query('select 1; select 2')) as unknown as pg.QueryResult[]).toHaveLength(2);
});

test('node-postgres of many clients with prepared statements, each gets its own answers, on fewer servers', async () => {
  const most = await mostSessionsWhile(db, async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, () => pooler.connect()));
    await Promise.all(
      clients.map(async (client, mine) => {
        for (let round = 0; round < 40; round++) {
          // Some statements are the same for all, some have a name that means something else to each client.
          const shared = { name: `shared${round % 7}`, text: `select $1::int * ${round % 7} as value` };
          const own = { name: 'own', text: `select $1::int + ${mine} as value` };
          const [first, second] = await Promise.all([
            client.query({ ...shared, values: [mine] }),
            client.query({ ...own, values: [round] }),
          ]);
          expect(first.rows).toEqual([{ value: mine * (round % 7) }]);
          expect(second.rows).toEqual([{ value: round + mine }]);
        }
      }),
    );
  });
  expect(most).toBeLessThanOrEqual(4);
});

test('node-postgres reads through cursors and streams', async () => {
  const client = await pooler.connect();
  await client.query('begin');
  const cursor = client.query(new Cursor('select generate_series(1, 1000) as n'));
  expect(await cursor.read(3)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  expect(await cursor.read(2)).toEqual([{ n: 4 }, { n: 5 }]);
  await cursor.close();
  await client.query('commit');
  const stream = client.query(
    new QueryStream('select generate_series(1, 5000) as n', [], { batchSize: 100 }),
  );
  let sum = 0;
  for await (const { n } of stream as AsyncIterable<{ n: number }>) sum += n;
  expect(sum).toBe((5000 * 5001) / 2);
});

test('node-postgres uses a Pool of its own in front of the pooler', async () => {
  const { host, port, user, password, database } = pooler;
  const pool = new pg.Pool({ host, port, user, password, database, max: 10 });
  onTestFinished(() => pool.end());
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, n) => pool.query('select $1::int as n', [n])),
  );
  expect(answers.map(({ rows }) => rows[0].n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
});

test('postgres.js runs queries, transactions and errors through the pooler', async () => {
  const sql = sqlOf({ max: 3 });
  expect(await sql`select ${41}::int + 1 as sum`).toEqual([{ sum: 42 }]);
  await sql`create table if not exists t2 (a int, b text)`;
  await sql.begin(async (tx) => {
    await tx`insert into t2 ${tx([
      { a: 1, b: 'one' },
      { a: 2, b: 'two' },
    ])}`;
  });
  await expect(
    sql.begin(async (tx) => {
      await tx`insert into t2 values (3, 'three')`;
      await tx`select nonsense`;
    }),
  ).rejects.toMatchObject({ code: '42703' });
  expect(await sql`select a, b from t2 order by a`).toEqual([
    { a: 1, b: 'one' },
    { a: 2, b: 'two' },
  ]);
});

test('postgres.js pipelines hundreds of queries over few connections, and each gets its own answer', async () => {
  const sql = sqlOf({ max: 12 });
  const most = await mostSessionsWhile(db, async () => {
    const answers = await Promise.all(
      Array.from({ length: 800 }, (_, n) =>
        n % 10 === 3
          ? sql`select ${n}::int / 0 as n`.catch((error: { code: string }) => error.code)
          : sql`select ${n}::int as n, ${String(n % 13)} as text`.then(
              ([row]) => `${row?.['n']} ${row?.['text']}`,
            ),
      ),
    );
    expect(answers).toEqual(
      Array.from({ length: 800 }, (_, n) => (n % 10 === 3 ? '22012' : `${n} ${n % 13}`)),
    );
  });
  expect(most).toBeLessThanOrEqual(4);
});

test('postgres.js copies both ways', async () => {
  const sql = sqlOf({ max: 1 });
  await sql`create table if not exists t3 (a int)`;
  const into = await sql`copy t3 from stdin`.writable();
  for (let n = 1; n <= 1000; n++) into.write(`${n}\n`);
  await new Promise<void>((resolve, reject) => {
    into.on('error', reject);
    into.end(resolve);
  });
  expect(await sql`select count(*)::int as n, sum(a)::int as sum from t3`).toEqual([
    { n: 1000, sum: 500_500 },
  ]);
  const from = await sql`copy (select a from t3 order by a) to stdout`.readable();
  let text = '';
  for await (const chunk of from) text += chunk;
  expect(text.trim().split('\n')).toHaveLength(1000);
});

test('postgres.js hears notifications', async () => {
  const sql = sqlOf({ max: 2 });
  const heard = new Promise<string>((resolve) => {
    void sql.listen('channel', resolve, () => sql.notify('channel', 'hello'));
  });
  expect(await heard).toBe('hello');
});

test('postgres.js walks through a cursor', async () => {
  const sql = sqlOf({ max: 1 });
  const sizes: number[] = [];
  await sql`select generate_series(1, 25) as n`.cursor(10, (rows) => {
    sizes.push(rows.length);
  });
  expect(sizes).toEqual([10, 10, 5]);
});

test("two drivers that prepare the same text with different types do not get in each other's way", async () => {
  const sql = sqlOf({ max: 4 });
  const client = await pooler.connect();
  for (let n = 0; n < 10; n++) {
    const [mine, theirs] = await Promise.all([
      client.query({ name: 'same', text: 'select $1 as value', values: ['text'] }),
      sql`select ${n}::int as value`,
    ]);
    expect(mine.rows).toEqual([{ value: 'text' }]);
    expect(theirs).toEqual([{ value: n }]);
  }
});
