// A statement is accepted from the day of its feature on, and refused on the day before.
import { expect, test } from 'vitest';
import { createDialect } from '../../src/dialect/dialect.js';
import { type Feature, featureDays } from '../../src/dialect/profile.js';

const byFeature: Readonly<
  Record<Feature, readonly (readonly [sql: string, before: string, code?: string])[]>
> = {
  'numeric keys': [
    ['CREATE TABLE t (a numeric(5,2) PRIMARY KEY)', 'datatype numeric is not supported in a key'],
  ],
  'identity columns and sequences': [
    ['CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY (CACHE 1))', 'identity column is not supported'],
    ['CREATE SEQUENCE s CACHE 1', 'unsupported statement: CreateSeq'],
    ['ALTER SEQUENCE s RESTART', 'unsupported statement: AlterSeq'],
    ['DROP SEQUENCE s', 'unsupported object in DROP statement'],
    [
      'ALTER TABLE t ALTER a DROP IDENTITY',
      'unsupported ALTER TABLE ALTER COLUMN ... DROP IDENTITY statement',
    ],
  ],
  'ALTER DEFAULT PRIVILEGES': [
    ['ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO r', 'unsupported statement: AlterDefaultPrivileges'],
  ],
  'schema elements in CREATE SCHEMA': [
    ['CREATE SCHEMA s CREATE TABLE t (a int)', 'schema elements not supported for CREATE SCHEMA'],
  ],
  'ALTER ROLE RENAME': [['ALTER ROLE a RENAME TO b', 'unsupported object in RENAME statement']],
  'ALTER ROUTINE': [
    ['ALTER ROUTINE f() RENAME TO g', 'unsupported object in RENAME statement'],
    ['ALTER ROUTINE f() OWNER TO r', 'unsupported object in OWNER TO statement'],
  ],
  'json columns': [['CREATE TABLE t (a json)', 'datatype json not supported']],
  'jsonb columns': [['CREATE TABLE t (a jsonb)', 'datatype jsonb not supported']],
  'SET and DROP DEFAULT': [
    ['ALTER TABLE t ALTER a SET DEFAULT 1', 'unsupported ALTER TABLE ALTER COLUMN ... SET DEFAULT statement'],
    ['ALTER TABLE t ALTER a DROP DEFAULT', 'unsupported ALTER TABLE ALTER COLUMN ... DROP DEFAULT statement'],
  ],
  'DROP NOT NULL': [
    [
      'ALTER TABLE t ALTER a DROP NOT NULL',
      'unsupported ALTER TABLE ALTER COLUMN ... DROP NOT NULL statement',
    ],
  ],
  'DROP EXPRESSION': [
    [
      'ALTER TABLE t ALTER a DROP EXPRESSION',
      'unsupported ALTER TABLE ALTER COLUMN ... DROP EXPRESSION statement',
    ],
  ],
  'ADD GENERATED AS IDENTITY': [
    [
      'ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (CACHE 1)',
      'unsupported ALTER TABLE ALTER COLUMN ... ADD GENERATED statement',
    ],
  ],
  'DROP CONSTRAINT': [
    ['ALTER TABLE t DROP CONSTRAINT c', 'unsupported ALTER TABLE DROP CONSTRAINT statement'],
  ],
  'DROP COLUMN': [['ALTER TABLE t DROP COLUMN c', 'unsupported ALTER TABLE DROP COLUMN statement']],
  'CHECK NOT VALID': [
    [
      'ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1) NOT VALID',
      'unsupported ALTER TABLE ADD CONSTRAINT statement',
    ],
  ],
  'ALTER TABLE ASYNC': [
    [
      'ALTER TABLE ASYNC t VALIDATE CONSTRAINT c',
      'unsupported ALTER TABLE ASYNC VALIDATE CONSTRAINT statement',
    ],
  ],
  'expression indexes': [
    ['CREATE INDEX ASYNC i ON t (lower(a))', 'expressions not supported for index keys'],
  ],
  'FOR UPDATE on any rows': [
    [
      'SELECT * FROM t FOR UPDATE',
      'locking clause such as FOR UPDATE can be applied only on tables with equality predicates on the key',
    ],
    [
      'SELECT * FROM t WHERE id > 1 FOR UPDATE',
      'locking clause such as FOR UPDATE can be applied only on tables with equality predicates on the key',
    ],
    [
      'SELECT * FROM t JOIN s USING (id) WHERE t.id = 1 FOR UPDATE OF t',
      'locking clause such as FOR UPDATE can be applied on a single table',
    ],
  ],
  'FOR KEY SHARE': [
    ['SELECT * FROM t FOR KEY SHARE', 'locking clauses other than FOR UPDATE are not supported'],
  ],
  'numeric precision up to 1000': [
    ['CREATE TABLE t (a numeric(39))', 'NUMERIC precision 39 must be between 1 and 38', '22023'],
  ],
  'foreign keys': [
    ['CREATE TABLE t (a int REFERENCES p)', 'FOREIGN KEY constraint not supported'],
    ['CREATE TABLE t (a int, FOREIGN KEY (a) REFERENCES p)', 'FOREIGN KEY constraint not supported'],
    [
      'ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p NOT VALID',
      'unsupported ALTER TABLE ADD CONSTRAINT statement',
    ],
  ],
  'extended statistics': [
    ['CREATE STATISTICS s ON a, b FROM t', 'unsupported statement: CreateStats'],
    ['ALTER STATISTICS s SET STATISTICS 1', 'unsupported statement: AlterStats'],
    ['DROP STATISTICS s', 'unsupported object in DROP statement'],
  ],
  'dsql.enable_batched_nestloop': [
    [
      'SET dsql.enable_batched_nestloop = on',
      'setting configuration parameter "dsql.enable_batched_nestloop" not supported',
    ],
  ],
  'partial indexes': [['CREATE INDEX ASYNC i ON t (a) WHERE a > 1', 'WHERE not supported for CREATE INDEX']],
};

