// `headgate dsql migrate`: what it prints, and what it ends with.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { runCommand } from '../../../src/cli/commands.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { withDatabase } from '../../support/postgres.js';
import { type Files, Folder } from './scene.js';

let dsql: TestDsql;
const folders: Folder[] = [];
const variables = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_REGION',
  'PGHOST',
  'CLUSTER_ENDPOINT',
  'REGION',
];
const before = variables.map((name) => [name, process.env[name]] as const);

beforeAll(async () => {
  dsql = await startTestDsql();
  for (const name of variables) delete process.env[name];
  process.env['AWS_ACCESS_KEY_ID'] = dsql.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = dsql.secretAccessKey;
});
afterAll(async () => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await dsql?.stop();
});
afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove();
});

function folderOf(files: Files): string {
  const folder = new Folder(files);
  folders.push(folder);
  return folder.path;
}

interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function headgate(args: readonly string[], showsProgress = false): Promise<Said> {
  const said = { out: '', err: '' };
  const code = await runCommand(['dsql', ...args], {
    out: (piece) => {
      said.out += piece;
    },
    err: (piece) => {
      said.err += piece;
    },
    hasColours: false,
    showsProgress,
    columns: 120,
  });
  return { code, ...said };
}

function onDsql(...args: string[]): string[] {
  const { host, port, region, caFile } = dsql;
  return [...args, '--host', host, '--port', String(port), '--region', region, '--ca', caFile];
}

function withoutTimes(text: string): string {
  return text.replaceAll(/\([\d.]+m?s/g, '(N ms');
}

test('headgate dsql migrate: A dry run prints the statements and the refusals, and ends with 1 only if there are any', async () => {
  const bad = folderOf({ 'V1__a.sql': 'CREATE TABLE a (id serial);', 'V2__b.sql': 'SELECT 1;\nSELECT 2' });
  expect(await headgate(onDsql('migrate', bad, '--dry-run'))).toEqual({
    code: 1,
    out: `-- V1__a.sql:1
CREATE TABLE a (id serial);

-- V2__b.sql:1
SELECT 1;

-- V2__b.sql:2
SELECT 2;

-- REFUSED V1__a.sql:1: 42704 type "serial" does not exist.
-- 3 statements of 2 files would be run.
`,
    err: '',
  });
  const good = folderOf({ 'V1__a.sql': 'CREATE TABLE a (id int);' });
  expect(await headgate(onDsql('migrate', good, '--dry-run', '--json'))).toMatchObject({
    code: 0,
    err: '',
  });
});

test('headgate dsql migrate: A run prints a line for each statement, and a second one has nothing to run', async () => {
  const directory = folderOf({
    'V1__a.sql': 'CREATE TABLE plain (id int PRIMARY KEY, v int);\nCREATE INDEX ASYNC plain_v ON plain (v);',
    'V2__b.sql': 'INSERT INTO plain VALUES (1, 1);',
  });
  const args = onDsql('migrate', directory, '--schema', 'plain_records');
  const status = await headgate([...args, '--status']);
  expect(status).toEqual({ code: 1, out: 'V1__a.sql  to run\nV2__b.sql  to run\n', err: '' });
  const { code, out, err } = await headgate(args);
  expect([code, err]).toEqual([0, '']);
  expect(withoutTimes(out)).toBe(`V1__a.sql
  1/2  CREATE TABLE plain (id int PRIMARY KEY, v int)  (N ms)
  2/2  CREATE INDEX ASYNC plain_v ON plain (v)  (N ms)
V2__b.sql
  1/1  INSERT INTO plain VALUES (1, 1)  (N ms)
Done: 3 statements of 2 files.
`);
  expect(await headgate(args)).toEqual({
    code: 0,
    out: 'Nothing to run: every migration has run.\n',
    err: '',
  });
  expect(await headgate([...args, '--status'])).toEqual({
    code: 0,
    out: 'V1__a.sql  done\nV2__b.sql  done\n',
    err: '',
  });
});

test('headgate dsql migrate: A run on a terminal shows what runs at present, and takes it away', async () => {
  const directory = folderOf({ '1.sql': 'CREATE TABLE shown (id int);\nCREATE INDEX ASYNC ON shown (id)' });
  const { err } = await headgate(onDsql('migrate', directory, '--schema', 'shown_records'), true);
  expect(err).toContain('\r  1/2  CREATE TABLE shown (id int)\u001B[K');
  expect(err).toMatch(/CREATE INDEX ASYNC ON shown \(id\) {2}job [a-z2-7]{26} is completed/);
  expect(err.endsWith('\r\u001B[K')).toBe(true);
});

test('headgate dsql migrate: A run with --json prints each event, and the error with its place', async () => {
  const directory = folderOf({ '1.sql': 'CREATE TABLE events (id int);\n\nSELECT 1/0;' });
  const { code, out, err } = await headgate(
    onDsql('migrate', directory, '--json', '--schema', 'event_records'),
  );
  const lines = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect([code, err]).toEqual([1, '']);
  expect(lines.map(({ type }) => type)).toEqual(['plan', 'step', 'step done', 'step', 'error']);
  expect(lines.at(-1)).toMatchObject({ reason: 'statement_failed', file: '1.sql', step: 2, line: 3 });
  const plain = await headgate(onDsql('migrate', directory, '--schema', 'event_records'));
  expect(plain).toMatchObject({
    code: 1,
    err: 'headgate: 1.sql:3: 22012 division by zero\n  SELECT 1/0\n',
  });
});

test('headgate dsql migrate: A run that finds another one at work ends with 3 when it must not wait', async () => {
  const directory = folderOf({ '1.sql': 'SELECT 1;' });
  const args = onDsql('migrate', directory, '--schema', 'busy_records');
  expect((await headgate(args)).code).toBe(0);
  await dsql.run(
    `UPDATE busy_records.migration_lock SET owner = 'x', holder = 'process 1 on elsewhere', expires_at = now() + interval '1 hour' WHERE part = 'lease'`,
  );
  expect(await headgate([...args, '--no-wait'])).toEqual({
    code: 3,
    out: '',
    err: 'headgate: Another runner is at work: process 1 on elsewhere. Run it again later.\n',
  });
});

test.each<[string[], string]>([
  [['migrate'], 'migrate needs one folder, not 0'],
  [['migrate', 'a', 'b'], 'migrate needs one folder, not 2'],
  [['migrate', 'a'], 'There is no cluster to work on: give --host, or set CLUSTER_ENDPOINT.'],
  [['migrate', 'a', '--url', 'postgres://x', '--host', 'y'], "--url and --host can't be given together"],
  [['migrate', 'a', '--wait', '1m', '--no-wait'], "--wait and --no-wait can't be given together"],
  [['migrate', 'a', '--retry-for', '10'], '--retry-for must be a duration such as 45s or 60m'],
  [['migrate', 'a', '--host', 'nowhere'], '--region is missing'],
  [
    ['migrate', 'a', '--host', '127.0.0.1', '--region', 'us-east-1', '--ca', '/nowhere'],
    "--ca: can't read /nowhere",
  ],
])('headgate dsql migrate: Called with %o it ends with 2 and says why', async (args, why) => {
  const { code, err } = await headgate(args);
  expect(err).toContain(why);
  expect(code).toBe(2);
});

test('headgate dsql migrate: A folder that is not there, and a server that can not be reached, end with 1', async () => {
  expect(await headgate(onDsql('migrate', '/nowhere'))).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^headgate: The folder \/nowhere can't be read: ENOENT/),
  });
  const directory = folderOf({ '1.sql': 'SELECT 1;' });
  expect(await headgate(['migrate', directory, '--url', 'postgres://x@127.0.0.1:1/x'])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^headgate: can't connect: .*ECONNREFUSED/),
  });
});

