import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** Each transaction gets the server that was idle for longest, so that a client sees another one each time. */
const moving = { pooling: { poolSize: 3, serverRoundRobin: true } };

let pooler: TestPooler;
beforeEach(async () => {
  pooler = await startTestPooler(db, moving);
  const clients = await Promise.all([pooler.connect(), pooler.connect(), pooler.connect()]);
  for (const text of ['begin', 'select 1', 'commit'])
    await Promise.all(clients.map((client) => client.query(text)));
});

async function show(client: pg.Client, name: string): Promise<string> {
  const { rows } = await client.query('select current_setting($1, true) as value', [name]);
  return rows[0].value;
}

async function pids(client: pg.Client, rounds = 6): Promise<Set<number>> {
  const found = new Set<number>();
  for (let round = 0; round < rounds; round++)
    found.add((await client.query('select pg_backend_pid() as pid')).rows[0].pid);
  return found;
}

async function shownOften(client: pg.Client, name: string): Promise<Set<string>> {
  const values = new Set<string>();
  for (let round = 0; round < 6; round++) values.add(await show(client, name));
  return values;
}

function pins(): number {
  return pooler.pooler.stats().pinned;
}

function pinReasons(): string[] {
  return pooler.pooler.view.clients().flatMap(({ pin }) => pin?.reason ?? []);
}

test('a client that changes nothing is served by one server after the other', async () => {
  expect((await pids(await pooler.connect())).size).toBe(3);
});

async function busy(): Promise<{ pooler: TestPooler; free: () => Promise<unknown> }> {
  const full = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const holder = await full.connect();
  await holder.query('begin');
  await holder.query('select 1');
  return { pooler: full, free: () => holder.query('commit') };
}

test('while all servers are busy, a client comes in with settings that no server has seen and has them when it gets a server, which tells how it writes them', async () => {
  const { pooler: full, free } = await busy();
  const client = await full.connect({ options: '-c datestyle=german -c work_mem=1234kB' });
  const reported: Record<string, string> = {};
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
  connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
    reported[parameterName] = parameterValue;
  });
  const shown = show(client, 'datestyle');
  await free();
  expect([await shown, await show(client, 'work_mem')]).toEqual(['German, DMY', '1234kB']);
  expect(reported).toEqual({ DateStyle: 'German, DMY' });
});

test('while all servers are busy, a client comes in with settings that no server has seen and nothing is done for it if they are impossible', async () => {
  const { pooler: full, free } = await busy();
  const client = await full.connect({ options: '-c timezone=Nowhere/Land' });
  const created = client.query('create table without_place (a int)');
  await free();
  await expect(created).rejects.toMatchObject({ code: '22023' });
  const other = await full.connect();
  expect((await other.query("select to_regclass('without_place') as found")).rows).toEqual([{ found: null }]);
});

const settings: readonly (readonly [string, string, string])[] = [
  ["set timezone = 'Asia/Tokyo'", 'timezone', 'Asia/Tokyo'],
  ["set time zone 'Asia/Tokyo'", 'timezone', 'Asia/Tokyo'],
  ["SET SESSION datestyle TO 'German'", 'datestyle', 'German, DMY'],
  ['set search_path = a, "B c", public', 'search_path', 'a, "B c", public'],
  ["set schema 'x'", 'search_path', 'x'],
  ["set statement_timeout to '5s'", 'statement_timeout', '5s'],
  ['set statement_timeout = 5000;', 'statement_timeout', '5s'],
  ["/* by a tool */ set application_name = 'it''s me' -- done", 'application_name', "it's me"],
  ["set my.setting = 'value'", 'my.setting', 'value'],
  ["set names 'LATIN1'", 'client_encoding', 'LATIN1'],
  [
    'set session characteristics as transaction isolation level serializable, read only',
    'default_transaction_isolation',
    'serializable',
  ],
  ['set default_transaction_read_only = on', 'default_transaction_read_only', 'on'],
];
test.each(settings)(
  'a setting follows the client to every server, and nobody else has it %s',
  async (statement, name, value) => {
    const client = await pooler.connect();
    const other = await pooler.connect();
    const usual = await show(other, name);
    await client.query(statement);
    expect(await shownOften(client, name)).toEqual(new Set([value]));
    expect(await shownOften(other, name)).not.toContain(value);
    expect(usual).not.toBe(value);
    expect((await pids(client)).size).toBe(3);
    expect(pins()).toBe(0);
  },
);