function dayBefore(day: string): string {
  return new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
}

test.each(Object.entries(featureDays))('DSQL has %s from %s on', async (feature, day) => {
  const [before, after] = [
    await createDialect({ profile: dayBefore(day) }),
    await createDialect({ profile: day }),
  ];
  for (const [sql, message, code = '0A000'] of byFeature[feature as Feature]) {
    expect(before.judge(sql).statements[0]?.refusal, sql).toMatchObject({ code, message });
    expect(after.judge(sql).statements[0]?.refusal, sql).toBeUndefined();
  }
});

test('FOR UPDATE needed an equality for each column of the primary key, which the catalog tells', async () => {
  const dialect = await createDialect({ profile: '2026-08-23' });
  const [statement] = dialect.judge(
    'SELECT * FROM s.t WHERE (a = 1 AND $1 = t.b) AND c > 2 FOR UPDATE',
  ).statements;
  expect(statement?.refusal).toBeUndefined();
  expect(statement?.checks).toHaveLength(1);
  expect(statement?.checks[0]).toContain(`'"s"."t"'`);
  expect(statement?.checks[0]).toMatch(/NOT IN \('\w', '\w'\)/);
});

test('The newest profile is the default', async () => {
  const newest = Object.values(featureDays).at(-1);
  expect((await createDialect()).profile).toBe(newest);
  expect((await createDialect({ profile: undefined })).profile).toBe(newest);
});

test('Every day from general availability on is a profile', async () => {
  for (const profile of ['2025-05-27', '2026-02-28', '2031-01-01'])
    expect((await createDialect({ profile })).profile).toBe(profile);
});

test.each(['2025-05-26', '2026-02-30', '2026-13-01', '2026-9-1', 'newest', '', '2026-09-15T00:00'])(
  'The profile %j is refused with what to write instead',
  async (profile) => {
    await expect(createDialect({ profile })).rejects.toThrow(
      `must be a day, YYYY-MM-DD, from 2025-05-27 on, but is ${JSON.stringify(profile)}`,
    );
  },
);
