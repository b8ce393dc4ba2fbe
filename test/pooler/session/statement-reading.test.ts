// What a server reads when a statement is prepared: strings, dates, times and intervals, as the session is set at that moment.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { playIn, type Script, type Step, step } from '../raw/trace.js';

let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, { pooling: { poolSize: 2 }, admin: { adminUsers: ['boss'] } });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

interface Life {
  /** On one server. */
  readonly here: readonly Step[];
  /** On another one, which has none of the statements. */
  readonly there: readonly Step[];
  /** On a third one. */
  readonly elsewhere?: readonly Step[];
}

function query(text: string): Step {
  return step((script) => script.query(text));
}

function prepare(text: string, name = 'kept'): Step {
  return step((script) => script.parse(text, name).sync());
}

function run(name = 'kept'): Step {
  return step((script) => script.bind([], name).describePortal().execute().sync());
}

async function onServer({ here, there, elsewhere = [] }: Life): Promise<string[]> {
  const session = await RawSession.start(db, StartupCode.version30);
  const lines = await playIn(session, [...here, ...there, ...elsewhere]);
  session.socket.destroy();
  return lines;
}

/** Two servers, of which one is always taken by somebody else. */
async function throughPooler({ here, there, elsewhere = [] }: Life): Promise<string[]> {
  const [first, second] = [await pooler.connect(), await pooler.connect()];
  const boss = await pooler.connect({ database: 'headgate', user: 'boss' });
  await boss.query('reconnect');
  const session = await RawSession.start(pooler, StartupCode.version30);
  await first.query('begin; select 1');
  const lines = await playIn(session, here);
  await second.query('begin; select 1');
  await first.query('rollback');
  lines.push(...(await playIn(session, there)));
  await boss.query('reconnect');
  lines.push(...(await playIn(session, elsewhere)));
  session.socket.destroy();
  await Promise.all([first, second, boss].map((client) => client.end()));
  return lines;
}

async function expectSame(life: Life): Promise<string[]> {
  const lines = await throughPooler(life);
  expect(lines).toEqual(await onServer(life));
  return lines;
}

const cases: readonly (readonly [string, string, string, string])[] = [
  ['client_encoding', 'UTF8', 'LATIN1', "select octet_length(convert_to('é', 'UTF8'))"],
  ['datestyle', 'ISO, DMY', 'ISO, MDY', "select to_char('01/02/2020'::date, 'Month')"],
  ['timezone', 'UTC', 'Asia/Tokyo', "select extract(epoch from '2020-01-01 00:00'::timestamptz)::int"],
  ['intervalstyle', 'sql_standard', 'postgres', "select extract(epoch from interval '-1 2:00:00')::int"],
  ['standard_conforming_strings', 'off', 'on', String.raw`select length('a\\b')`],
];
test.each(cases)(
  'a statement that was prepared before a setting was changed means on every server what it meant then %s',
  async (setting, then, now, text) => {
    const lines = await expectSame({
      here: [
        query(`set ${setting} = '${then}'`),
        prepare(text),
        run(),
        query(`set ${setting} = '${now}'`),
        // Under the new setting it is another one, for this client and for all.
        prepare(text, 'new'),
        run('new'),
      ],
      there: [run(), run(), run('new'), query(`show ${setting}`)],
    });
    expect(new Set(lines.filter((line) => line.startsWith('D '))).size).toBe(3);
  },
);

const dated = "select '01/02/2020'::date - '01/01/2020'::date";
const otherwise = query("set datestyle = 'ISO, DMY'");

const places: readonly (readonly [string, (script: Script) => Script])[] = [
  ['behind something else in a pipeline', (s) => s.parse('select 7').bind().execute().bind([], 'kept')],
  ['when it is described first', (s) => s.describeStatement('kept').bind([], 'kept')],
  [
    'beside a portal and a statement of the client’s own',
    (s) => s.parse('select 7').bind().bind([], 'kept', 'p').execute('p').execute().bind(),
  ],
];
test.each(places)(
  'a statement that was prepared before a setting was changed means on every server what it meant then %s',
  async (_, script) => {
    await expectSame({
      here: [prepare(dated), otherwise],
      there: [step((s) => script(s).execute().sync()), run(), query('show datestyle')],
    });
  },
);

