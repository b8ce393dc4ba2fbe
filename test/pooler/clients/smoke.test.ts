import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('a client of node-postgres gets answers through the pooler', async () => {
  const pooler = await startTestPooler(db);
  const client = await pooler.connect();
  const { rows } = await client.query('select $1::int + 1 as sum', [41]);
  expect(rows).toEqual([{ sum: 42 }]);
  await client.query('begin');
  await client.query('create table t (a int)');
  await client.query('insert into t values (1)');
  await client.query('commit');
  expect((await client.query('select count(*)::int as n from t')).rows).toEqual([{ n: 1 }]);
  await expect(client.query('select nonsense')).rejects.toMatchObject({ code: '42703' });
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
