import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** A statement with a name, as node-postgres prepares it. */
function everything(client: pg.Client, name: string): Promise<pg.QueryResult> {
  return client.query({ name, text: 'select * from changing' });
}

describe('a table that is changed under a prepared statement', () => {
  test('is an error for who has prepared it, as on the server, and not for who prepares it anew', async () => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
    const [first, second, changer] = await Promise.all([
      pooler.connect(),
      pooler.connect(),
      pooler.connect(),
    ]);
    await changer.query('create table changing (a int)');
    expect((await everything(first, 'all')).fields).toHaveLength(1);
    await changer.query('alter table changing add b int');
    await expect(everything(first, 'all')).rejects.toMatchObject({
      code: '0A000',
      message: 'cached plan must not change result type',
    });
    // Another client that prepares the same text has nothing to do with it.
    expect((await everything(second, 'all')).fields).toHaveLength(2);
    // Nor has the same one, under another name.
    expect((await everything(first, 'all again')).fields).toHaveLength(2);
    // And the next use of the old one has a new plan.
    expect((await everything(first, 'all')).fields).toHaveLength(2);
    await changer.query('drop table changing');
  });

  test('is no error any more after RECONNECT', async () => {
    const pooler = await startTestPooler(db, {
      pooling: { poolSize: 1 },
      admin: { adminUsers: ['boss'] },
    });
    const [client, boss] = [
      await pooler.connect(),
      await pooler.connect({ database: 'headgate', user: 'boss' }),
    ];
    await client.query('create table changing (a int)');
    await everything(client, 'all');
    await client.query('alter table changing add b int');
    await boss.query('reconnect');
    expect((await everything(client, 'all')).fields).toHaveLength(2);
    await client.query('drop table changing');
  });
});

test('statements that no client has any more are not kept without end', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1, maxPreparedStatements: 10 } });
  const client = await pooler.connect();
  for (let n = 0; n < 60; n++) await client.query({ name: `s${n}`, text: `select ${n} as n` });
  const { rows } = await client.query('select count(*)::int as kept from pg_prepared_statements');
  expect(rows[0].kept).toBeLessThanOrEqual(10);
  // The first is long gone there, and is prepared again.
  expect((await client.query({ name: 's0', text: 'select 0 as n' })).rows).toEqual([{ n: 0 }]);
});

test('a statement of more than 1 MB is not kept under a name, and the client is told and goes on', async () => {
  const pooler = await startTestPooler(db);
  const client = await pooler.connect();
  const text = `select length('${'x'.repeat(1_100_000)}') as n`;
  await expect(client.query({ name: 'long', text })).rejects.toMatchObject({
    severity: 'ERROR',
    code: '54000',
  });
  expect((await client.query({ text, values: [] })).rows).toEqual([{ n: 1_100_000 }]);
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
