import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { mostSessionsWhile } from './programs.js';

const poolSize = 3;
let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, { pooling: { poolSize, maxPreparedStatements: 4 } });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

function poolOf(options: pg.PoolConfig = {}): pg.Pool {
  const { host, port, user, password, database } = pooler;
  const pool = new pg.Pool({ host, port, user, password, database, max: 20, ...options });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return pool;
}

/** One transfer of the bank: prepared statements, sometimes an error, sometimes a rollback. */
async function transfer(client: pg.ClientBase, turn: number): Promise<void> {
  const [from, to] = [turn % 10, (turn * 3 + 1) % 10].sort() as [number, number];
  const change = { name: 'change', text: 'update bank set balance = balance + $1 where id = $2' };
  await client.query('begin');
  await client.query({ ...change, values: [-5, from] });
  if (turn % 7 === 3) {
    await expect(client.query({ ...change, values: ['x', to] })).rejects.toMatchObject({ code: '22P02' });
    await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' });
  } else await client.query({ ...change, values: [5, to] });
  const end = await client.query(turn % 7 === 5 ? 'rollback' : 'commit');
  expect(end.command).toBe(turn % 7 === 3 || turn % 7 === 5 ? 'ROLLBACK' : 'COMMIT');
}

test('node-postgres under load 20 clients with transactions, prepared statements, cursors and errors get what is theirs on 3 servers', async () => {
  const pool = poolOf();
  await pool.query(
    'create table bank (id int primary key, balance int not null); insert into bank select n, 100 from generate_series(0, 9) as n',
  );
  const most = await mostSessionsWhile(db, () =>
    Promise.all(
      Array.from({ length: 20 }, async (_, mine) => {
        const client = await pool.connect();
        try {
          for (let round = 0; round < 12; round++) {
            await transfer(client, mine * 12 + round);
            const named = {
              name: `sum${round % 6}`,
              text: `select $1::int + ${round % 6} as sum, ${mine} as mine`,
            };
            const { rows } = await client.query({
              ...named,
              name: `${named.name}-${mine}`,
              values: [round],
            });
            expect(rows).toEqual([{ sum: round + (round % 6), mine }]);
            await expect(client.query('select $1::int / 0', [mine])).rejects.toMatchObject({
              code: '22012',
            });
          }
        } finally {
          client.release();
        }
      }),
    ),
  );
  expect(most).toBeLessThanOrEqual(poolSize);
  expect((await pool.query('select sum(balance)::int as sum from bank')).rows).toEqual([{ sum: 1000 }]);
});

test('node-postgres under load cursors and streams read in small batches while others work, also those that are left half read', async () => {
  const pool = poolOf({ max: 8 });
  await Promise.all(
    Array.from({ length: 24 }, async (_, mine) => {
      const client = await pool.connect();
      try {
        if (mine % 3 === 0) {
          const stream = client.query(
            new QueryStream('select n, $1::int as mine from generate_series(1, 300) as n', [mine], {
              batchSize: 17,
            }),
          );
          let sum = 0;
          for await (const row of stream as AsyncIterable<{ n: number; mine: number }>) {
            expect(row.mine).toBe(mine);
            sum += row.n;
          }
          expect(sum).toBe(45_150);
        } else if (mine % 3 === 1) {
          const cursor = client.query(
            new Cursor<{ n: number }>('select $1::int + n as n from generate_series(1, 500) as n', [mine]),
          );
          expect((await cursor.read(9)).map(({ n }) => n)).toEqual(
            Array.from({ length: 9 }, (__, n) => mine + n + 1),
          );
          await cursor.close();
        } else {
          const cursor = client.query(new Cursor('select 1 / (100 - n) from generate_series(1, 200) as n'));
          await cursor.read(50);
          await expect(cursor.read(100)).rejects.toMatchObject({ code: '22012' });
        }
        expect((await client.query('select $1::int as mine', [mine])).rows).toEqual([{ mine }]);
      } finally {
        client.release();
      }
    }),
  );
});

