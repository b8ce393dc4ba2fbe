import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
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

function sqlOf(options: postgres.Options<Record<string, postgres.PostgresType>> = {}): postgres.Sql {
  const { host, port, user, password, database } = pooler;
  const sql = postgres({ host, port, user, password, database, onnotice: () => {}, ...options });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}

const codeOf = (error: { code: string }): string => error.code;

describe.each([true, false])('postgres.js under load, prepares: %s', (prepare) => {
  test('transactions with savepoints and errors add up', async () => {
    const sql = sqlOf({ max: 12, prepare });
    await sql`drop table if exists bank`;
    await sql`create table bank (id int primary key, balance int not null)`;
    await sql`insert into bank select n, 100 from generate_series(0, 9) as n`;
    const move = (turn: number) =>
      sql.begin(async (tx) => {
        const [from, to] = [turn % 10, (turn * 3 + 1) % 10].sort() as [number, number];
        await tx`update bank set balance = balance - 5 where id = ${from}`;
        await tx
          .savepoint(
            (inner) => inner`update bank set balance = balance / ${turn % 4 === 0 ? 0 : 1} where id = ${to}`,
          )
          .catch((error: { code: string }) => expect(error.code).toBe('22012'));
        await tx`update bank set balance = balance + 5 where id = ${to}`;
        if (turn % 5 === 0) throw new Error('undone');
      });
    const most = await mostSessionsWhile(db, async () => {
      const ends = await Promise.all(
        Array.from({ length: 120 }, (_, n) =>
          move(n).then(
            () => 'done',
            (error: Error) => error.message,
          ),
        ),
      );
      expect(ends).toEqual(Array.from({ length: 120 }, (_, n) => (n % 5 === 0 ? 'undone' : 'done')));
    });
    expect(most).toBeLessThanOrEqual(poolSize);
    expect(await sql`select sum(balance)::int as sum from bank`).toEqual([{ sum: 1000 }]);
  });

  test('a pipeline of many different statements with errors among them gives each its own answer', async () => {
    const sql = sqlOf({ max: 2, prepare });
    const answers = await Promise.all(
      Array.from({ length: 400 }, (_, n) =>
        sql
          .unsafe(`select $1::int ${n % 11 === 4 ? '/ 0' : `+ ${n % 23}`} as sum`, [n], { prepare })
          .then(([row]) => row?.['sum'] as number, codeOf),
      ),
    );
    expect(answers).toEqual(Array.from({ length: 400 }, (_, n) => (n % 11 === 4 ? '22012' : n + (n % 23))));
  });

  test('simple queries of several statements go between the others', async () => {
    const sql = sqlOf({ max: 3, prepare });
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        n % 3 === 0
          ? sql`select 1 as a; select 2 as a`.simple().then((results) => JSON.stringify(results))
          : sql`select ${n}::int as n`.then(([row]) => `${row?.['n']}`),
      ),
    );
    expect(answers).toEqual(
      Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? '[[{"a":1}],[{"a":2}]]' : String(n))),
    );
  });

  test('postgres.js cancels one query, and the query beside it goes on', async () => {
    const sql = sqlOf({ max: 3, prepare });
    const others = sqlOf({ max: 1, prepare });
    const slow = sql`select pg_sleep(60), 'to be cancelled'`;
    const ended = slow.then(() => 'ended', codeOf);
    for (;;) {
      const [row] = await others`select count(*)::int as n from pg_stat_activity
        where state = 'active' and query like '%to be cancelled%' and pid <> pg_backend_pid()`;
      if (row?.['n'] === 1) break;
    }
    const beside = Promise.all(Array.from({ length: 20 }, (_, n) => others`select ${n}::int as n`));
    await slow.cancel();
    expect(await ended).toBe('57014');
    expect((await beside).map(([row]) => row?.['n'])).toEqual(Array.from({ length: 20 }, (_, n) => n));
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  test('rows are handed on as they come, and a cursor can be left', async () => {
    const sql = sqlOf({ max: 4, prepare });
    await Promise.all(
      Array.from({ length: 12 }, async (_, mine) => {
        let sum = 0;
        await sql`select n, ${mine}::int as mine from generate_series(1, 200) as n`.forEach((row) => {
          expect(row['mine']).toBe(mine);
          sum += row['n'];
        });
        expect(sum).toBe(20_100);
        const seen: number[] = [];
        for await (const rows of sql`select generate_series(1, 100) as n`.cursor(10)) {
          seen.push(...rows.map((row) => row['n'] as number));
          if (seen.length === 30) break;
        }
        expect(seen).toEqual(Array.from({ length: 30 }, (__, n) => n + 1));
      }),
    );
  });

  test('reserved connections, described statements and types of their own work', async () => {
    const sql = sqlOf({ max: 4, prepare });
    const reserved = await sql.reserve();
    await reserved`set application_name = 'reserved'`;
    expect(await reserved`show application_name`).toEqual([{ application_name: 'reserved' }]);
    reserved.release();
    const described = await sql`select ${1}::int as a, ${'x'}::text as b`.describe();
    expect(described.columns.map(({ name }) => name)).toEqual(['a', 'b']);
    await sql`drop table if exists typed`;
    await sql`create table typed (id int, tags text[], data jsonb, at timestamptz, bytes bytea)`;
    const row = {
      id: 1,
      tags: ['a', 'b "c"'],
      data: { deep: [1, null] },
      at: new Date(0),
      bytes: Buffer.from([0, 255]),
    };
    await sql`insert into typed ${sql({ ...row, data: sql.json(row.data) })}`;
    expect(await sql`select * from typed`).toEqual([row]);
  });
});
