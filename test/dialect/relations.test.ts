// Relations, schemas in the text, locking clauses, jobs and mappings of a statement.
import { beforeAll, expect, test } from 'vitest';
import { createDialect } from '../../src/dialect/dialect.js';
import type { Dialect, JudgedStatement } from '../../src/dialect/judgement.js';

let dialect: Dialect;
beforeAll(async () => {
  dialect = await createDialect();
});

function judgeOne(sql: string): JudgedStatement {
  const { statements } = dialect.judge(sql);
  expect(statements).toHaveLength(1);
  return statements[0] as JudgedStatement;
}

/** `schema.name`, with a star before one that is changed. */
function relations(sql: string): string[] {
  return judgeOne(sql).relations.map(
    ({ schema, name, isChanged }) =>
      `${isChanged ? '*' : ''}${schema === undefined ? '' : `${schema}.`}${name}`,
  );
}

test.each([
  ['SELECT * FROM a, s.b JOIN c ON true', ['a', 's.b', 'c']],
  ['SELECT (SELECT 1 FROM a) FROM (SELECT * FROM b) x WHERE EXISTS (TABLE c)', ['a', 'b', 'c']],
  ['INSERT INTO a SELECT * FROM b', ['*a', 'b']],
  ['UPDATE a SET x = 1 FROM b', ['*a', 'b']],
  ['DELETE FROM a USING b', ['*a', 'b']],
  ['COPY a FROM STDIN', ['*a']],
  ['COPY a TO STDOUT', ['a']],
  ['WITH x AS (SELECT 1) SELECT * FROM x', []],
  ['WITH x AS (SELECT * FROM x) SELECT * FROM x', ['x']],
  ['WITH RECURSIVE x AS (SELECT 1 UNION SELECT * FROM x) SELECT * FROM x', []],
  ['WITH x AS (SELECT * FROM y), y AS (SELECT * FROM x) SELECT * FROM x, y', ['y']],
  ['WITH x AS (SELECT 1) SELECT * FROM s.x', ['s.x']],
  ['SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) q, x', ['x']],
  ['WITH x AS (INSERT INTO a VALUES (1) RETURNING *) SELECT * FROM x', ['*a']],
  ['WITH x AS (SELECT 1) INSERT INTO x SELECT * FROM x', ['*x']],
  ['SELECT * FROM a FOR UPDATE', ['*a']],
  ['SELECT * FROM a, b y FOR UPDATE OF y', ['a', '*b']],
  ['SELECT * FROM a, (SELECT * FROM b) y FOR KEY SHARE', ['*a', '*b']],
  ['SELECT * FROM a WHERE x IN (SELECT x FROM b) FOR UPDATE', ['*a', 'b']],
  ['WITH x AS (SELECT * FROM a) SELECT * FROM x FOR UPDATE', ['a']],
  ['SELECT 1 FROM a UNION SELECT 2 FROM b', ['a', 'b']],
  ['CREATE TABLE s.t (a int REFERENCES p)', ['s.t', 'p']],
  ['CREATE VIEW v AS SELECT * FROM s.t', ['v', 's.t']],
  ['DROP TABLE a, s.b', ['a', 's.b']],
  ["COMMENT ON TABLE s.b IS 'x'", ['s.b']],
  ['GRANT SELECT ON s.t TO r', ['s.t']],
  ['DROP FUNCTION f()', []],
])('Relations: The relations of %s', (sql, expected) => {
  expect(relations(sql)).toEqual(expected);
});

test.each([
  'SELECT «sys».jobs.job_id, «sys».jobs.* FROM «sys».jobs WHERE «sys».jobs.status = 1',
  'SELECT /* é😀 */ «"sys"».jobs.x FROM «"sys"».jobs',
  'INSERT INTO «s».t SELECT * FROM «"é"».u; ',
  'SELECT postgres.«s».t.a FROM postgres . «s» . t',
  'SELECT t.a, a.b FROM t',
  'CREATE TABLE «s».t (a numeric REFERENCES «s».p)',
  'CREATE INDEX ASYNC i ON «s».t (a)',
  'UPDATE «s».t SET a = (SELECT «s».t.a FROM «U&"\\0073"».t)',
])('Schema mentions: The schemas of %s stand where they are marked', (marked) => {
  const sql = marked.replaceAll(/[«»]/g, '');
  const statement = judgeOne(sql);
  let shown = statement.sql;
  for (const { start, end } of statement.schemaMentions.toReversed())
    shown = `${shown.slice(0, start)}«${shown.slice(start, end)}»${shown.slice(end)}`;
  const expected = marked
    .replaceAll('ASYNC', '     ')
    .replaceAll('numeric', 'numeric(18,6)')
    .replace(/; $/, '');
  expect(shown).toBe(expected);
});

