// After a transaction that may have left something in its session, the server is asked: the client is pinned for as long as there is
// something, and the next client has nothing of it.
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession, typesOf } from '../../wire/server/raw-session.js';
import { ScriptedServer } from './scripted-server.js';

let db: TestDatabase;
let role: string;
beforeAll(async () => {
  db = await withDatabase();
  role = `${db.database}_limited`;
  await directly(`create role ${role}`);
});
afterAll(async () => {
  await directly(`drop role ${role}`);
  await db.drop();
});

async function directly(text: string): Promise<pg.QueryResult> {
  const client = new pg.Client(db.url);
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

const ofConsole = { database: 'headgate', user: 'boss' };

/** One server connection, so that the next client has the one that the last had. */
function lone(pooling: Readonly<Record<string, unknown>> = {}, size = 1): Promise<TestPooler> {
  return startTestPooler(db, { pooling: { poolSize: size, ...pooling }, admin: { adminUsers: ['boss'] } });
}

async function pinsOf(pooler: TestPooler): Promise<string[]> {
  const boss = await pooler.connect(ofConsole);
  const { rows } = await boss.query('show pins');
  await boss.end();
  return rows.map((row) => row.reason);
}

async function checksOf(pooler: TestPooler): Promise<[checks: number, pins: number]> {
  const boss = await pooler.connect(ofConsole);
  const { rows } = await boss.query('show stats');
  await boss.end();
  const row = rows.find(({ database }) => database === db.database);
  return [Number(row.total_session_check_count), Number(row.total_session_pin_count)];
}

test.each<[string, pg.ClientConfig, string[]]>([
  ['by the startup packet', { options: '-c search_path=pg_temp' }, ['create table accounts (id int)']],
  [
    'by SET LOCAL',
    {},
    ["begin; set local search_path = 'pg_temp'", 'create table accounts (id int)', 'commit'],
  ],
  [
    'by set_config() for the transaction',
    {},
    [
      'begin',
      "select set_config('search_path', 'pg_temp', true)",
      'create table accounts (id int)',
      'commit',
    ],
  ],
  ['and SELECT INTO', { options: '-c search_path=pg_temp' }, ['select 1 as id into accounts']],
  ['and CREATE TABLE AS', { options: '-c search_path=pg_temp' }, ['create table accounts as select 1 as id']],
])(
  'A table that a search path makes temporary is seen by its own client alone %s',
  async (_by, options, texts) => {
    const pooler = await lone({}, 2);
    await directly('drop table if exists accounts; create table accounts (id int)');
    const first = await pooler.connect(options);
    for (const text of texts) await first.query(text);
    await expect.poll(() => pinsOf(pooler)).toEqual(['temporary_table']);
    const second = await pooler.connect();
    await second.query('insert into accounts values (42)');
    expect((await directly('select id from accounts')).rows).toEqual([{ id: 42 }]);
    const { rows } = await first.query(
      "select relpersistence from pg_class where oid = 'pg_temp.accounts'::regclass",
    );
    expect(rows).toEqual([{ relpersistence: 't' }]);
  },
);

test.each([
  ['a table that is dropped again', 'create temp table gone (a int); drop table gone'],
  ['a lock that is given back', 'select pg_advisory_lock(1); select pg_advisory_unlock(1)'],
  ['a channel that is left again', 'listen a; unlisten a'],
  ['a statement that is deallocated', 'prepare p as select 1; deallocate p'],
  ['an ordinary table', 'create table if not exists ordinary (a int)'],
  ['a block that does nothing', 'do $$ begin null; end $$'],
])(
  'A client is pinned by what is there, and not by what its text says %s lets it go',
  async (_what, text) => {
    const pooler = await lone();
    const [first, second] = [await pooler.connect(), await pooler.connect()];
    await first.query(text);
    await second.query('select 1');
    expect(await pinsOf(pooler)).toEqual([]);
  },
);

test.each([
  ['temporary_table', 'create temp table mine (a int)', 'drop table mine'],
  ['temporary_table', "do E'begin create temp table \\x6dine (a int); end'", 'discard temp'],
  ['advisory_lock', 'select pg_try_advisory_lock(7)', 'select pg_advisory_unlock_all()'],
  ['advisory_lock', 'select U&"pg\\005fadvisory\\005flock"(8)', 'select pg_advisory_unlock(8)'],
  ['advisory_lock', "select query_to_xml('select pg_advisory_lock(9)', true, true, '')", 'discard all'],
  ['listen', 'listen news', 'unlisten news'],
  ['cursor_with_hold', 'declare /* -- */ c cursor with /* x */ hold for select 1', 'close c; discard plans'],
  ['prepare_in_sql', 'prepare p as select 1', 'deallocate p'],
])(
  'A client is pinned by what is there, and not by what its text says %s, until it is gone',
  async (reason, text, end) => {
    const pooler = await lone();
    const [first, second] = [await pooler.connect(), await pooler.connect()];
    await first.query(text);
    await expect.poll(() => pinsOf(pooler)).toEqual([reason]);
    const next = second.query('select 1 as one');
    await first.query(end);
    expect((await next).rows).toEqual([{ one: 1 }]);
    expect(await pinsOf(pooler)).toEqual([]);
  },
);

const byBlock = `do $$ begin execute 'se' || 't work_mem = ''7MB'''; end $$`;

test('A setting that is changed unseen follows its client from server to server, and is not there for the next', async () => {
  const pooler = await lone({}, 2);
  const [first, second] = [await pooler.connect(), await pooler.connect()];
  await first.query(byBlock);
  await second.query('begin; select 1');
  expect((await first.query('show work_mem')).rows).toEqual([{ work_mem: '7MB' }]);
  await second.query('rollback');
  for (let times = 0; times < 4; times++)
    expect((await second.query('show work_mem')).rows).toEqual([{ work_mem: '4MB' }]);
  expect((await first.query('show work_mem')).rows).toEqual([{ work_mem: '7MB' }]);
});

test('A setting that is changed unseen with a name of the client’s own is not there for the next', async () => {
  const pooler = await lone();
  const [first, second] = [await pooler.connect(), await pooler.connect()];
  await first.query(`do $$ begin execute 'se' || 't my.setting = ''7'''; end $$`);
  expect((await second.query("select current_setting('my.setting', true) as mine")).rows[0].mine ?? '').toBe(
    '',
  );
});

test('A setting that is changed unseen leaves what the client has set itself as it is', async () => {
  const pooler = await lone();
  const [first, second] = [await pooler.connect(), await pooler.connect({ options: '-c lock_timeout=9s' })];
  await first.query("set my.setting = 'mine'; ");
  await first.query('set statement_timeout = 5000');
  await first.query(byBlock);
  expect((await second.query('show lock_timeout')).rows).toEqual([{ lock_timeout: '9s' }]);
  const { rows } = await first.query(
    "select current_setting('my.setting') as mine, current_setting('statement_timeout') as time",
  );
  expect(rows).toEqual([{ mine: 'mine', time: '5s' }]);
});

test.each(['set session authorization', 'set role'])(
  'A setting of an earlier client that only a superuser takes back is no error for a client that said %s',
  async (becomes) => {
    const pooler = await lone();
    const [first, second] = [await pooler.connect(), await pooler.connect()];
    await second.query(`${becomes} ${role}`);
    for (let times = 0; times < 3; times++) {
      await first.query('set session_replication_role = replica');
      expect((await second.query('select current_user as who')).rows).toEqual([{ who: role }]);
      expect((await second.query('show session_replication_role')).rows[0]).toEqual({
        session_replication_role: 'origin',
      });
      expect((await first.query('show session_replication_role')).rows[0]).toEqual({
        session_replication_role: 'replica',
      });
    }
  },
);

const denied = { severity: 'ERROR', code: '42501', message: 'permission denied to set parameter' };

test('A server that does not take back what an earlier client has set is replaced, and the next client does not hear of it', async () => {
  const server = await ScriptedServer.start({
    answer: (text, connection) => {
      if (/^set /i.test(text)) connection.done('SET');
      if (/^reset /i.test(text)) {
        connection.error(denied);
        connection.say(0x5a, 0, 0, 0, 5, 0x49);
      }
      return !/^(?:re)?set /i.test(text);
    },
  });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const [first, second] = [await enter(pooler), await enter(pooler)];
  await ask(first, 'set session_replication_role = replica');
  expect(await ask(second, 'select 1')).toBe('CZ');
  expect(server.connections).toHaveLength(2);
});

test('A server that can’t be asked keeps its client', async () => {
  const server = await ScriptedServer.start({});
  const pooler = await startTestPooler(server.db, {
    pooling: { poolSize: 1 },
    admin: { adminUsers: ['boss'] },
  });
  await ask(await enter(pooler), 'create table t (a int)');
  await expect.poll(() => pinsOf(pooler)).toEqual(['session_not_checked']);
});

test('Plain statements, transactions and settings ask nothing of the server', async () => {
  const pooler = await lone();
  const client = await pooler.connect();
  for (const text of [
    'select 1',
    '/* with a comment */ select $$a$$',
    "begin; set local work_mem = '1MB'; select 1; commit",
    "set work_mem = '5MB'",
    'reset work_mem',
    "select set_config('my.claim', 'x', true)",
    'declare c cursor for select 1',
  ])
    await client.query(text).catch(() => {});
  await client.query({ name: 'named', text: 'select $1::int', values: [1] });
  expect(await checksOf(pooler)).toEqual([0, 0]);
  await client.query('create temp table counted (a int)');
  await expect.poll(() => checksOf(pooler)).toEqual([1, 1]);
});

test('With session_check = always, what a function does is found as well', async () => {
  await directly(`create or replace function leave_things() returns int language plpgsql as $$ begin
    perform set_config('my.setting', 'left', false);
    perform set_config('work_mem', '7MB', false);
    return 1;
  end $$`);
  const pooler = await lone({ sessionCheck: 'always' }, 2);
  const [first, second] = [await pooler.connect(), await pooler.connect()];
  await first.query('select leave_things()');
  for (let times = 0; times < 3; times++) {
    const { rows } = await second.query(
      "select coalesce(current_setting('my.setting', true), '') as mine, current_setting('work_mem') as memory",
    );
    expect(rows).toEqual([{ mine: '', memory: '4MB' }]);
  }
  expect((await first.query('show work_mem')).rows).toEqual([{ work_mem: '7MB' }]);
});

test('With a reset after each transaction, a client keeps its table all the same', async () => {
  const pooler = await lone({ serverResetQueryAlways: true });
  const client = await pooler.connect();
  await client.query('create temp table mine (a int)');
  expect((await client.query('select count(*)::int as n from pg_temp.mine')).rows).toEqual([{ n: 0 }]);
  expect(await pinsOf(pooler)).toEqual(['temporary_table']);
});

test('A client that leaves at once has everything discarded behind it, whatever the reset query is', async () => {
  const pooler = await lone({ serverResetQuery: '' });
  const first = await RawSession.start(pooler, StartupCode.version30);
  await ask(
    first,
    "create temp table left_over (a int); do $$ begin perform set_config('my.setting', 'x', false); end $$",
  );
  first.socket.destroy();
  const second = await pooler.connect();
  const { rows } = await second.query(
    "select to_regclass('pg_temp.left_over') as left_over, coalesce(current_setting('my.setting', true), '') as mine",
  );
  expect(rows).toEqual([{ left_over: null, mine: '' }]);
});

async function enter(pooler: TestPooler): Promise<RawSession> {
  const session = await RawSession.start(pooler, StartupCode.version30);
  onTestFinished(() => {
    session.socket.destroy();
  });
  return session;
}

async function ask(session: RawSession, text: string): Promise<string> {
  return typesOf(await session.ask((writer) => writeQuery(writer, text)));
}