test('node-postgres under load COPY streams both ways, with errors from the server and from the client', async () => {
  const pool = poolOf({ max: 6 });
  await pool.query('create table copied (mine int, n int, t text)');
  await Promise.all(
    Array.from({ length: 6 }, async (_, mine) => {
      const client = await pool.connect();
      try {
        const rows = Array.from({ length: 5000 }, (__, n) => `${mine}\t${n}\t${'x'.repeat(n % 40)}\n`);
        await pipeline(Readable.from(rows), client.query(copyFrom('copy copied from stdin')));
        let text = '';
        const read = client.query(
          copyTo(`copy (select * from copied where mine = ${mine} order by n) to stdout`),
        );
        for await (const chunk of read) text += chunk;
        expect(text === rows.join('')).toBe(true);
        await expect(
          pipeline(
            Readable.from(['1\t2\tok\n', 'no number\n']),
            client.query(copyFrom('copy copied from stdin')),
          ),
        ).rejects.toMatchObject({ code: '22P02' });
        expect((await client.query('select $1::int as mine', [mine])).rows).toEqual([{ mine }]);
      } finally {
        client.release();
      }
    }),
  );
  expect((await pool.query('select count(*)::int as n from copied')).rows).toEqual([{ n: 30_000 }]);
});

test('node-postgres under load one that listens hears every notification of the others, and the others share what is left', async () => {
  const listener = await pooler.connect();
  const heard: string[] = [];
  const all = new Promise<void>((resolve) => {
    listener.on('notification', ({ payload }) => {
      heard.push(payload ?? '');
      if (heard.length === 50) resolve();
    });
  });
  await listener.query('listen news');
  const pool = poolOf();
  await Promise.all(
    Array.from({ length: 50 }, (_, n) => pool.query('select pg_notify($1, $2)', ['news', String(n)])),
  );
  await all;
  expect(heard.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n));
  expect((await listener.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('node-postgres under load a statement past its time is cancelled on the server, and its connection goes on', async () => {
  const pool = poolOf({ max: 6, statement_timeout: 100 });
  await Promise.all(
    Array.from({ length: 6 }, () =>
      expect(pool.query('select pg_sleep(30)')).rejects.toMatchObject({ code: '57014' }),
    ),
  );
  expect((await pool.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '100ms' }]);
  const other = await pooler.connect();
  expect((await other.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '0' }]);
});

test('node-postgres under load clients that leave in the middle of a transaction leave nothing of it behind', async () => {
  const watcher = await pooler.connect();
  await watcher.query('create table left_behind (n int)');
  for (let n = 0; n < 8; n++) {
    const client = await pooler.connect();
    await client.query('begin');
    await client.query({ name: 'insert', text: 'insert into left_behind values ($1)', values: [n] });
    if (n % 2 === 0) await client.query('select 1 / 0').catch(() => {});
    await client.end();
  }
  expect((await watcher.query('select count(*)::int as n from left_behind')).rows).toEqual([{ n: 0 }]);
});

test('node-postgres under load after a change of a table, a new connection can prepare a statement that an old one has', async () => {
  const query = { name: 'all', text: 'select * from changed' };
  const old = await pooler.connect();
  await old.query('create table changed (a int); insert into changed values (1)');
  for (let n = 0; n < 3; n++) expect((await old.query(query)).rows).toEqual([{ a: 1 }]);
  await old.query("alter table changed add b text default 'b'");
  const fresh = await pooler.connect();
  for (let n = 0; n < 2; n++) {
    expect((await fresh.query(query)).rows).toEqual([{ a: 1, b: 'b' }]);
    // As PostgreSQL answers whoever has prepared it before, for as long as the table is another.
    await expect(old.query(query)).rejects.toMatchObject({ code: '0A000' });
  }
  expect((await old.query({ ...query, name: 'again' })).rows).toEqual([{ a: 1, b: 'b' }]);
});
