/** The server's word on what is called shareable: it leaves neither a transaction nor a changed session behind. */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { statementKind } from '../../src/sql/statement-kind.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

let db: TestDatabase;
let client: pg.Client;
let status = '';

beforeAll(async () => {
  db = await withDatabase();
  client = await connect();
  await client.query(`create table t (id serial primary key, a int, b text);
    create table s (id int primary key, a int);
    create sequence counter;
    create function f() returns int language sql as 'select 1';
    insert into t (a, b) values (1, 'x'); insert into s values (1, 1)`);
  await client.end();
});
afterAll(() => db.drop());
beforeEach(async () => {
  client = await connect();
});
afterEach(() => client.end());

async function connect(): Promise<pg.Client> {
  const fresh = new pg.Client({ connectionString: db.url });
  fresh.on('error', () => {});
  await fresh.connect();
  const connection = (fresh as unknown as { connection: NodeJS.EventEmitter }).connection;
  connection.on('readyForQuery', (message: { status: string }) => {
    status = message.status;
  });
  return fresh;
}

/** All that belongs to the session and that another query on it could meet. */
async function session(): Promise<string> {
  const { rows } = await client.query(`select
    (select json_agg(json_build_array(name, setting) order by name) from pg_settings where source = 'session') as settings,
    current_setting('hg.mark', true) as mark, current_setting('role') as role,
    (select json_agg(l.objid) from pg_locks l where l.pid = pg_backend_pid() and l.locktype = 'advisory') as locks,
    (select json_agg(name) from pg_prepared_statements) as prepared,
    (select json_agg(name) from pg_cursors where name <> '') as cursors,
    (select json_agg(relname) from pg_class where relnamespace = pg_my_temp_schema()) as temporary,
    (select json_agg(c) from pg_listening_channels() c) as channels`);
  return JSON.stringify(rows[0]);
}

function isAccepted(text: string): Promise<boolean> {
  return client.query(text).then(
    () => true,
    () => false,
  );
}

/** Runs the text as it is, several statements or not; what it left behind and whether the server accepted it. */
async function run(text: string): Promise<{ accepted: boolean; status: string; session: string }> {
  const accepted = await isAccepted(text);
  const left = status;
  if (left !== 'I') await client.query('rollback');
  return { accepted, status: left, session: await session() };
}

test('on a real server what is called shareable leaves the session as it was', async () => {
  const corpus = [
    'select 1',
    'select * from t where a = 1 for update',
    "insert into t (a, b) values (2, 'it''s; begin') returning id",
    "insert into t (a) values (3) on conflict (id) do update set b = '; begin'",
    'update t set a = a + 1',
    'delete from t where a = 100',
    'merge into t using s on t.id = s.id when matched then update set a = 5 when not matched then do nothing',
    'with x as (insert into t (a) values (9) returning id), y as (update s set a = 2) select * from x',
    'values (1), (2)',
    'table s',
    'show all',
    'show transaction isolation level',
    'explain (analyze, format json) insert into t (a) values (4)',
    'explain analyze verbose (select 1)',
    'select pg_advisory_xact_lock(1), pg_try_advisory_xact_lock_shared(2)',
    "select pg_notify('channel', 'text')",
    "select nextval('counter'), setval('counter', 10)",
    'select f(), random(), clock_timestamp(), txid_current(), pg_export_snapshot()',
    "select lo_open(lo_from_bytea(0, 'x'), 131072)",
    "select $a$; begin$a$, '\\d+', E'\\\\', U&'\\0061' -- ; begin",
    '/* /* ; begin */ */ ((select 1)); -- ; begin',
    'select 1/0',
    'select nothing from nowhere',
    'select 1 as "; begin", begin from (values (1)) as x (begin)',
  ];
  const before = await session();
  const refused: string[] = [];
  for (const text of corpus) {
    expect(statementKind(text), text).toBe('shareable');
    const after = await run(text);
    expect({ text, status: after.status, session: after.session }).toEqual({
      text,
      status: 'I',
      session: before,
    });
    if (!after.accepted) refused.push(text);
  }
  expect(refused).toEqual(['select 1/0', 'select nothing from nowhere']);
});

test('on a real server what would leave something behind is not called shareable', async () => {
  const corpus = [
    'begin',
    'start transaction',
    'select 1; begin',
    "select ';'; begin",
    "select set_config('hg.mark', 'x', false)",
    `select pg_catalog."set_config"('hg.mark', 'x', false)`,
    `select U&"set\\005Fconfig"('hg.mark', 'x', false)`,
    "select query_to_xml('select set_config(''hg.mark'', ''x'', false)', true, true, '')",
    "update pg_settings set setting = 'off' where name = 'enable_seqscan'",
    'select pg_advisory_lock(7)',
    'select pg_try_advisory_lock_shared(7)',
    'select 1 as a into temp left_behind',
    'select 1 as insert into temp left_behind',
    'explain (analyze) create temp table left_behind as select 1',
    'create table pg_temp.left_behind (a int)',
    'prepare left_behind as select 1',
    'declare left_behind cursor with hold for select 1',
    'listen left_behind',
    'set work_mem = 1234',
  ];
  for (const text of corpus) {
    await client.end();
    client = await connect();
    const before = await session();
    const after = await run(text);
    const leaves = after.status !== 'I' || after.session !== before;
    expect({ text, accepted: after.accepted, leaves }).toEqual({ text, accepted: true, leaves: true });
    expect(statementKind(text), text).not.toBe('shareable');
  }
});

// Every text of up to four pieces, a second statement and two pieces more; strings read in both of the ways there are.
test.each([
  ['backslashes that escape', 'off', ["'", '\\', '--', 'E']],
  ['backslashes that do not', 'on', ["'", '\\', '--', 'E']],
  ['dollar quotes', 'on', ['$a$', "'", '$$', '--']],
  ['comments', 'on', ['/*', '*/', '--', '\n']],
  ['quoted names', 'on', ['"', "'", ' x', '--']],
])('on a real server no statement is smuggled in with %s', async (_pieces, conforming, pieces) => {
  await client.query(`set standard_conforming_strings = ${conforming}; set escape_string_warning = off`);
  const smuggled: string[] = [];
  let accepted = 0;
  for (const before of rowsOf(pieces, 4)) {
    for (const after of rowsOf(pieces, 2)) {
      const text = `select ${before};begin${after}`;
      if (statementKind(text) !== 'shareable') continue;
      if (await isAccepted(text)) accepted++;
      if (status !== 'I') smuggled.push(text);
    }
  }
  expect(smuggled).toEqual([]);
  expect(accepted).toBeGreaterThan(100);
});

/** Every row of up to so many pieces. */
function rowsOf(pieces: readonly string[], most: number): string[] {
  const rows = [''];
  let longest = rows;
  for (let length = 1; length <= most; length++) {
    longest = longest.flatMap((row) => pieces.map((piece) => row + piece));
    rows.push(...longest);
  }
  return rows;
}
