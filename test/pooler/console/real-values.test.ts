// PostgreSQL itself reads the console's binary values as the numbers that they are.
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { encodeRow } from '../../../src/pooler/console/result-values.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test.each(['int4', 'int8', 'numeric'] as const)(
  'a binary %s is the same number to PostgreSQL',
  async (type) => {
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    onTestFinished(() => client.end());
    const edges = [0, 1, -1, 9_999, 10_000, 10_001, 99_999_999, 100_000_000, -100_010_000, 2_147_483_647];
    const numbers = [
      ...edges,
      ...fc.sample(type === 'int4' ? fc.integer() : fc.maxSafeInteger(), 50),
      ...(type === 'int4' ? [-2_147_483_648] : [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER]),
    ];
    for (const number of numbers) {
      // node-postgres sends a buffer as a binary value.
      const bytes = encodeRow([{ name: 'x', type }], [number], [1]);
      const { rows } = await client.query(`select $1::${type}::text as told`, bytes);
      expect(rows).toEqual([{ told: String(number) }]);
    }
  },
);

test('a weight with a fraction is the same number to PostgreSQL, as text and in binary', async () => {
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  onTestFinished(() => client.end());
  for (const number of [0.001, 0.5, 1, 2.5, 9_999.999, 10_000.001, 1_000_000]) {
    const told = [0, 1].map((format) => encodeRow([{ name: 'x', type: 'decimal' }], [number], [format])[0]);
    const { rows } = await client.query('select $1::numeric = $2::numeric as same', told);
    expect(rows).toEqual([{ same: true }]);
    expect(told[0]).toBe(String(number));
  }
});
