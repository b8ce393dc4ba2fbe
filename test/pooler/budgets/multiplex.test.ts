// Statements that share connections while users share a budget.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { startTenants } from './tenants.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** Each client checks its own answers. */
function tagged(user: string): (client: pg.Client) => Promise<void> {
  let number = 0;
  return async (client) => {
    const tag = `${user}-${number++}`;
    const { rows } = await client.query('select $1::text as tag, current_user::text as name', [tag]);
    expect(rows[0].tag).toBe(tag);
    expect(rows[0].name.endsWith(user)).toBe(true);
  };
}

test('users with statements on shared connections get their shares, their own answers, and never more than the budget', async () => {
  const { work, settled, pooler } = await startTenants(db, ['many', 'few'], 4, {
    pooling: { multiplexDepth: 4, multiplexLongest: '10s' },
  });
  const many = work('many', 20, tagged('many'));
  await settled({ many: 4 });
  const few = work('few', 10, tagged('few'));
  await settled({ many: 2, few: 2 });
  await Promise.all([many.more(300), few.more(300)]);
  await few.stop();
  // Statements behind others are demand: the rest of the budget goes back to whoever has them.
  await settled({ many: 4 });
  await many.more(300);
  expect([...many.errors, ...few.errors]).toEqual([]);
  const shared = pooler.stats().pools.map(({ tally }) => tally.multiplexed);
  expect(Math.min(...shared)).toBeGreaterThan(10);
});
