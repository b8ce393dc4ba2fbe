// SHOW QUERY_STATS and SHOW ACTIVE_QUERIES in front of Aurora DSQL, which has no pg_stat_statements: on the stand-in.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { startDsqlPooler } from './dsql-pooler.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
});
afterAll(() => dsql.stop());

test('SHOW QUERY_STATS counts calls, rows and errors of statements on Aurora DSQL, a lost conflict among them', async () => {
  const pooler = await startDsqlPooler(dsql, { admin: { adminUsers: ['admin'] } });
  const [one, other] = [await pooler.connect(), await pooler.connect()];
  await one.query('create table stock (id int primary key, n int)');
  await one.query('insert into stock values (1, 10)');
  for (let n = 0; n < 3; n++) await one.query('select n from stock where id = $1', [1]);
  for (const client of [one, other]) {
    await client.query('begin');
    await client.query('update stock set n = n - 1 where id = 1');
  }
  await one.query('commit');
  await expect(other.query('commit')).rejects.toMatchObject({ code: '40001' });

  const admin = await pooler.connect({ database: 'headgate' });
  const { rows } = await admin.query('SHOW QUERY_STATS');
  const of = (query: string) => rows.find((row) => row.query === query);
  expect(of('select n from stock where id = $1')).toMatchObject({ calls: '3', errors: '0', rows: '3' });
  expect(of('update stock set n = n - ? where id = ?')).toMatchObject({ calls: '2', errors: '0' });
  expect(of('commit')).toMatchObject({ calls: '2', errors: '1' });
  const running = await admin.query('SHOW ACTIVE_QUERIES');
  expect(running.rows.filter(({ database }) => database === 'postgres')).toEqual([]);
});