test('a statement that was prepared before a setting was changed means on every server what it meant then in a transaction, where a setting of the transaction’s own stays what it is', async () => {
  await expectSame({
    here: [prepare(dated), otherwise],
    there: [
      query('begin'),
      query("set local datestyle = 'German'"),
      query("set intervalstyle = 'iso_8601'"),
      run(),
      query('show datestyle'),
      query('show intervalstyle'),
      query('commit'),
      query('show datestyle'),
      query('show intervalstyle'),
      run(),
    ],
  });
});

test('a statement that was prepared before a setting was changed means on every server what it meant then when the search path was changed, too, which makes PostgreSQL read values again', async () => {
  await expectSame({
    here: [
      prepare(dated),
      prepare("select octet_length(convert_to('é', 'UTF8'))", 'text'),
      otherwise,
      query("set client_encoding = 'LATIN1'"),
      query('set search_path = pg_catalog'),
    ],
    there: [run(), run('text'), run(), run('text')],
  });
});

test('a statement that was prepared before a setting was changed means on every server what it meant then, also when the client has taken another role, and on a third server', async () => {
  const changer = await pooler.connect();
  await changer.query('create role reader');
  await expectSame({
    here: [prepare(dated), otherwise, query('set role reader')],
    there: [run(), query("set datestyle = 'ISO, YMD'"), run(), query('select current_user')],
    elsewhere: [run(), query('show datestyle'), query('reset role'), run()],
  });
  await changer.query('drop role reader');
});

test('a statement that was prepared before a setting was changed means on every server what it meant then and what must come first in its transaction still does', async () => {
  await expectSame({
    here: [prepare('vacuum pg_catalog.pg_description'), otherwise],
    there: [run()],
  });
});

test('a statement that was prepared before a setting was changed means on every server what it meant then and what it can’t mean any more is the error that it would be', async () => {
  await expectSame({
    here: [
      query('create table short_lived (a date)'),
      prepare("select a from short_lived where a > '01/02/2020'"),
      otherwise,
      query('drop table short_lived'),
    ],
    there: [
      run(),
      run(),
      query('begin'),
      run(),
      query('select 1'),
      query('rollback'),
      query('show datestyle'),
    ],
  });
});

test('a statement that is prepared as it was read before takes the place of the one that there was', async () => {
  const texts = async (name: string): Promise<string[]> => {
    const lines = await throughPooler({
      here: [prepare(`select '01/02/2020'::date as ${name}`), query("set datestyle = 'ISO, DMY'")],
      there: [
        run(),
        query('set datestyle to default'),
        prepare(`select '01/02/2020'::date as ${name}`, 'again'),
        // The server forgets what is not used any more when it is next asked to prepare something.
        prepare('select 1', 'another'),
        query(`select count(*) from pg_prepared_statements where statement like '%as ${name}'`),
      ],
    });
    return lines.filter((line) => line.startsWith('D '));
  };
  expect(await texts('shared')).toEqual(['D 2020-01-02', 'D 1']);
});

const ways: readonly (readonly [string, (script: Script) => Script, number])[] = [
  ['in a query of its own', (s) => s.query("set datestyle = 'ISO, DMY'"), 2],
  ['in the same pipeline', (s) => s.parse("set datestyle = 'ISO, DMY'").bind().execute(), 1],
];

test.each(ways)(
  'a statement that is prepared right behind a SET, before that is answered is read so on every server: %s',
  async (way, set, turns) => {
    const text = `select '01/02/2020'::date as "${way}, moved"`;
    await expectSame({
      here: [step((s) => set(s).parse(text, 'kept').bind([], 'kept').execute().sync(), turns), run()],
      there: [run()],
      elsewhere: [run()],
    });
  },
);

test.each(ways)(
  'a statement that is prepared right behind a SET, before that is answered is not what others get who prepare the same: %s',
  async (way, set, turns) => {
    const lone = await startTestPooler(db, { pooling: { poolSize: 1 } });
    const sessions = [];
    for (let n = 0; n < 2; n++) sessions.push(await RawSession.start(lone, StartupCode.version30));
    const [first, second] = sessions as [RawSession, RawSession];
    const text = `select '01/02/2020'::date as "${way}"`;
    const prepareAndRun = (s: Script): Script => s.parse(text, 'kept').bind([], 'kept').execute().sync();
    expect(await playIn(first, [step((s) => prepareAndRun(set(s)), turns)])).toContain('D 2020-02-01');
    expect(await playIn(second, [step(prepareAndRun)])).toContain('D 2020-01-02');
    expect(await playIn(first, [run()])).toContain('D 2020-02-01');
    for (const session of sessions) session.socket.destroy();
  },
);
