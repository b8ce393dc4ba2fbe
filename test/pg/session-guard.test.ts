// With pipelining, what a query through `pool.query()` leaves behind is set right before anyone else gets its connection, and
// its caller is told. The server is asked what is left.
import QueryStream from 'pg-query-stream';
import { expect, test } from 'vitest';
import { HeadgateError, type Pool, SessionChangedError, TransactionLeftOpenError } from '../../src/index.js';
import { rejectionOf, watch } from '../support/outcomes.js';
import { type PoolOptions, usePipelinedPools, watchedClients } from '../support/pipelined-pools.js';
import { seededRandom } from '../support/seeded-random.js';

const { newPool, newWatchedPool, ask, sessionsOf } = usePipelinedPools(`
  create table item (id int primary key);
  create table kept (id int primary key);
  create sequence counter;
  create procedure takes_a_lock() language sql as 'select pg_advisory_lock(4711)';
  create procedure does_nothing() language sql as 'select 1';
`);

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_nothing, index) => make(index));
}

/** All that belongs to a session and that the next query on it could meet. */
const whatIsLeft = `select
  (select json_agg(name || ' = ' || setting) from pg_settings
   where source = 'session' and name not like 'transaction%') as settings,
  current_setting('hg.mark', true) as mark,
  session_user = current_user as is_itself,
  (select json_agg(objid) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory') as locks,
  (select json_agg(name) from pg_prepared_statements) as prepared,
  (select json_agg(name) from pg_cursors where name <> '') as cursors,
  (select json_agg(relname) from pg_class where relnamespace = pg_my_temp_schema()) as temporary,
  (select json_agg(channel) from pg_listening_channels() as channel) as channels`;

const advisoryLocks = `select pid from pg_locks where locktype = 'advisory' and database =
  (select oid from pg_database where datname = current_database())`;

const nothing = {
  settings: null,
  mark: null,
  is_itself: true,
  locks: null,
  prepared: null,
  cursors: null,
  temporary: null,
  channels: null,
};

/** Looks at every connection that the pool may have. */
async function expectNothingLeft(pool: Pool): Promise<void> {
  const clients = await Promise.all(times(pool.options.max as number, () => pool.connect()));
  for (const client of clients) {
    const [status] = await statusOf(client as never);
    expect(status).toBe('idle');
    expect((await client.query(whatIsLeft)).rows).toEqual([nothing]);
  }
  for (const client of clients) client.release();
}

/** The state of a client's session, as another session sees it. */
async function statusOf(client: { processID: number }): Promise<string[]> {
  const rows = await ask<{ state: string }>('select state from pg_stat_activity where pid = $1', [
    client.processID,
  ]);
  return rows.map(({ state }) => state);
}

test.each([
  'begin',
  'START TRANSACTION ISOLATION LEVEL SERIALIZABLE',
  'begin; insert into item values (1)',
  '/* hidden */ begin; insert into item values (2); savepoint here',
  'insert into item values (3); begin; insert into item values (4)',
  'begin; commit and chain',
  "begin; set local work_mem = '77MB'",
  "begin; set work_mem = '77MB'",
  'begin; listen news',
  'begin; create temp table scratch (a int)',
  'begin; declare reader cursor with hold for select 1',
])('a transaction left open is rolled back, and the caller told: %s', async (text) => {
  const { pool, clients } = newWatchedPool({ max: 1 });
  const error = await rejectionOf(pool.query(text));
  expect(error).toBeInstanceOf(TransactionLeftOpenError);
  expect(error).toBeInstanceOf(HeadgateError);
  expect(error).toMatchObject({ code: 'HG_TRANSACTION_LEFT_OPEN', name: 'TransactionLeftOpenError' });
  await expectNothingLeft(pool);
  expect(await ask('select * from item')).toEqual([]);
  expect(clients.length).toBeLessThanOrEqual(2);
});

test('a transaction left open keeps its connection when nothing else was left', async () => {
  const { pool, clients } = newWatchedPool({ max: 1 });
  await rejectionOf(pool.query('begin'));
  await pool.query('select 1');
  expect(clients).toHaveLength(1);
});