test('Schema mentions: Mentions of a later statement count from its own start', () => {
  const { statements } = dialect.judge('SELECT \'é😀\'; SELECT * FROM "é".t, sys.jobs');
  expect(
    statements[1]?.schemaMentions.map(({ schema, relation, start, end }) => [
      schema,
      relation,
      statements[1]?.sql.slice(start, end),
    ]),
  ).toEqual([
    ['é', 't', '"é"'],
    ['sys', 'jobs', 'sys'],
  ]);
});

test.each([
  ['SELECT 1', 'none'],
  ['SELECT * FROM t FOR UPDATE', 'update'],
  ['SELECT * FROM t FOR KEY SHARE', 'key_share'],
  ['SELECT * FROM (SELECT * FROM t FOR UPDATE) x', 'update'],
  ['SELECT * FROM t, s FOR KEY SHARE OF t FOR UPDATE OF s', 'update'],
  ['WITH x AS (SELECT * FROM t FOR KEY SHARE) SELECT * FROM x', 'key_share'],
])('The locking of %s is %s', (sql, locking) => {
  expect(judgeOne(sql).locking).toBe(locking);
});

test.each([
  ['CREATE INDEX ASYNC i ON s.t (a)', ['INDEX_BUILD', 'CREATE INDEX', 's', 't', 'i']],
  ['CREATE INDEX ASYNC async ON async (a)', ['INDEX_BUILD', 'CREATE INDEX', undefined, 'async', 'async']],
  ['create unique index async on t (a)', ['INDEX_BUILD', 'CREATE INDEX', undefined, 't', undefined]],
  ['CREATE INDEX/**/ASYNC"I"ON t(a)', ['INDEX_BUILD', 'CREATE INDEX', undefined, 't', 'I']],
  ['ALTER TABLE ASYNC t VALIDATE CONSTRAINT c', ['VALIDATE_CONSTRAINT', 'ALTER TABLE', undefined, 't', 'c']],
  [
    'ALTER TABLE ASYNC validate VALIDATE CONSTRAINT c',
    ['VALIDATE_CONSTRAINT', 'ALTER TABLE', undefined, 'validate', 'c'],
  ],
  [
    'ALTER TABLE ASYNC async VALIDATE CONSTRAINT c',
    ['VALIDATE_CONSTRAINT', 'ALTER TABLE', undefined, 'async', 'c'],
  ],
])('Jobs %s begins a job', (sql, [type, tag, schema, table, object]) => {
  expect(judgeOne(sql)).toMatchObject({ refusal: undefined, job: { type, tag, schema, table, object } });
});

test.each([
  'ALTER TABLE async ADD COLUMN a int',
  'ALTER TABLE async.t ADD COLUMN a int',
  'SELECT async FROM async',
])('Jobs ASYNC is a name in %s', (sql) => {
  expect(judgeOne(sql)).toMatchObject({ refusal: undefined, job: undefined, sql });
});

test('Jobs: A table that is named async cannot be validated without ASYNC', () => {
  expect(judgeOne('ALTER TABLE async VALIDATE CONSTRAINT c').refusal?.message).toBe(
    'unsupported ALTER TABLE VALIDATE CONSTRAINT statement',
  );
});

test.each([
  [
    `AWS IAM GRANT app TO 'arn:aws:iam::1:role/x'`,
    { isGrant: true, role: 'app', arn: 'arn:aws:iam::1:role/x' },
  ],
  [`aws iam revoke APP from 'a''b'`, { isGrant: false, role: 'app', arn: "a'b" }],
  [`AWS IAM GRANT "Ä" TO 'é'`, { isGrant: true, role: 'Ä', arn: 'é' }],
])('AWS IAM %s is a mapping', (sql, iam) => {
  expect(judgeOne(sql)).toMatchObject({ iam, kind: 'ddl', refusal: undefined, source: sql });
});

test('AWS IAM: Mappings keep their place between other statements', () => {
  const { statements } = dialect.judge(`SELECT 'é'; AWS IAM GRANT "é" TO 'é'; SELECT 'aws' FROM s.t`);
  expect(statements.map(({ source }) => source)).toEqual([
    "SELECT 'é'",
    `AWS IAM GRANT "é" TO 'é'`,
    "SELECT 'aws' FROM s.t",
  ]);
  expect(statements.map(({ iam }) => iam?.role)).toEqual([undefined, 'é', undefined]);
  expect(statements[2]?.schemaMentions).toEqual([{ schema: 's', relation: 't', start: 18, end: 19 }]);
});

test.each([
  ['CREATE INDEX ASYNC i ON t (a, lower(b))', 3],
  ['CREATE INDEX ASYNC i ON t (lower(b))', 1],
  ['ALTER TABLE t DROP COLUMN a, DROP COLUMN b', 2],
  ['ALTER TABLE t ADD CONSTRAINT c UNIQUE USING INDEX i', 1],
  ['ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (CACHE 1)', 1],
  ['SELECT 1', 0],
])('Catalog checks %s needs %i checks', (sql, count) => {
  expect(judgeOne(sql).checks).toHaveLength(count);
});
