// `migrate()` on the stand-in: what it runs, records, waits for and refuses.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { DsqlPool, MigrateOptions, MigrateResult, MigrationProgress } from '../../../src/dsql.js';
import { MigrationError, migrate, migrationStatus } from '../../../src/dsql.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { answering, type Files, Folder, patient, poolTo, recordsIn } from './scene.js';

let dsql: TestDsql;
let pool: DsqlPool;
let db: ReturnType<typeof patient>;
let number = 0;
let schema: string;
const folders: Folder[] = [];

beforeAll(async () => {
  dsql = await startTestDsql();
  pool = poolTo(dsql, 4);
  db = patient(pool);
  await db.query('CREATE SCHEMA app');
});
afterAll(async () => {
  await pool?.end();
  await dsql?.stop();
});
beforeEach(() => {
  schema = `records${number++}`;
});
afterEach(async () => {
  for (const folder of folders.splice(0)) folder.remove();
  await db.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  await db.query('DROP SCHEMA app CASCADE');
  await db.query('CREATE SCHEMA app');
  expect(dsql.troubles).toEqual([]);
});

function folderOf(files: Files): Folder {
  const folder = new Folder(files);
  folders.push(folder);
  return folder;
}

function run(folder: Folder, options: Partial<MigrateOptions> = {}): Promise<MigrateResult> {
  return migrate(pool, { directory: folder.path, schema, ...options });
}

async function failureOf(promise: Promise<unknown>): Promise<MigrationError> {
  const error = await rejectionOf(promise);
  expect(error).toBeInstanceOf(MigrationError);
  return error as MigrationError;
}

const accounts: Files = {
  'V1__account.sql': `-- The first.
SET search_path = app;
CREATE TABLE account (id int PRIMARY KEY, email varchar(100), name text);
INSERT INTO account VALUES (1, 'a@x', 'A'), (2, 'b@x', 'B');
CREATE UNIQUE INDEX ASYNC account_email ON account (email);
`,
  'V2__more.sql': `BEGIN;
INSERT INTO app.account VALUES (3, 'c@x', 'C');
UPDATE app.account SET name = 'D' WHERE id = 3;
COMMIT;
ALTER TABLE app.account ADD COLUMN age int;
`,
};

test('migrate() runs files in order, waits for jobs, and records each statement', async () => {
  const events: MigrationProgress[] = [];
  const folder = folderOf(accounts);
  const result = await run(folder, { onProgress: (event) => events.push(event) });
  expect(result).toEqual({
    server: 'dsql',
    files: ['V1__account.sql', 'V2__more.sql'],
    baseline: [],
    steps: 5,
  });
  const { rows } = await db.query('SELECT * FROM app.account ORDER BY id');
  expect(rows).toEqual([
    { id: 1, email: 'a@x', name: 'A', age: null },
    { id: 2, email: 'b@x', name: 'B', age: null },
    { id: 3, email: 'c@x', name: 'D', age: null },
  ]);
  expect(await recordsIn(db, schema)).toMatchObject([
    { file: 'V1__account.sql', steps: 3, is_baseline: false },
    { file: 'V2__more.sql', steps: 2 },
    { file: 'V1__account.sql', step: 1, kind: 'ddl', state: 'done', finished: true },
    { step: 2, kind: 'data', state: 'done' },
    { step: 3, kind: 'ddl', state: 'done' },
    { file: 'V2__more.sql', step: 1, kind: 'data' },
    { step: 2, kind: 'ddl' },
  ]);
  expect(events).toContainEqual(expect.objectContaining({ type: 'job', status: 'completed' }));
  expect(events.filter(({ type }) => type === 'step done')).toHaveLength(5);
  expect(await run(folder)).toMatchObject({ files: [], steps: 0 });
});

test('migrate() stops at a statement that fails, and goes on there once it is mended', async () => {
  const folder = folderOf({
    '1.sql':
      'CREATE TABLE app.a (id int PRIMARY KEY);\nINSERT INTO app.a VALUES (1), (1);\nCREATE TABLE app.b (id int);',
  });
  const error = await failureOf(run(folder));
  expect(error).toMatchObject({ reason: 'statement_failed', file: '1.sql', step: 2, line: 2 });
  expect(error.message).toMatch(/^1\.sql:2: 23505 duplicate key/);
  folder.write({
    '1.sql':
      'CREATE TABLE app.a (id int PRIMARY KEY);\nINSERT INTO app.a VALUES (1), (2);\nCREATE TABLE app.b (id int);',
  });
  expect(await run(folder)).toMatchObject({ files: ['1.sql'], steps: 2 });
  expect((await db.query('SELECT count(*)::int AS n FROM app.a')).rows).toEqual([{ n: 2 }]);
});

