// What a client does to its session is its own, as on the server itself, in whatever order and form it is said: the next client
// on the same server connection has nothing of it, or the first one keeps that connection.
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeExecute,
  writeFunctionCall,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import type { MessageWriter } from '../../../src/wire/message-writer.js';
import { readDataRow } from '../../../src/wire/rows.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, type Received } from '../../wire/server/raw-session.js';

/** A text, texts of the extended protocol up to one Sync, or whatever is written. */
type Step = string | readonly string[] | ((writer: MessageWriter) => void);

let db: TestDatabase;
let pooler: TestPooler;
let roles: { readonly other: string; readonly limited: string };

beforeAll(async () => {
  db = await withDatabase();
  roles = { other: `${db.database}_other`, limited: `${db.database}_limited` };
  const session = await RawSession.start(db, StartupCode.version30);
  for (const role of Object.values(roles)) await take(session, `create role ${role}`);
  await take(session, `grant ${roles.limited} to ${roles.other}`);
  await take(session, 'create schema sa; create schema sb');
  session.socket.destroy();
});
afterAll(async () => {
  const session = await RawSession.start(db, StartupCode.version30);
  for (const role of Object.values(roles)) await take(session, `drop role ${role}`);
  session.socket.destroy();
  await db.drop();
});
beforeEach(async () => {
  pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
});

function take(session: RawSession, step: Step): Promise<Received[]> {
  return session.ask((writer) => {
    if (typeof step === 'function') step(writer);
    else if (typeof step === 'string') writeQuery(writer, step);
    else {
      for (const text of step) {
        writeParse(writer, { text });
        writeBind(writer, {});
        writeExecute(writer);
      }
      writer.append(sync);
    }
  });
}

async function look(session: RawSession, text: string): Promise<string> {
  const answer = await take(session, text);
  const row = answer.find(({ type }) => type === Backend.dataRow);
  if (row === undefined) return errorOf(answer)?.code ?? 'nothing';
  return readDataRow(row.bytes, 0, row.bytes.length).join(', ');
}

/** What a client that has done this sees, and the client after it, on the server itself and through the pooler. */
async function compare(steps: readonly Step[], probe: string): Promise<void> {
  const [fresh, direct] = [await start(db), await start(db)];
  for (const step of steps) await take(direct, step);
  const expected = [await look(direct, probe), await look(fresh, probe)];
  direct.socket.destroy();
  // The server clears away what the client has left.
  await expect.poll(() => look(fresh, `select count(*) from pg_stat_activity where ${ofClients}`)).toBe('1');

  const client = await start(pooler);
  for (const step of steps) await take(client, step);
  const own = await look(client, probe);
  const isKept = pooler.pooler.stats().pools[0]?.inUse === 1;
  if (isKept) client.socket.destroy();
  const others = await look(await start(pooler), probe);
  const later = isKept ? own : await look(client, probe);
  expect([own, others, later]).toEqual([...expected, expected[0]]);
}

const ofClients = "datname = current_database() and backend_type = 'client backend'";

async function start(place: TestDatabase): Promise<RawSession> {
  const session = await RawSession.start(place, StartupCode.version30);
  onTestFinished(() => {
    session.socket.destroy();
  });
  return session;
}

const memory = 'show work_mem';
const set = "set work_mem = '7MB'";

test.each<[string, Step[]]>([
  ['set behind a ROLLBACK of the same pipeline', [['rollback', set]]],
  ['committed, and chained', ['begin', set, 'commit and chain', 'rollback']],
  ['committed before something fails', [['begin', set, 'commit', 'select 1/0']]],
  ['committed before something is rolled back', [['begin', set, 'commit', 'begin', 'rollback']]],
  ['committed without a BEGIN before something fails', [[set, 'commit', 'select 1/0']]],
  ['not undone by a savepoint', ['begin', set, 'savepoint s', ['rollback to s', 'commit']]],
  ['undone by a savepoint', ['begin', 'savepoint s', set, 'rollback to s', 'commit']],
  ['undone with its transaction', ['begin', set, 'rollback']],
  ['undone with its failed transaction', ['begin', set, 'select 1/0', 'commit']],
  ['undone together with others', ['begin', set, 'rollback; select 1']],
  ['undone, and set again', ['begin', "set work_mem = '6MB'", ['rollback', set]]],
  ['undone in the middle of a pipeline', [[set, 'select 1/0']]],
  ['of a transaction that is prepared, and fails', ['begin', set, "prepare transaction 'no'", 'rollback']],
])('A setting is followed in the order in which things are done %s', async (_name, steps) => {
  await compare(steps, memory);
});

test.each([
  ['search_path', 'set search_path = sa', 'show search_path'],
  ['role', 'set role LIMITED', 'select current_user = session_user'],
])(
  'A setting is followed in the order in which things are done whatever it is: %s',
  async (_name, text, probe) => {
    await compare([['rollback', text.replace('LIMITED', roles.limited)]], probe);
  },
);

