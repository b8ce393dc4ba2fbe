import { afterAll, beforeAll, expect, test } from 'vitest';
import { rejectionOf } from '../../support/outcomes.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('a client that waits in vain is told which budget is exhausted, and which users hold it', async () => {
  const { host, port, password, database: dbname } = db;
  const place = { host, port, password, dbname };
  const pooler = await startTestPooler(db, {
    databases: { one: place, other: place },
    fairShares: { capacity: 1 },
    timeouts: { queryWaitTimeout: '300ms' },
  });
  const holder = await pooler.connect({ database: 'one' });
  await holder.query('begin');
  await holder.query('select 1');
  const waiter = await pooler.connect({ database: 'one' });
  const other = await rejectionOf(
    pooler.connect({ database: 'other' }).then((client) => client.query('select 1')),
  );
  expect(other).toMatchObject({ code: '53300' });
  expect(String((other as { detail?: string }).detail)).toMatch(
    /^1 of 1 connections \(total\) are held, 0 of them here\.$/,
  );
  await holder.query('commit');
  expect((await waiter.query('select 2 as n')).rows).toEqual([{ n: 2 }]);
});