test('migrate() refuses a file that changed after it ran, and lets comments and spaces change', async () => {
  const folder = folderOf({ '1.sql': 'CREATE TABLE app.a (id int)' });
  await run(folder);
  folder.write({ '1.sql': '-- One table.\r\nCREATE TABLE   app.a\r\n(ID int);' });
  expect(await run(folder)).toMatchObject({ steps: 0 });
  folder.write({ '1.sql': 'CREATE TABLE app.a (id bigint)' });
  const error = await failureOf(run(folder));
  expect(error.reason).toBe('changed');
  expect(error.message).toMatch(
    /^1\.sql: has changed since it ran\. Undo the change, and put it into a new file/,
  );
});

test('migrate() refuses a changed statement of a file that ran in part', async () => {
  const folder = folderOf({ '1.sql': 'CREATE TABLE app.a (id int); SELECT 1/0;' });
  await failureOf(run(folder));
  folder.write({ '1.sql': 'CREATE TABLE app.a (id bigint); SELECT 1/1;' });
  expect(await failureOf(run(folder))).toMatchObject({ reason: 'changed', file: '1.sql', step: 1 });
  folder.remove();
  const other = folderOf({ '2.sql': 'SELECT 1' });
  expect((await failureOf(run(other))).message).toBe(
    '1.sql: ran in part, and is no longer in the folder. Bring it back.',
  );
});

test('migrate() runs nothing when DSQL would refuse a statement of any file', async () => {
  const folder = folderOf({
    '1.sql': 'CREATE TABLE app.a (id int);',
    '2.sql': 'CREATE TABLE app.b (id serial);\n\nTRUNCATE app.a;',
    '3.sql': 'BEGIN; CREATE TABLE app.c (a int); CREATE TABLE app.d (a int); COMMIT;',
  });
  const error = await failureOf(run(folder));
  expect(error.reason).toBe('refused');
  expect(error.message.split('\n')).toEqual([
    '3 problems, and nothing was run:',
    '  2.sql:1: 42704 type "serial" does not exist.',
    '  2.sql:3: 0A000 unsupported statement: Truncate.',
    '  3.sql:1: 0A000 multiple ddl statements not supported in a transaction. Take BEGIN and COMMIT out: each statement is run in a transaction of its own.',
    'headgate dsql lint tells what to do instead, and --fix does most of it.',
  ]);
  expect((await db.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`)).rows).toEqual([]);
});

test('migrate() without lint leaves refusing to the server', async () => {
  const folder = folderOf({ '1.sql': 'CREATE TABLE app.a (id int);\nTRUNCATE app.a;' });
  const error = await failureOf(run(folder, { lint: false }));
  expect(error).toMatchObject({ reason: 'statement_failed', step: 2 });
  expect(error.message).toMatch(/^1\.sql:2: 0A000 unsupported statement: Truncate/);
});

test('migrate() with a profile judges as the DSQL of that day', async () => {
  const folder = folderOf({ '1.sql': 'CREATE TABLE app.a (id int, b jsonb);' });
  const error = await failureOf(run(folder, { profile: '2026-01-01' }));
  expect(error.message).toContain('1.sql:1: 0A000 datatype jsonb not supported');
});

test('migrate() to a target runs no further, and a new file must not come before', async () => {
  const folder = folderOf({
    'V1__a.sql': 'CREATE TABLE app.a (id int)',
    'V2__b.sql': 'CREATE TABLE app.b (id int)',
    'V10__c.sql': 'CREATE TABLE app.c (id int)',
  });
  expect(await run(folder, { target: '2' })).toMatchObject({ files: ['V1__a.sql', 'V2__b.sql'] });
  folder.write({ 'V1.5__d.sql': 'CREATE TABLE app.d (id int)' });
  const error = await failureOf(run(folder));
  expect(error).toMatchObject({ reason: 'order', file: 'V1.5__d.sql' });
  expect(await run(folder, { outOfOrder: true })).toMatchObject({ files: ['V1.5__d.sql', 'V10__c.sql'] });
  expect((await failureOf(run(folder, { target: 'V3' }))).message).toBe(
    'V3 is none of the migrations. Name a file.',
  );
});

test('migrate() with a baseline records files without running them', async () => {
  const folder = folderOf({ '1.sql': 'TRUNCATE everything', '2.sql': 'CREATE TABLE app.a (id int)' });
  expect(await run(folder, { baseline: '1' })).toMatchObject({ baseline: ['1.sql'], files: ['2.sql'] });
  const status = await migrationStatus(pool, { directory: folder.path, schema });
  expect(status.files.map(({ file, state }) => [file, state])).toEqual([
    ['1.sql', 'baseline'],
    ['2.sql', 'done'],
  ]);
  expect(status.problems).toEqual([]);
});

test('migrate() migrationStatus() tells what would be run and what DSQL would refuse, and changes nothing', async () => {
  const folder = folderOf({ '1.sql': 'CREATE TABLE app.a (id int); SELECT 1/0; VACUUM app.a' });
  const before = await migrationStatus(pool, { directory: folder.path, schema });
  expect(before).toMatchObject({
    server: 'dsql',
    files: [
      { file: '1.sql', state: 'pending', pending: [{ step: 1, state: 'new' }, { step: 2 }, { step: 3 }] },
    ],
    problems: [{ file: '1.sql', step: 3, line: 1, code: '0A000', message: 'unsupported VACUUM statement.' }],
  });
  expect((await db.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`)).rows).toEqual([]);
  folder.write({ '1.sql': 'CREATE TABLE app.a (id int); SELECT 1/0;' });
  await failureOf(run(folder));
  const after = await migrationStatus(pool, { directory: folder.path, schema });
  expect(after.files).toMatchObject([{ state: 'partial', pending: [{ step: 2, sql: 'SELECT 1/0' }] }]);
});

