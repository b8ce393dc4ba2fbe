// The table of differences in docs/from-pgbouncer.md: each row is shown with PgBouncer and Headgate side by side, where that is possible.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestDatabase } from '../../../support/postgres.js';
import type { Difference } from './difference.js';
import { serverDifferences } from './servers.js';
import { sessionDifferences } from './sessions.js';
import { hasPgBouncer } from './side-by-side.js';

const root = join(import.meta.dirname, '../../../..');

let db: TestDatabase;
let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
});
afterAll(() => server.stop());

const differences: readonly Difference[] = [...sessionDifferences, ...serverDifferences];

/** Rows that are not shown here, why, and the test of what Headgate does. */
const notShown: Readonly<Record<string, { readonly why: string; readonly test: string }>> = {
  '`SUSPEND`': {
    why: 'both stop reading; the sockets are handed over by -R, which has a row of its own',
    test: 'test/pooler/suspend.test.ts',
  },
};

function rowsOfTable(): string[] {
  const page = readFileSync(join(root, 'docs/from-pgbouncer.md'), 'utf8');
  const [, section = ''] = page.split('\n## What remains different\n');
  const table = /\|\n\|[-|]+\n((?:\|.*\n)+)/.exec(section)?.[1] ?? '';
  return Array.from(table.matchAll(/^\| (.*?) \|/gm), ([, first = '']) => first);
}

test('every row of the table of differences is shown by a test, or has a reason why not', () => {
  const covered = new Set([...differences.map(({ row }) => row), ...Object.keys(notShown)]);
  expect(rowsOfTable().sort()).toEqual([...covered].sort());
  for (const { test: file } of Object.values(notShown)) expect(existsSync(join(root, file))).toBe(true);
});

for (const { title, versions, isPossible = true, show } of differences)
  test.skipIf(!isPossible || (versions !== undefined && !hasPgBouncer(versions)))(title, () => show(db));
