/** Rows of all kinds in conflicts: what is committed from copies is what the client wrote, and what it conflicts with is found. */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { recordValues } from '../../../src/dsql-local/conflicts/changes.js';
import { type Client, conflict, World } from '../conflicts/world.js';

let world: World;
let a: Client;
let b: Client;

beforeAll(async () => {
  world = await World.start();
  a = await world.connect();
  b = await world.connect();
});

beforeEach(async () => {
  for (const client of [a, b]) {
    await client.run('ROLLBACK');
    await client.run('RESET ALL');
    await client.refresh();
  }
});

afterAll(async () => {
  await world?.stop();
});

/** Runs DDL and forgets OC001. */
async function define(...statements: readonly string[]): Promise<void> {
  for (const sql of statements) await a.must(sql);
  await b.refresh();
}

/** `b` meets a lock of `a`, goes on with copies, and commits after `a` has given up. */
async function commitFromCopies(
  lock: string,
  ...statements: readonly string[]
): Promise<(readonly Record<string, unknown>[])[]> {
  await a.must('BEGIN');
  await a.must(lock);
  await b.must('BEGIN');
  const answers = [];
  for (const sql of statements) answers.push(await b.must(sql));
  await a.must('ROLLBACK');
  expect(await b.run('COMMIT')).toMatchObject({ ok: true });
  expect(world.troubles).toEqual([]);
  return answers;
}

/** Both change a row; the second to commit loses. */
async function losesTo(first: string, second: string): Promise<void> {
  for (const client of [a, b]) await client.must('BEGIN');
  await b.must('SELECT 1');
  await a.must(first);
  await b.must(second);
  await a.must('COMMIT');
  expect(await b.run('COMMIT')).toMatchObject(conflict);
}

test('the text of a record is read as PostgreSQL has written it', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('"', '\\', ',', '(', ')', ' ', '\n', 'a', 'é', '😀') }),
    fc.constant(''),
  );
  const value = fc.option(
    text.map((one) => one.replaceAll('\0', '')),
    { nil: null },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 5 }), async (values) => {
      const places = values.map((_, n) => `$${n + 1}::text`).join(', ');
      const [row] = await a.must(`SELECT ROW(${places})::text AS record`, values);
      const wellFormed = values.map((one) => (one === null ? null : Buffer.from(one).toString()));
      expect(recordValues(String(row?.['record']))).toEqual(wellFormed);
    }),
    { numRuns: 150 },
  );
});

test('values in copies are committed as they were written', async () => {
  await define(
    'CREATE TABLE every (id int PRIMARY KEY, t text, d date, ts timestamp, tz timestamptz, tt time, i interval, n numeric(20,5), f float8, r real, u uuid, y bytea, j json, jb jsonb, o boolean, c char(5))',
  );
  await a.must('INSERT INTO every (id) VALUES (1)');
  const text = `a"b\\c'd,(e)\n\t\r é 😀 NULL ""`;
  const values = [
    text,
    '2026-02-03',
    '2026-02-03 04:05:06.789',
    '2026-02-03 04:05:06+09',
    '23:59',
    '1 mon -3 days 04:05',
    '-12345.67890',
    '0.1',
    '1e-10',
    '5f1a1fa0-4a5c-4a3f-9d5a-1d3a8b7c9e0f',
    Buffer.from([0, 1, 255, 92, 34]),
    '{"a": [1, "\\"x\\""]}',
    '{"b":null}',
    true,
    'ab',
  ];
  await a.must('BEGIN');
  await a.must('UPDATE every SET t = NULL WHERE id = 1');
  await b.must(`SET datestyle = 'SQL, DMY'`);
  await b.must(`SET timezone = 'Asia/Tokyo'`);
  await b.must('BEGIN');
  const set =
    't = $1, d = $2, ts = $3, tz = $4, tt = $5, i = $6, n = $7, f = $8, r = $9, u = $10, y = $11, j = $12, jb = $13, o = $14, c = $15';
  const written = await b.must(`UPDATE every SET ${set} WHERE id = 1 RETURNING *`, values);
  await b.must(`SET intervalstyle = 'sql_standard'`);
  await b.must(`SET datestyle = 'ISO, MDY'`);
  await b.must(`SET datestyle = 'SQL, DMY'`);
  await b.must(`SET intervalstyle = 'postgres'`);
  await a.must('ROLLBACK');
  expect(await b.run('COMMIT')).toMatchObject({ ok: true });
  expect(await b.must('SELECT * FROM every')).toEqual(written);
  expect(written[0]?.['t']).toBe(text);
});