test('migrate() tells the line of a syntax error', async () => {
  const folder = folderOf({ '1.sql': "SELECT ';';\n\nCREATE TABEL a;\nSELECT 1;" });
  expect((await failureOf(run(folder, { lint: false }))).message).toContain('1.sql:3: 42601 syntax error');
});

test('migrate() stops when its signal fires, and goes on at the next run', async () => {
  const folder = folderOf({ '1.sql': 'CREATE TABLE app.a (id int); CREATE TABLE app.b (id int);' });
  const stop = new AbortController();
  const onProgress = ({ type }: MigrationProgress): void => {
    if (type === 'step done') stop.abort();
  };
  expect(await failureOf(run(folder, { signal: stop.signal, onProgress }))).toMatchObject({
    reason: 'aborted',
  });
  expect(await run(folder)).toMatchObject({ steps: 1 });
});

test('migrate() refuses options that make no sense, all at once', async () => {
  const small = poolTo(dsql, 1);
  await expect(
    migrate(small, { directory: '', leaseTtl: '10ms', retryfor: 1 } as never),
  ).rejects.toMatchObject({
    code: 'HG_BAD_OPTIONS',
    problems: [{ path: 'directory' }, { path: 'leaseTtl' }, { path: 'max' }, { path: 'retryfor' }],
  });
  await small.end();
});

test('Index jobs: A unique index on duplicates fails its migration with the reason, and is built once the rows are mended', async () => {
  const folder = folderOf({
    '1.sql': `CREATE TABLE app.a (id int PRIMARY KEY, v int);
INSERT INTO app.a VALUES (1, 5), (2, 5);
CREATE UNIQUE INDEX ASYNC a_v ON app.a (v);
INSERT INTO app.a VALUES (3, 6);`,
  });
  const error = await failureOf(run(folder));
  expect(error).toMatchObject({ reason: 'job_failed', file: '1.sql', step: 3, line: 3 });
  expect(error.message).toBe(
    `1.sql:3: The job failed: could not create unique index "a_v". Mend the rows and run it again: the invalid index is dropped first.`,
  );
  const { files } = await migrationStatus(pool, { directory: folder.path, schema });
  expect(files).toMatchObject([{ state: 'partial', pending: [{ step: 3, state: 'failed' }, { step: 4 }] }]);
  expect(await failureOf(run(folder))).toMatchObject({ reason: 'job_failed' });
  await db.query('UPDATE app.a SET v = 7 WHERE id = 2');
  expect(await run(folder)).toMatchObject({ steps: 2 });
  const { rows } = await db.query(
    `SELECT indisvalid, indisunique FROM pg_index WHERE indexrelid = 'app.a_v'::regclass`,
  );
  expect(rows).toEqual([{ indisvalid: true, indisunique: true }]);
});