test.each([
  ['an advisory lock', 'begin; select pg_advisory_lock(4711)'],
  ['a prepared statement', 'begin; prepare left_over as select 1'],
  ['a setting that was committed', "begin; set work_mem = '77MB'; commit; begin"],
  ['a temporary table that was committed', 'begin; create temp table scratch (a int); commit; begin'],
  ['what a DO block did', 'begin; do $$ begin perform pg_advisory_lock(4711); end $$'],
  ['what a procedure did', 'begin; call takes_a_lock()'],
])(
  'a transaction left open does not leave behind %s, which a rollback does not undo',
  async (_what, text) => {
    const pool = newPool({ max: 1 });
    expect(await rejectionOf(pool.query(text))).toBeInstanceOf(TransactionLeftOpenError);
    await expectNothingLeft(pool);
  },
);

test('a transaction left open is told even if the connection is lost while it is rolled back', async () => {
  const { Client, made } = watchedClients();
  class LostAtRollback extends Client {
    // biome-ignore lint/suspicious/noExplicitAny: it stands in for every overload at once
    override query(config: any, ...rest: any[]): any {
      const answer = super.query(config, ...(rest as []));
      if (config === 'ROLLBACK') this.connection.stream.destroy();
      return answer;
    }
  }
  const pool = newPool({ max: 1, Client: LostAtRollback } as unknown as PoolOptions);
  expect(await rejectionOf(pool.query('begin'))).toBeInstanceOf(TransactionLeftOpenError);
  await expectNothingLeft(pool);
  expect(made).toHaveLength(2);
});

test('a transaction left open that failed is an ordinary error', async () => {
  const pool = newPool({ max: 1 });
  expect(await rejectionOf(pool.query('begin; select 1 / 0'))).toMatchObject({ code: '22012' });
  await expectNothingLeft(pool);
});

test('a transaction left open is none when the text ended it', async () => {
  const { pool, clients } = newWatchedPool({ max: 1 });
  const [, , ended] = (await pool.query('begin; insert into kept values (1); commit')) as unknown as {
    command: string;
  }[];
  expect(ended?.command).toBe('COMMIT');
  await pool.query('begin; insert into kept values (2); rollback');
  await pool.query("begin; set local work_mem = '77MB'; set transaction read only; commit");
  await pool.query('commit');
  expect(await ask('select * from kept')).toEqual([{ id: 1 }]);
  await expectNothingLeft(pool);
  expect(clients).toHaveLength(1);
});

test.each([
  ['SET', "set work_mem = '77MB'"],
  ['SET', 'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'],
  ['SET', 'set role pg_monitor'],
  ['SET', "/* hidden */ select 1; set hg.mark = 'left'"],
  ['SET', "begin; set work_mem = '77MB'; commit"],
  ['SET', "begin; set/* hidden */work_mem = '77MB'; commit"],
  ['SET', "begin; set local work_mem = '66MB'; set hg.mark = 'left'; commit"],
  ['RESET', 'reset all'],
  ['LISTEN', 'listen news'],
  ['PREPARE', 'prepare left_over as select 1'],
  ['DISCARD', 'discard all'],
  ['SELECT', "select set_config('work_mem', '77MB', false)"],
  ['SELECT', 'select pg_advisory_lock(4711)'],
  ['SELECT', 'select 1, pg_try_advisory_lock_shared(4711)'],
  ['CREATE', 'create temp table scratch (a int)'],
  ['SELECT', 'create temporary table scratch as select 1 as a'],
  ['SELECT', 'select 1 as a into temp scratch'],
  ['CREATE', 'create table pg_temp.scratch (a int)'],
  ['CREATE', 'create temp view scratch as select 1 as a'],
  ['SELECT', "with x as (select set_config('hg.mark', 'left', false)) select * from x"],
])('a changed session is closed, and the caller told, with the result: %s of %s', async (command, text) => {
  const { pool, clients } = newWatchedPool({ max: 1 });
  const error = await rejectionOf(pool.query(text));
  expect(error).toBeInstanceOf(SessionChangedError);
  expect(error).toMatchObject({ code: 'HG_SESSION_CHANGED', name: 'SessionChangedError', command });
  const { result } = error as SessionChangedError;
  expect(Array.isArray(result) ? result : [result]).toContainEqual(expect.objectContaining({ command }));
  await expectNothingLeft(pool);
  expect(clients).toHaveLength(2);
  expect(await ask(advisoryLocks)).toEqual([]);
});