test('values in copies may be long', async () => {
  await define('CREATE TABLE long (id int PRIMARY KEY, v text)');
  await a.must(`INSERT INTO long VALUES (1, '')`);
  await commitFromCopies('UPDATE long SET v = v', `UPDATE long SET v = repeat('"\\x', 300000)`);
  expect(
    await a.must('SELECT length(v), md5(v) = md5(repeat($1, 300000)) AS same FROM long', ['"\\x']),
  ).toEqual([{ length: 900_000, same: true }]);
});

test('values in copies of identity columns, sequences and generated columns are those of RETURNING', async () => {
  await define(
    'CREATE SEQUENCE numbers CACHE 1',
    "CREATE TABLE made (id bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY, n bigint DEFAULT nextval('numbers'), v int, twice int GENERATED ALWAYS AS (v * 2) STORED)",
  );
  await a.must('INSERT INTO made (v) VALUES (1)');
  const [, first, second] = await commitFromCopies(
    'UPDATE made SET v = 5',
    'UPDATE made SET v = 7 RETURNING id, n, twice',
    'INSERT INTO made (v) VALUES (2) RETURNING id, n, twice',
    'INSERT INTO made (v) SELECT v FROM made RETURNING id, n, twice',
  );
  const rows = await a.must('SELECT id, n, twice FROM made ORDER BY id');
  expect(rows.slice(1)).toEqual([...(first ?? []), ...(second ?? [])]);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(4);
  await a.must('INSERT INTO made (v) VALUES (3)');
});

test('values in copies work in tables without a primary key', async () => {
  await define('CREATE TABLE keyless (v int, t text)');
  await a.must(`INSERT INTO keyless VALUES (1, 'a'), (1, 'a'), (2, NULL)`);
  await commitFromCopies(
    'UPDATE keyless SET v = 9 WHERE v = 2',
    `UPDATE keyless SET t = 'b' WHERE v = 2`,
    'DELETE FROM keyless WHERE v = 1',
    `INSERT INTO keyless VALUES (3, 'c')`,
  );
  expect(await a.must('SELECT * FROM keyless ORDER BY v')).toEqual([
    { v: 2, t: 'b' },
    { v: 3, t: 'c' },
  ]);
  await losesTo('UPDATE keyless SET v = 4 WHERE v = 3', 'DELETE FROM keyless WHERE v = 3');
});

test('names in conflicts may be quoted, of mixed case, and odd', async () => {
  await define('CREATE TABLE "Odd ""Table\'s" ("Id" int PRIMARY KEY, "select" int, "a.b" text)');
  const table = '"Odd ""Table\'s"';
  await a.must(`INSERT INTO ${table} VALUES (1, 1, 'x')`);
  await commitFromCopies(
    `UPDATE ${table} SET "select" = 0`,
    `UPDATE public.${table} SET "select" = "select" + 1, "a.b" = 'y' WHERE "Id" = 1`,
    `UPDATE ${table} SET "select" = "select" + 1`,
  );
  expect(await a.must(`SELECT * FROM ${table}`)).toEqual([{ Id: 1, select: 3, 'a.b': 'y' }]);
  await losesTo(`UPDATE ${table} SET "select" = 5`, `UPDATE ${table} SET "select" = 6`);
});

