/** Runs every example as its reader would, on a real PostgreSQL, and reads what it prints. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

const examples = fileURLToPath(new URL('../../../examples/', import.meta.url));

const transfers = [
  'committed: alice 70, bob 130',
  'rolled back: alice has not got 1000',
  'unchanged: alice 70, bob 130',
];
// A fast server may have answered all of them before the last connection is open.
const limit = expect.stringMatching(/^50 transactions at once, at most [1-4] connections$/);
const end = 'closed, 0 connections left';

const expected: Record<string, unknown[]> = {
  basic: [
    'hello',
    'kept until commit',
    expect.stringMatching(/^100 queries at once, at most [1-5] connections$/),
    'closed',
  ],
  kysely: [...transfers, limit, 'streamed 1000 rows, their sum is 500500', end],
  drizzle: [...transfers, 'alice is there already', 'savepoint: alice 70, bob 130, carol 5', limit, end],
  prisma: [...transfers.slice(0, 2), 'unchanged: alice 70, bob 130, 1 transfer', limit, end],
};

describe('the examples', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await withDatabase();
  });
  afterAll(() => db.drop());

  test('the examples are all tested here', async () => {
    // What stands underneath pg is a main.cjs. It and workflow-store, which runs on DSQL, have tests of their own.
    const files = await readdir(examples, { recursive: true });
    const programs = files.filter((file) => basename(file) === 'main.mjs');
    expect(programs.map(dirname).sort()).toEqual([...Object.keys(expected), 'workflow-store'].sort());
  });

  test.each(Object.keys(expected))(
    '%s runs twice in a row, prints what it says and ends by itself',
    async (name) => {
      for (let run = 0; run < 2; run++) {
        const { stdout, stderr } = await promisify(execFile)(
          process.execPath,
          [`${examples}${name}/main.mjs`],
          {
            env: { ...process.env, DATABASE_URL: db.url, NODE_OPTIONS: '' },
          },
        );
        expect(stdout.trim().split('\n')).toEqual(expected[name]);
        expect(stderr).toBe('');
      }
    },
  );
});