test('A role that may not create the schema of the records is told so, and ends with 1', async () => {
  await dsql.addRole('runner');
  const directory = folderOf({ '1.sql': 'SELECT 1;' });
  expect(await headgate(onDsql('migrate', directory, '--user', 'runner', '--schema', 'forbidden'))).toEqual({
    code: 1,
    out: '',
    err: "headgate: The records can't be read or written: 42501 permission denied for database postgres\n",
  });
});

test('headgate dsql migrate on plain PostgreSQL: The same files run on a PostgreSQL, indexes are built at once, and DDL that fails leaves no record', async () => {
  const db = await withDatabase();
  onTestFinished(() => db.drop());
  const directory = folderOf({
    '1.sql': `AWS IAM GRANT nobody TO 'arn:aws:iam::000000000000:role/nobody';
CREATE SCHEMA app;
SET search_path = app;
CREATE TABLE a (id int PRIMARY KEY, price numeric);
CREATE UNIQUE INDEX ASYNC a_price ON a (price);
INSERT INTO a VALUES (1, 1.5);`,
  });
  const args = ['migrate', directory, '--url', db.url];
  const { code, err } = await headgate(args);
  expect([code, err]).toEqual([0, '']);
  expect((await headgate(args)).out).toBe('Nothing to run: every migration has run.\n');
  const client = new pg.Client(db.url);
  await client.connect();
  const { rows } = await client.query(
    `SELECT format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = 'app.a'::regclass AND attname = 'price'`,
  );
  expect(rows).toEqual([{ type: 'numeric(18,6)' }]);
  folders.at(-1)?.write({ '2.sql': 'INSERT INTO app.a VALUES (2, 1.5);' });
  expect(await headgate(args)).toMatchObject({ code: 1, err: expect.stringContaining('2.sql:1: 23505') });
  const records = await client.query('SELECT file, step, state FROM headgate.migration_steps ORDER BY 1, 2');
  expect(records.rows.map(({ file, step, state }) => [file, step, state])).toEqual([
    ['1.sql', 1, 'done'],
    ['1.sql', 2, 'done'],
    ['1.sql', 3, 'done'],
    ['1.sql', 4, 'done'],
    ['1.sql', 5, 'done'],
  ]);
  await client.end();
});

test('headgate dsql migrate on plain PostgreSQL: Two runners at once on a PostgreSQL run each statement once', async () => {
  const db = await withDatabase();
  onTestFinished(() => db.drop());
  const directory = folderOf({
    '1.sql': 'CREATE TABLE a (id int); INSERT INTO a VALUES (1); CREATE INDEX ASYNC ON a (id);',
  });
  const args = ['migrate', directory, '--url', db.url, '--json'];
  const results = await Promise.all([headgate(args), headgate(args), headgate(args)]);
  expect(results.map(({ code, err }) => [code, err])).toEqual([
    [0, ''],
    [0, ''],
    [0, ''],
  ]);
  const done = results.flatMap(({ out }) => out.split('\n').filter((line) => line.includes('"step done"')));
  expect(done).toHaveLength(3);
});