test('names in conflicts may be of other schemas, found by search_path', async () => {
  await define(
    'CREATE SCHEMA other',
    'CREATE TABLE other.things (id int PRIMARY KEY, v int)',
    'CREATE TABLE other.parts (id int PRIMARY KEY, thing int REFERENCES other.things)',
  );
  await a.must('INSERT INTO other.things VALUES (1, 0)');
  await b.must('SET search_path = other, public');
  await commitFromCopies(
    'UPDATE other.things SET v = 9',
    'UPDATE things SET v = v + 1',
    'UPDATE other.things SET v = v + 1',
    'INSERT INTO parts VALUES (1, 1)',
    'SELECT 1',
  );
  expect(await a.must('SELECT v FROM other.things')).toEqual([{ v: 2 }]);
  await losesTo('UPDATE other.things SET v = 5', 'UPDATE things SET v = 6');
});

test('names in conflicts may be views: reads and writes go to the copies', async () => {
  await define(
    'CREATE TABLE base (id int PRIMARY KEY, v int)',
    'CREATE VIEW seen AS SELECT id, v FROM base WHERE v < 100',
    'CREATE VIEW twice AS SELECT id, v * 2 AS v FROM seen',
  );
  await a.must('INSERT INTO base VALUES (1, 1)');
  const answers = await commitFromCopies(
    'UPDATE base SET v = 50',
    'UPDATE base SET v = 2',
    'SELECT v FROM twice',
    'UPDATE seen SET v = v + 1',
    'SELECT v FROM public.twice',
  );
  expect(answers[1]).toEqual([{ v: 4 }]);
  expect(answers[3]).toEqual([{ v: 6 }]);
  await commitFromCopies('UPDATE base SET v = 50', 'UPDATE seen SET v = 7');
  expect(await a.must('SELECT v FROM base')).toEqual([{ v: 7 }]);
});

test('names in conflicts are judged by the rights of the role, also on copies', async () => {
  await define(
    'CREATE ROLE writer',
    'GRANT writer TO admin',
    'CREATE TABLE secret (id int PRIMARY KEY, v int, w int)',
    'GRANT UPDATE (v) ON secret TO writer',
  );
  await a.must('INSERT INTO secret VALUES (1, 1, 1)');
  await commitFromCopies('UPDATE secret SET v = 50', 'SET LOCAL role = writer', 'UPDATE secret SET v = 7');
  expect(await a.must('SELECT v FROM secret')).toEqual([{ v: 7 }]);
  await a.must('BEGIN');
  await a.must('UPDATE secret SET v = 50');
  for (const sql of ['SELECT * FROM secret', 'UPDATE secret SET w = 1', 'DELETE FROM secret']) {
    await b.must('BEGIN');
    await b.must('SET LOCAL role = writer');
    await b.must('UPDATE secret SET v = 8');
    expect(await b.run(sql)).toMatchObject({ code: '42501' });
    await b.must('ROLLBACK');
  }
});

test('settings of a session do not hide conflicts on keys', async () => {
  await define('CREATE TABLE timed (at timestamptz PRIMARY KEY, d date UNIQUE, v int)');
  await a.must(`INSERT INTO timed VALUES ('2026-02-03 00:00Z', '2026-02-03', 0)`);
  await b.must(`SET timezone = 'Asia/Tokyo'`);
  await b.must(`SET datestyle = 'German'`);
  await losesTo('UPDATE timed SET v = 1', 'UPDATE timed SET v = 2');
  await losesTo(
    `INSERT INTO timed VALUES ('2026-05-01 00:00Z', NULL, 0)`,
    `INSERT INTO timed VALUES ('2026-05-01 09:00+09', NULL, 0)`,
  );
});

test('settings of a session keep lock_timeout after RESET ALL', async () => {
  await define('CREATE TABLE waited (id int PRIMARY KEY, v int)');
  await a.must('INSERT INTO waited VALUES (1, 0)');
  await b.must('RESET ALL');
  await losesTo('UPDATE waited SET v = 1', 'UPDATE waited SET v = 2');
});
