// Real inputs: pg_dump, Rails, Drizzle, Prisma, Temporal. Converted, they run on the stand-in.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { splitScript } from '../../../src/dsql/lint/script.js';
import { convertSql, fixSql, type LintFinding, lintSql } from '../../../src/dsql-lint.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';

const read = (name: string) => readFileSync(join(import.meta.dirname, 'fixtures', `${name}.sql`), 'utf8');

let dsql: TestDsql;
let client: pg.Client;

beforeAll(async () => {
  dsql = await startTestDsql();
}, 60_000);
afterAll(() => dsql?.stop());

beforeEach(async () => {
  client = await dsql.connect();
});
afterEach(async () => {
  await client.query('RESET ALL');
  const { rows } = await client.query<{ drop: string }>(
    `SELECT format('DROP %s IF EXISTS %I.%I CASCADE', CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, nspname, relname) AS drop
     FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname IN ('public', 'billing') AND relkind IN ('r', 'v')
     UNION ALL SELECT format('DROP DOMAIN %I.%I CASCADE', nspname, typname) FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
     WHERE nspname = 'public' AND typtype = 'd'`,
  );
  for (const { drop } of rows) await client.query(drop);
  await client.query('DROP SCHEMA IF EXISTS billing CASCADE');
  await client.end();
});

/** One statement at a time, as psql and `headgate dsql migrate` do. */
async function run(text: string): Promise<void> {
  for (const { start, end } of splitScript(text)) {
    const sql = text.slice(start, end);
    await client.query(sql).catch((error: Error) => {
      throw new Error(`${error.message}: ${sql.slice(0, 300)}`);
    });
  }
}

const count = async (table: string) =>
  Number((await client.query<{ count: string }>(`SELECT count(*) FROM ${table}`)).rows[0]?.count);
const leftOut = (findings: readonly LintFinding[]) =>
  findings.filter(({ status }) => status === 'left out').map(({ rule }) => rule);
const open = (findings: readonly LintFinding[]) =>
  findings.filter(({ status, severity }) => status === 'open' && severity === 'error');

test('A dump of pg_dump runs once it is converted, with all its rows', async () => {
  const { text, findings } = await convertSql(read('pg-dump'));
  expect(open(findings)).toEqual([]);
  expect(leftOut(findings)).toEqual([
    'user-type',
    'function-language',
    'partition',
    'trigger',
    'row-level-security',
    'row-level-security',
  ]);
  await run(text);
  expect(await count('public.customers')).toBe(20);
  expect(await count('public.orders')).toBe(40);
  expect(await count('billing.invoices')).toBe(5);
  expect(await count('public.open_orders')).toBe(40);
  const { rows } = await client.query(
    `SELECT name, tags::text[] AS tags, o.note, o.token FROM public.customers c JOIN public.orders o ON o.customer_id = c.id WHERE o.id = 2`,
  );
  expect(rows).toEqual([
    {
      name: 'Name\t"3"\\ O\'Hara',
      tags: ['a', 'b c'],
      note: 'line\nbreak',
      token: 'c81e728d-9d4c-2f63-6f06-7f89cc14862c',
    },
  ]);
  const added = await client.query(
    `INSERT INTO public.orders (customer_id, token, total) VALUES (1, gen_random_uuid(), 1) RETURNING id, status`,
  );
  expect(added.rows).toEqual([{ id: '41', status: 'new' }]);
});

test.each([
  ['rails-structure', []],
  ['rails-schema', ['unsupported-function', 'unsupported-function']],
  ['drizzle', ['alter-column-type']],
  ['temporal', []],
])('The text of %s runs once it is converted', async (name, left) => {
  const { text, findings } = await convertSql(read(name));
  expect(open(findings)).toEqual([]);
  expect(leftOut(findings)).toEqual(left);
  await run(text);
  expect((await convertSql(text)).text).toBe(text);
});

test('A suppressed finding stays as it is', async () => {
  const { text, findings } = await convertSql(read('prisma'));
  expect(findings.map(({ rule }) => rule)).not.toContain('user-type');
  expect(text).toContain(`ALTER TYPE "Role" ADD VALUE 'OWNER';`);
  await run(text.slice(0, text.indexOf('-- AlterEnum')));
});

test("Drizzle's migrator runs the fixed text part by part", async () => {
  const { text } = await convertSql(read('drizzle'));
  for (const part of text.split('--> statement-breakpoint')) await client.query(part);
  expect(await count('accounts')).toBe(0);
});

test("Temporal's queries on the DSQL that its authors had are reported", async () => {
  const { findings } = await lintSql(read('temporal'), { profile: '2026-08-23' });
  const found = findings.map(({ rule, line }) => `${line} ${rule}`);
  expect(found).toContain('83 for-update-rows');
  expect(found).toContain('84 locking-clause');
  expect(found.filter((name) => name.endsWith('bytea-key'))).toHaveLength(8);
  expect(found.some((name) => name.startsWith('85 '))).toBe(false);
});

test('Fixes that are safe keep every line that they do not concern', async () => {
  const before = read('pg-dump');
  const { text } = await fixSql(before);
  const kept = new Set(text.split('\n'));
  const comments = before.split('\n').filter((line) => line.startsWith('--'));
  expect(comments.filter((line) => !kept.has(line))).toEqual([]);
  const rows = before.split('\n').filter((line) => line.includes('\t'));
  expect(rows.filter((line) => !kept.has(line))).toEqual([]);
});
