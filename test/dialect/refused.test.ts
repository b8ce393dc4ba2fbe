// Every refusal of the newest DSQL, with its SQLSTATE and text.
import { beforeAll, describe, expect, test } from 'vitest';
import { createDialect } from '../../src/dialect/dialect.js';
import type { Dialect } from '../../src/dialect/judgement.js';
import { refusals } from './refusals.js';

let dialect: Dialect;
beforeAll(async () => {
  dialect = await createDialect();
});

describe.each(Object.entries(refusals))('%s', (_topic, refused) => {
  test.each(refused)('The dialect refuses %s', (sql, code, message) => {
    const { statements, isMalformed } = dialect.judge(sql);
    expect(isMalformed).toBe(false);
    expect(statements).toHaveLength(1);
    expect(statements[0]?.refusal).toMatchObject({ code, message });
    expect(statements[0]?.source).toBe(sql);
    expect(statements[0]?.checks).toEqual([]);
  });
});

test('A refused type has the position of its name in characters', () => {
  const [statement] = dialect.judge('CREATE TABLE "😀é" (id serial)').statements;
  expect(statement?.refusal?.position).toBe('CREATE TABLE "😀é" (id '.length);
});

test.each([
  'SELEC 1',
  'CREATE INDEX ASYNC s.i ON t (a)',
  'SELECT a FROM t GROUP BY ALL',
  'AWS IAM GRANT r',
  "AWS IAM GRANT r FROM 'arn:aws:iam::1:role/x'",
  "SELECT 'open",
])('PostgreSQL answers for the malformed text %s', (sql) => {
  expect(dialect.judge(sql)).toEqual({ statements: [], isMalformed: true });
});

test('Each statement of a text is judged on its own', () => {
  const { statements } = dialect.judge(' SELECT 1; TRUNCATE t;; /* ; */ SELECT 2 ;');
  expect(statements.map(({ source }) => source)).toEqual([' SELECT 1', 'TRUNCATE t', 'SELECT 2 ']);
  expect(statements.map(({ refusal }) => refusal?.message)).toEqual([
    undefined,
    'unsupported statement: Truncate',
    undefined,
  ]);
});

test('A statement that a trusted one holds is refused with it', () => {
  const [statement] = dialect.judge('WITH x AS (SELECT pg_backend_pid()) SELECT * FROM x').statements;
  expect(statement?.refusal?.message).toBe('function pg_backend_pid not supported');
});

test('A function of the client with the name of a refused one is accepted', () => {
  expect(dialect.judge('SELECT app.set_config(1)').statements[0]?.refusal).toBeUndefined();
});