test.each([
  ['an advisory lock', 'begin; select pg_advisory_lock(4711); commit'],
  ['a setting', "begin; select set_config('work_mem', '77MB', false); commit"],
  ['a temporary table', 'begin; create temp table scratch (a int); commit'],
  ['a temporary table of its schema', 'commit; create table pg_temp.scratch (a int)'],
])('a changed session is noticed in the company of a transaction: %s', async (_what, text) => {
  const pool = newPool({ max: 1 });
  expect(await rejectionOf(pool.query(text))).toBeInstanceOf(SessionChangedError);
  await expectNothingLeft(pool);
});

test('a changed session is noticed in what a query stream has read', async () => {
  const pool = newPool({ max: 1 });
  const stream = new QueryStream("select set_config('work_mem', '77MB', false) as memory");
  const outcome = watch(pool.query(stream as never));
  const rows: unknown[] = [];
  for await (const row of stream) rows.push(row);
  expect(rows).toEqual([{ memory: '77MB' }]);
  expect(await rejectionOf(outcome.promise)).toBeInstanceOf(SessionChangedError);
  await expectNothingLeft(pool);
});

test('a changed session comes with the answer, which is the caller’s', async () => {
  const pool = newPool({ max: 1 });
  const error = await rejectionOf(pool.query("select set_config('work_mem', $1, false) as now", ['77MB']));
  expect((error as SessionChangedError).result).toMatchObject({ rows: [{ now: '77MB' }] });
});

test('a changed session that failed is an ordinary error', async () => {
  const pool = newPool({ max: 1 });
  expect(await rejectionOf(pool.query('set no_such_setting = 1'))).toMatchObject({ code: '42704' });
  expect(await rejectionOf(pool.query("set work_mem = '77MB'; select 1 / 0"))).toMatchObject({
    code: '22012',
  });
  await expectNothingLeft(pool);
});

test.each([
  ['DO', 'do $$ begin perform pg_advisory_lock(4711); end $$'],
  ['DO', "do $$ begin perform set_config('work_mem', '77MB', false); end $$"],
  ['CALL', 'call takes_a_lock()'],
  ['CALL', 'call does_nothing()'],
  ['DO', 'begin; do $$ begin perform pg_advisory_lock(4711); end $$; commit'],
])(
  'a statement with effects that can not be seen costs the connection, and the caller gets the result: %s in %s',
  async (command, text) => {
    const { pool, clients } = newWatchedPool({ max: 1 });
    const result = await pool.query(text);
    expect(Array.isArray(result) ? result[1] : result).toMatchObject({ command });
    await expectNothingLeft(pool);
    expect(clients).toHaveLength(2);
  },
);

test.each([
  'create table if not exists item (id int)',
  'alter table item add column if not exists note text',
  'create or replace function f() returns int language sql as $$ select 1 $$',
  'truncate item',
  'analyze item',
  'vacuum item',
  'select 1; select 2',
  'notify news',
  'comment on table item is $$; begin; set$$',
  "select 'begin; set work_mem = 1', $$listen news$$",
  'select pg_advisory_xact_lock(4711)',
  'explain analyze select 1',
  'insert into item select 99 where false',
])(
  'a statement that leaves nothing in the session keeps its connection, and the caller gets the result: %s',
  async (text) => {
    const { pool, clients } = newWatchedPool({ max: 1 });
    await pool.query(text);
    await expectNothingLeft(pool);
    expect(clients).toHaveLength(1);
  },
);

