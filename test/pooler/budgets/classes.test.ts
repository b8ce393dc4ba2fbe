import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('regular and reserved work of one user single statements get on beside any number of transactions', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 4 },
    fairShares: { reservedRatio: 0.5 },
  });
  let isOver = false;
  let transactions = 0;
  let statements = 0;
  const transact = async (): Promise<void> => {
    const client = await pooler.connect();
    while (!isOver) {
      await client.query('begin');
      await client.query('select pg_sleep(0.02)');
      await client.query('commit');
      transactions++;
    }
  };
  const state = async (): Promise<void> => {
    const client = await pooler.connect();
    while (!isOver) {
      await client.query('select 1');
      statements++;
    }
  };
  const work = [...Array.from({ length: 16 }, transact), ...Array.from({ length: 2 }, state)];
  // Housekeeping has to have seen both once, so that each class has its part.
  while (transactions < 200) await new Promise((resolve) => setImmediate(resolve));
  const before = { transactions, statements };
  while (transactions < before.transactions + 200) await new Promise((resolve) => setImmediate(resolve));
  isOver = true;
  await Promise.all(work);
  // In one line with the transactions they would have one turn in eight.
  expect((statements - before.statements) / 200).toBeGreaterThan(0.5);
});

test('regular and reserved work of one user a statement that opens a transaction counts as reserved from then on', async () => {
  const pooler = await startTestPooler(db, { pooling: { deferBegin: false } });
  const client = await pooler.connect();
  const classes = () => pooler.pooler.stats().pools.map(({ classes: of }) => of)[0];
  await client.query('select 1');
  expect(classes()).toMatchObject({ regularInUse: 0, reservedInUse: 0 });
  await client.query('begin');
  expect(classes()).toMatchObject({ regularInUse: 0, reservedInUse: 1 });
  await client.query('commit');
  expect(classes()).toMatchObject({ regularInUse: 0, reservedInUse: 0 });
  await client.query('listen something');
  await expect.poll(classes).toMatchObject({ regularInUse: 0, reservedInUse: 1 });
});