describe('A RESET takes back what it names, and nothing that is set beside it', () => {
  const [path, zone] = ['show search_path', 'show timezone'];
  const tokyo = "set timezone = 'Asia/Tokyo'";
  test.each<[Step[], string]>([
    [['begin', 'set local search_path = sb; reset statement_timeout'], path],
    [['begin', "set local timezone = 'Asia/Tokyo'; set work_mem to default"], zone],
    [[['set search_path = sa', 'reset work_mem']], path],
    [[[tokyo, 'reset work_mem']], zone],
    [[['reset work_mem', tokyo]], zone],
    [['set search_path = sa; reset work_mem'], path],
    [["reset all; select set_config('search_path', 'sa', false)"], path],
    [["reset work_mem; select set_config('timezone', 'Asia/Tokyo', false)"], zone],
    [['begin', "reset work_mem; select set_config('search_path', 'sa', true)"], path],
    [[['discard all', tokyo]], zone],
    [[tokyo, `reset all; ${tokyo}`], zone],
    [[tokyo, `${tokyo}; reset all`], zone],
  ])('%j', async (steps, probe) => {
    await compare(steps, probe);
  });
});

test.each([
  ['local.mark', 'select 1; set local.mark = 1'],
  ['transaction.mark', 'begin; set transaction . mark to 1; commit'],
  ['constraints.mark', 'reset work_mem; set constraints.mark = 1'],
])('A setting named %s does not end with its transaction', async (name, text) => {
  await compare([text], `select coalesce(nullif(current_setting('${name}', true), ''), 'none')`);
});

const who = 'select current_user, session_user';
const named = (text: string): string => text.replace('OTHER', roles.other).replace('LIMITED', roles.limited);
test.each([
  [['set session authorization OTHER']],
  [['set session authorization OTHER', 'set role LIMITED']],
  [['set session authorization OTHER', 'set role LIMITED', 'reset session authorization']],
  [['set role LIMITED', 'set session authorization OTHER']],
  [['set session authorization OTHER', 'reset all']],
  [['begin', 'set session authorization OTHER', 'rollback']],
  [['set role LIMITED', 'begin', 'set session authorization OTHER', 'rollback']],
])('The identity of a session is not left to the next client: %j', async (texts) => {
  await compare(texts.map(named), who);
});

test.each([
  [['set session_replication_role = replica', 'set role LIMITED']],
  [['set role LIMITED', 'set local log_statement = none']],
  [["set transaction_isolation = 'serializable'"]],
  [['begin', "set transaction_isolation = 'serializable'", 'commit']],
  [['set transaction_read_only = on']],
  [['set seed = 0.5']],
])('Who one is does not keep the next client from being served: %j', async (texts) => {
  await compare(texts.map(named), "select 'served'");
});

const long = `/*${'x'.repeat(70_000)}*/`;
const locks = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()";
const temporary = "select to_regclass('pg_temp.passing') is null";
test.each<[string, Step[], string]>([
  ['a long text: set_config', [`select set_config('work_mem', '7MB', false) ${long}`], memory],
  ['a long text: a temporary table', [`create temp table passing (a int); ${long}`], temporary],
  ['a long text, the other way round', [`${long}; create temp table passing (a int)`], temporary],
  ['a long text to be prepared', [[`create temp table passing (a int) ${long}`]], temporary],
  ['a long text: a lock', [`select pg_advisory_lock(1) ${long}`], locks],
  ['a long text: a setting', [`${set} ${long}`], memory],
  ['a string with a quote behind a backslash', ["select E'it\\'s', pg_advisory_lock(2)"], locks],
  ['a string that ends in a backslash', ["select 'C:\\dir\\' as p, pg_advisory_lock(5)"], locks],
  ['such a string, and a table', ["select 'C:\\dir\\'; create temp table passing (a int)"], temporary],
  [
    'a function with a body of statements, and a table',
    [
      'create or replace function fa() returns int begin atomic; select 1; end; create temp table passing (a int)',
    ],
    temporary,
  ],
  ['a name in another alphabet', ['select 1 as U&"\\0061", pg_advisory_lock(3)'], locks],
  ['a comment', ['create temp table passing (a int) -- not ON COMMIT DROP'], temporary],
  ['UPDATE of the settings', ["update pg_settings set setting = '7168' where name = 'work_mem'"], memory],
  ['a DO block: set_config', ["do $$ begin perform set_config('work_mem', '7MB', false); end $$"], memory],
  ['a DO block: SET', [`do $$ begin ${set}; end $$`], memory],
  ['a DO block: a table', ['do $$ begin create temp table passing (a int); end $$'], temporary],
  [
    'a function called by its number: set_config',
    [(writer) => writeFunctionCall(writer, { functionId: 2078, values: ['work_mem', '7MB', 'f'] })],
    memory,
  ],
  [
    'a function called by its number: a lock',
    [(writer) => writeFunctionCall(writer, { functionId: 2880, values: ['9'] })],
    locks,
  ],
])('What can not be followed keeps the server, however it is said %s', async (_name, steps, probe) => {
  await compare(steps, probe);
});

test.each([
  'create table plain (temp int, listen text)',
  'do $$ begin update pg_class set relname = relname where false; end $$',
  "insert into notes values ('create a temporary solution, set it up and listen')",
  "select E'it\\'s nothing'",
])(
  'What can not be followed keeps the server, however it is said and what does nothing of the kind does not: %s',
  async (text) => {
    const client = await start(pooler);
    await take(client, 'create table if not exists notes (note text)');
    await take(client, text);
    await take(client, `${text} ${long}`);
    expect(pooler.pooler.stats().pinned).toBe(0);
  },
);

test('What can not be followed keeps the server, however it is said and a function that is made does nothing yet', async () => {
  const client = await start(pooler);
  const body = "select set_config('a.b', 'c', false)";
  await take(client, `create or replace function later() returns text language sql as $$ ${body} $$`);
  expect(pooler.pooler.stats().pinned).toBe(0);
});