test('a setting follows the client to every server, and no other client has it: a role', async () => {
  const client = await pooler.connect();
  await client.query('create role somebody');
  await client.query('set role somebody');
  for (let round = 0; round < 6; round++)
    expect((await client.query('select current_user')).rows[0].current_user).toBe('somebody');
  const other = await pooler.connect();
  for (let round = 0; round < 6; round++)
    expect((await other.query('select current_user')).rows[0].current_user).toBe(db.user);
  await client.query('reset role');
  for (let round = 0; round < 6; round++)
    expect((await client.query('select current_user')).rows[0].current_user).toBe(db.user);
  await client.query('drop role somebody');
  expect(pins()).toBe(0);
});

test('a setting follows the client to every server: a role that was dropped ends the client, and its query is not run as another role', async () => {
  const client = await pooler.connect();
  const other = await pooler.connect();
  await client.query('create table ran_as (who text)');
  await client.query('grant all on ran_as to public');
  await client.query('create role passing');
  await client.query('set role passing');
  await other.query('drop role passing');
  await expect(
    (async () => {
      for (let round = 0; round < 6; round++) await client.query('insert into ran_as values (current_user)');
    })(),
  ).rejects.toMatchObject({ severity: 'FATAL' });
  const { rows } = await other.query("select count(*)::int as n from ran_as where who <> 'passing'");
  expect(rows).toEqual([{ n: 0 }]);
  await other.query('drop table ran_as');
});

test('a setting follows the client to every server, and no other client has it: changed in the extended protocol, with and without a name', async () => {
  const client = await pooler.connect();
  await client.query({ text: "set statement_timeout = '3s'", values: [] });
  expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['3s']));
  const named = { name: 'timeout', text: "set statement_timeout = '4s'" };
  await client.query(named);
  await client.query("set statement_timeout = '9s'");
  await client.query(named);
  expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['4s']));
  expect(pins()).toBe(0);
});

test('a setting goes back to what it was when its transaction is rolled back', async () => {
  const client = await pooler.connect();
  await client.query("set statement_timeout = '1min'");
  await client.query('begin');
  await client.query("set statement_timeout = '2min'");
  await client.query("set timezone = 'Asia/Tokyo'");
  await client.query('rollback');
  expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['1min']));
  expect(await shownOften(client, 'timezone')).not.toContain('Asia/Tokyo');
});

test('a setting goes back to what it was when its transaction fails and is committed all the same', async () => {
  const client = await pooler.connect();
  await client.query('begin');
  await client.query("set statement_timeout = '2min'");
  await client.query('select nonsense').catch(() => {});
  await client.query('commit');
  expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['0']));
  expect(pins()).toBe(0);
});

test('a setting goes back to what it was not when a transaction is committed', async () => {
  const client = await pooler.connect();
  await client.query('begin');
  await client.query("set statement_timeout = '2min'");
  await client.query('commit');
  expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['2min']));
});

test('a setting goes back to what it was with SET LOCAL, at the end of the transaction', async () => {
  const client = await pooler.connect();
  await client.query('begin');
  await client.query("set local statement_timeout = '2min'");
  await client.query("set local timezone = 'Asia/Tokyo'");
  expect(await show(client, 'timezone')).toBe('Asia/Tokyo');
  await client.query('commit');
  expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['0']));
  expect(await shownOften(client, 'timezone')).not.toContain('Asia/Tokyo');
  await client.query("begin; set local statement_timeout = '2min'; select 1; commit");
  expect(pins()).toBe(0);
});