test.each([
  "select name from pg_settings where name = 'work_mem'",
  'select slot_name from pg_replication_slots',
  'select pg_cancel_backend(pid) from pg_stat_activity where pid < 0',
  'select pg_terminate_backend(pid) from pg_stat_activity where pid < 0',
  "select query_to_xml('select 1', true, false, '')",
  "select * from ts_stat('select to_tsvector(''a b'')')",
])(
  'a statement that only reads leaves nothing in the session, and the caller gets the result although it runs alone: %s',
  async (text) => {
    const pool = newPool({ max: 1 });
    await expect(pool.query(text)).resolves.toMatchObject({ command: 'SELECT' });
    await expectNothingLeft(pool);
  },
);

const intruders = [
  { text: 'begin isolation level serializable', code: 'HG_TRANSACTION_LEFT_OPEN' },
  { text: 'begin; insert into item values (-1)', code: 'HG_TRANSACTION_LEFT_OPEN' },
  { text: "set work_mem = '77MB'", code: 'HG_SESSION_CHANGED' },
  { text: "set hg.mark = 'left'", code: 'HG_SESSION_CHANGED' },
  { text: 'listen news', code: 'HG_SESSION_CHANGED' },
  { text: 'prepare left_over as select 1', code: 'HG_SESSION_CHANGED' },
  { text: "select set_config('hg.mark', 'left', false)", code: 'HG_SESSION_CHANGED' },
  { text: 'select pg_try_advisory_lock_shared(4711)', code: 'HG_SESSION_CHANGED' },
  { text: 'create temp table scratch (a int)', code: 'HG_SESSION_CHANGED' },
  { text: 'do $$ begin perform pg_advisory_lock_shared(4711); end $$' },
  { text: 'call does_nothing()' },
  { text: 'select 1; select 2' },
  { text: 'begin; select 1 / 0', code: '22012' },
  { text: 'copy item from stdin', code: '57014' },
  { text: 'select 1 / 0', code: '22012' },
  { text: 'select nonsense', code: '42703' },
];

test('a storm of all of them leaves no neighbour with a wrong answer, and no connection with anything left on it', async () => {
  const random = seededRandom();
  const pool = newPool({ max: 4, pipeline: { depth: 8 } });
  // What a neighbour would see of a session that is not clean: its settings, and whether it is inside a transaction.
  const look = `select $1::int as id, current_setting('work_mem') as memory, current_setting('hg.mark', true) as mark,
      current_setting('transaction_isolation') as isolation, exists (select from item where id < 0) as is_inside`;
  const [{ memory } = { memory: '' }] = await ask<{ memory: string }>(
    "select current_setting('work_mem') as memory",
  );
  const wrong: unknown[] = [];
  const calls = times(1_500, async (id) => {
    if (random.chance(0.8)) {
      const { rows } = await pool.query(look, [id]);
      const [row] = rows;
      const isClean = row.memory === memory && !row.mark && row.isolation === 'read committed';
      if (row.id !== id || !isClean || row.is_inside) wrong.push(row);
      return;
    }
    const { text, code } = random.pick(intruders);
    const outcome = await watch(pool.query(text)).promise.then(
      () => undefined,
      (error) => error.code,
    );
    if (outcome !== code) wrong.push({ text, outcome });
  });
  await Promise.all(calls);
  expect(wrong, `replay with HEADGATE_SEED=${random.seed}`).toEqual([]);
  await expectNothingLeft(pool);
  expect(await ask(advisoryLocks)).toEqual([]);
  expect(await ask('select * from item where id < 0')).toEqual([]);
  expect(pool.stats().peak).toBeLessThanOrEqual(4);
  expect(await sessionsOf(pool)).toBeLessThanOrEqual(4);
});

test('a client that is given back in the middle of a transaction is closed, so that no other caller joins the transaction', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  await client.query('begin');
  await client.query('insert into kept (id) values (-1)');
  client.release();
  await pool.query('insert into kept (id) values (-2)');
  expect((await pool.query('select id from kept where id < 0')).rows).toEqual([{ id: -2 }]);
  expect(pool.stats().totals).toMatchObject({ opened: 2, discarded: { released_with_error: 1 } });
});