test('Index jobs: A constraint whose validation fails stops its migration until the rows are mended', async () => {
  const folder = folderOf({
    '1.sql': `CREATE TABLE app.a (id int PRIMARY KEY);
INSERT INTO app.a VALUES (1), (-1);
ALTER TABLE app.a ADD CONSTRAINT positive CHECK (id > 0) NOT VALID;
ALTER TABLE ASYNC app.a VALIDATE CONSTRAINT positive;`,
  });
  expect(await failureOf(run(folder))).toMatchObject({ reason: 'job_failed', step: 4 });
  await db.query('DELETE FROM app.a WHERE id < 0');
  expect(await run(folder)).toMatchObject({ steps: 1 });
});

const indexed = { '1.sql': 'CREATE TABLE app.a (id int);\nCREATE INDEX ASYNC a_id ON app.a (id);' };

test('Index jobs: A job is looked at until it is complete', async () => {
  const states = ['submitted', 'processing', 'processing'];
  const slow = answering(pool, (text) => {
    const status = text.startsWith('SELECT status, details FROM sys.jobs') ? states.shift() : undefined;
    return status === undefined ? undefined : [{ status, details: '' }];
  });
  const seen: string[] = [];
  const onProgress = (event: MigrationProgress): void => {
    if (event.type === 'job') seen.push(event.status);
  };
  await migrate(slow, { directory: folderOf(indexed).path, schema, onProgress });
  expect(seen).toEqual(['submitted', 'processing', 'processing', 'completed']);
});

test('Index jobs: A job that DSQL has forgotten is judged by the index', async () => {
  const forgetful = answering(pool, (text) => (text.includes('FROM sys.jobs') ? [] : undefined));
  await migrate(forgetful, { directory: folderOf(indexed).path, schema });
  const twins = folderOf({
    '1.sql': indexed['1.sql'],
    '2.sql': 'INSERT INTO app.a VALUES (1), (1);\nCREATE UNIQUE INDEX ASYNC ON app.a (id);',
  });
  const error = await failureOf(migrate(forgetful, { directory: twins.path, schema }));
  expect(error.message).toContain('2.sql:2: The job failed: the index is not valid, and no job builds it.');
  await db.query('DELETE FROM app.a');
  expect(await run(twins)).toMatchObject({ steps: 1 });
  const { rows } = await db.query<{ valid: boolean }>(
    `SELECT indisvalid AS valid FROM pg_index WHERE indrelid = 'app.a'::regclass`,
  );
  expect(rows).toEqual([{ valid: true }, { valid: true }]);
});

test('Files: A file without statements is recorded, and a failed statement may be taken out', async () => {
  const folder = folderOf({
    '1.sql': '-- Nothing yet.\n',
    '2.sql': 'SELECT 1; CREATE TABLE app.a (id nonsense);',
  });
  expect(await failureOf(run(folder))).toMatchObject({
    reason: 'statement_failed',
    file: '2.sql',
    step: 2,
  });
  folder.write({ '2.sql': 'SELECT 1;' });
  expect(await run(folder)).toMatchObject({ files: ['2.sql'], steps: 0 });
  expect(await recordsIn(db, schema)).toMatchObject([
    { file: '1.sql', steps: 0 },
    { file: '2.sql', steps: 1 },
    { file: '2.sql', step: 1, state: 'done' },
  ]);
});

test('Files: Settings of a file hold for its statements, also when it is resumed, and not for the next file', async () => {
  const mended = (text: string): Files => ({ '1.sql': text, '2.sql': 'SELECT count(*) FROM app.a' });
  const text = `SET search_path = app;
CREATE TABLE a (id int);
SELECT 1/0;
BEGIN;
SET LOCAL TIME ZONE 'Asia/Tokyo';
INSERT INTO a SELECT extract(hour FROM timestamptz '2026-01-01 00:00Z')::int;
COMMIT;
CREATE TABLE b (id int);`;
  const folder = folderOf(mended(text));
  expect(await failureOf(run(folder))).toMatchObject({ file: '1.sql', step: 2, line: 3 });
  folder.write(mended(text.replace('1/0', '1/1')));
  expect(await run(folder)).toMatchObject({ steps: 4 });
  const { rows } = await db.query<{ id: number }>('SELECT id FROM app.a');
  expect(rows).toEqual([{ id: 9 }]);
  expect((await db.query(`SELECT 1 FROM pg_class WHERE oid = 'app.b'::regclass`)).rows).toHaveLength(1);
  folder.write({ '3.sql': 'SELECT count(*) FROM a' });
  expect((await failureOf(run(folder))).message).toContain('42P01 relation "a" does not exist');
});