test('a setting goes back to what it was with RESET, RESET ALL and DISCARD ALL, and that is what the client has begun with', async () => {
  for (const reset of [
    'reset statement_timeout',
    'set statement_timeout to default',
    'reset all',
    'discard all',
  ]) {
    const client = await pooler.connect({ options: '-c statement_timeout=11s -c timezone=Europe/Berlin' });
    await client.query("set statement_timeout = '2min'");
    await client.query("set timezone = 'Asia/Tokyo'");
    await client.query(reset);
    expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['11s']));
    const zone = reset.includes('all') ? 'Europe/Berlin' : 'Asia/Tokyo';
    expect(await shownOften(client, 'timezone')).toEqual(new Set([zone]));
    expect(pins()).toBe(0);
  }
});

test('a setting goes back to what it was with RESET in a transaction, and a rollback brings it back', async () => {
  const client = await pooler.connect({ options: '-c statement_timeout=11s -c timezone=Europe/Berlin' });
  await client.query("set statement_timeout = '2min'");
  await client.query("set timezone = 'Asia/Tokyo'");
  for (const [reset, zone] of [
    ['reset all', 'Europe/Berlin'],
    ['reset statement_timeout', 'Asia/Tokyo'],
    ["reset all; select 'x'", 'Europe/Berlin'],
  ] as const) {
    await client.query('begin');
    await client.query(reset);
    expect([await show(client, 'statement_timeout'), await show(client, 'timezone')]).toEqual(['11s', zone]);
    await client.query('rollback');
    expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['2min']));
    expect(await shownOften(client, 'timezone')).toEqual(new Set(['Asia/Tokyo']));
  }
  await client.query('begin');
  await client.query('reset all');
  await client.query('commit');
  expect(await shownOften(client, 'statement_timeout')).toEqual(new Set(['11s']));
  expect(pins()).toBe(0);
});

const among: readonly (readonly [string, timeout: string, zone: string, memory: string])[] = [
  ["reset all; select 'ü; x'", '11s', 'Europe/Berlin', 'usual'],
  ['select 1 as "a;b"; RESET ALL; -- it is; done\nselect $x$;$x$', '11s', 'Europe/Berlin', 'usual'],
  ["reset statement_timeout; select 'x'", '11s', 'Asia/Tokyo', '5MB'],
  ["set timezone to default; insert into noted values ('it''s')", '2min', 'Europe/Berlin', '5MB'],
  ["reset all; set work_mem = '7MB'; select 'x'", '11s', 'Europe/Berlin', '7MB'],
  ["reset all; set timezone = 'Asia/Seoul'; select 'x'", '11s', 'Asia/Seoul', 'usual'],
  ["set timezone = 'Asia/Seoul'; reset all; select 'x'", '11s', 'Europe/Berlin', 'usual'],
  ["reset all; select 'x'; select 1 / 0", '2min', 'Asia/Tokyo', '5MB'],
];
test.each(among)(
  'a setting goes back to what it was with a RESET among other statements: %s',
  async (text, timeout, zone, memory) => {
    const client = await pooler.connect({ options: '-c statement_timeout=11s -c timezone=Europe/Berlin' });
    const usual = await show(client, 'work_mem');
    await client.query('create table if not exists noted (t text)');
    await client.query("set statement_timeout = '2min'");
    await client.query("set timezone = 'Asia/Tokyo'");
    await client.query("set work_mem = '5MB'");
    await client.query(text).catch(() => {});
    expect(await shownOften(client, 'statement_timeout')).toEqual(new Set([timeout]));
    expect(await shownOften(client, 'timezone')).toEqual(new Set([zone]));
    expect(await shownOften(client, 'work_mem')).toEqual(new Set([memory === 'usual' ? usual : memory]));
    expect(pins()).toBe(0);
    expect((await pids(client)).size).toBe(3);
  },
);

test('a setting goes back to what it was and the client is told of it', async () => {
  const client = await pooler.connect({ options: '-c timezone=Europe/Berlin' });
  const told: string[] = [];
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
  connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
    if (parameterName === 'TimeZone') told.push(parameterValue);
  });
  await client.query("set timezone = 'Asia/Tokyo'");
  await client.query('reset timezone');
  await client.query('select 1');
  await client.query('select 1');
  expect(told[0]).toBe('Asia/Tokyo');
  expect(told.at(-1)).toBe('Europe/Berlin');
});

const reasons: readonly (readonly [string, string])[] = [
  ['listen channel', 'listen'],
  ['create temp table mine (a int)', 'temporary_table'],
  ['select 1 as a into temporary table mine2', 'temporary_table'],
  ['select pg_advisory_lock(1)', 'advisory_lock'],
  ['select pg_try_advisory_lock(1)', 'advisory_lock'],
  ['declare c cursor with hold for select 1', 'cursor_with_hold'],
  ['prepare p as select 1', 'prepare_in_sql'],
  ["select set_config('work_mem', '5MB', false)", 'set_config'],
  ["set work_mem = '5MB'; select 1", 'setting_not_followed'],
  ["load 'plpgsql'", 'library_loaded'],
  ['select setseed(0.5)', 'session_function'],
];
test.each(reasons)(
  'the client keeps its server, and the reason is known, when it %s',
  async (statement, reason) => {
    const client = await pooler.connect();
    await client.query(statement);
    const { pid } = (await client.query('select pg_backend_pid() as pid')).rows[0];
    expect(await pids(client)).toEqual(new Set([pid]));
    expect(pinReasons()).toEqual([reason]);
    const others = await pooler.connect();
    expect(await pids(others)).not.toContain(pid);
    await client.end();
    await expect.poll(pins).toBe(0);
    // The next client of the server finds no trace of it.
    await expect.poll(async () => (await pids(others)).has(pid)).toBe(true);
    await expect(others.query('select * from mine')).rejects.toMatchObject({ code: '42P01' });
    const { rows } = await others.query(
      `select count(*)::int as n from pg_locks join pg_database on pg_database.oid = pg_locks.database
        where locktype = 'advisory' and datname = current_database()`,
    );
    expect(rows).toEqual([{ n: 0 }]);
  },
);

test('the client keeps its server, and the reason is known, when it and not when that is over with the transaction', async () => {
  const client = await pooler.connect();
  const passing = [
    'select pg_advisory_xact_lock(1)',
    "select set_config('work_mem', '5MB', true)",
    "select set_config('search_path', $1, true), set_config('role', $2, true)",
    'create temp table passing (a int) on commit drop',
    'declare c cursor for select 1',
    'notify channel',
    'lock table pg_catalog.pg_class in access share mode',
  ];
  for (const text of passing) {
    await client.query('begin');
    await client.query(text, text.includes('$2') ? ['public', 'none'] : undefined);
    await client.query('commit');
  }
  expect(pins()).toBe(0);
  expect((await pids(client)).size).toBe(3);
});

test('the client keeps its server, and the reason is known, when it until DISCARD ALL', async () => {
  const client = await pooler.connect();
  await client.query('create temp table mine (a int)');
  expect((await pids(client)).size).toBe(1);
  await client.query('discard all');
  expect((await pids(client)).size).toBe(3);
  expect(pins()).toBe(0);
});

test('the client keeps its server, and the reason is known, when it and hears notifications there', async () => {
  const client = await pooler.connect();
  const heard = new Promise<pg.Notification>((resolve) => client.once('notification', resolve));
  await client.query('listen news');
  await (await pooler.connect()).query("notify news, 'hello'");
  expect(await heard).toMatchObject({ channel: 'news', payload: 'hello' });
});
