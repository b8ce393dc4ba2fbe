import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { preparedFrom } from '../../../src/pooler/servers/repeated-statement.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { playIn, type Script, type Step, step } from '../raw/trace.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

function sharing(pooling: ConfigTree[string] = {}): Promise<TestPooler> {
  return startTestPooler(db, {
    pooling: { poolSize: 1, prepareUnnamed: true, ...pooling },
    admin: { adminUsers: ['boss'] },
  });
}

/** Often enough to be prepared, and once more. */
async function ask(
  client: pg.Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult> {
  for (let time = 0; time < preparedFrom; time++) await client.query(text, [...values]);
  return client.query(text, [...values]);
}

async function prepared(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query('select statement from pg_prepared_statements order by prepare_time');
  return rows.map(({ statement }) => statement);
}

test('statements without a name that come again and again are prepared once for all clients, and clients get what they would have got', async () => {
  const pooler = await sharing();
  const [first, second] = await Promise.all([pooler.connect(), pooler.connect()]);
  const text = 'select $1::int + 1 as sum';
  for (let n = 0; n < 20; n++) {
    expect((await first.query(text, [n])).rows).toEqual([{ sum: n + 1 }]);
    expect((await second.query(text, [-n])).rows).toEqual([{ sum: 1 - n }]);
  }
  expect(await prepared(first)).toEqual([text]);
  const boss = await pooler.connect({ database: 'headgate', user: 'boss' });
  const { rows } = await boss.query('show stats');
  const { total_client_parse_count: asked, total_server_parse_count: done } = rows.find(
    (row) => row.database === db.database,
  );
  expect(Number(asked)).toBe(40);
  // The first ones as they came, and then one more.
  expect(Number(done)).toBe(preparedFrom);
});

test('statements without a name that come again and again are left as they are unless that is wanted', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const client = await pooler.connect();
  await ask(client, 'select $1::int', [1]);
  expect(await prepared(client)).toEqual([]);
});

test('statements without a name that come again and again are not prepared if they mean something else each time', async () => {
  const pooler = await sharing();
  const client = await pooler.connect();
  const moments = new Set<string>();
  for (const now of ['now', 'now()'])
    for (let n = 0; n < 10; n++) {
      const text = `select '${now}'::timestamptz::text as moment, $1::int as n`;
      moments.add((await client.query(text, [n])).rows[0].moment);
    }
  expect(moments.size).toBe(20);
  expect(await prepared(client)).toEqual([]);
});

test('statements without a name that come again and again are no different in a transaction, where they are not prepared', async () => {
  const pooler = await sharing({ poolSize: 2 });
  const client = await pooler.connect();
  await client.query('create table moved (n int)');
  await ask(client, 'select * from moved where n = $1', [1]);
  await client.query('begin');
  await client.query('alter table moved add m int');
  expect((await ask(client, 'select * from moved where n = $1', [1])).fields).toHaveLength(2);
  await client.query('rollback');
  expect((await client.query('select * from moved where n = $1', [1])).fields).toHaveLength(1);
  await client.query('drop table moved');
});

test('statements without a name that come again and again are sent as they came when a table has changed, and no client notices', async () => {
  const pooler = await sharing();
  const [first, second] = await Promise.all([pooler.connect(), pooler.connect()]);
  const text = 'select * from changing where a = $1';
  await first.query('create table changing (a int)');
  for (const type of ['int', 'text', 'date']) {
    expect((await ask(first, text, [1])).rows).toEqual([]);
    await second.query(`alter table changing add column ${type}_column ${type}`);
    const { fields } = await first.query(text, [1]);
    expect(fields.at(-1)?.name).toBe(`${type}_column`);
    expect((await second.query(text, [1])).fields).toEqual(fields);
  }
  await first.query('drop table changing');
  await expect(first.query(text, [1])).rejects.toMatchObject({ code: '42P01' });
  await first.query('create table changing (a bigint)');
  expect((await first.query(text, [1])).fields).toHaveLength(1);
  await first.query('drop table changing');
});

test('statements without a name that come again and again are asked as they came when something hidden has thrown away what was prepared', async () => {
  const pooler = await sharing();
  const [first, second] = await Promise.all([pooler.connect(), pooler.connect()]);
  const text = 'select $1::int + 1 as sum';
  await second.query(
    "create function throw_away() returns void language plpgsql as $$ begin execute 'deallocate all'; end $$",
  );
  await ask(first, text, [1]);
  await second.query('select throw_away()');
  expect(await prepared(first)).toEqual([]);
  expect((await first.query(text, [2])).rows).toEqual([{ sum: 3 }]);
  expect((await ask(second, text, [3])).rows).toEqual([{ sum: 4 }]);
  expect(await prepared(first)).toEqual([text]);
});

test('statements without a name that come again and again take their parameters for what they are after a change that went through the pool', async () => {
  const pooler = await sharing();
  const [first, second] = await Promise.all([pooler.connect(), pooler.connect()]);
  const text = 'select count(*)::int as n from dated where at = $1';
  await first.query('create table dated (at date)');
  await ask(first, text, ['2026-01-01']);
  // In a transaction, so that it is seen when that is over.
  await second.query('begin');
  await second.query('alter table dated alter at type timestamp');
  await second.query("insert into dated values ('2026-01-01 12:00')");
  await second.query('commit');
  // As a date it would be the beginning of that day, without an error.
  expect((await first.query(text, ['2026-01-01 12:00'])).rows).toEqual([{ n: 1 }]);
  await first.query('drop table dated');
});

test('statements without a name that come again and again are asked as they came before what the client has sent meanwhile', async () => {
  const pooler = await sharing();
  const [first, boss] = await Promise.all([
    pooler.connect(),
    pooler.connect({ database: 'headgate', user: 'boss' }),
  ]);
  const text = 'select * from locked where a = $1';
  await first.query('create table locked (a int)');
  await ask(first, text, [1]);
  const direct = new pg.Client(db.url);
  await direct.connect();
  await direct.query('begin; alter table locked add b int');
  const session = await RawSession.start(pooler, StartupCode.version30);
  // To all three.
  const answers = playIn(session, [
    step((script) => script.parse(text).bind(['1']).describePortal().execute().sync(), 3),
  ]);
  const isBlocked =
    "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
  await expect.poll(async () => (await direct.query(isBlocked)).rows[0].n).toBe(1);
  const received = async (): Promise<number> => {
    const { rows } = await boss.query('show stats');
    return Number(rows.find((row) => row.database === db.database).total_received);
  };
  const two = step((script) => turn(script.query('select 2 as two'), statements[6])).send.writer;
  const before = await received();
  session.socket.write(Buffer.from(two.buffer.subarray(0, two.length)));
  await expect.poll(received).toBe(before + two.length);
  await direct.query('commit');
  expect(await answers).toEqual([
    ...['1 ', '2 ', 'T a:23 b:23', 'C SELECT 0', 'Z I'],
    ...['T two:23', 'D 2', 'C SELECT 1', 'Z I'],
    ...['1 ', '2 ', 'T ?column?:25 text:25', 'D text|x', 'C SELECT 1', 'Z I', '--'],
  ]);
  session.socket.destroy();
  await direct.query('drop table locked');
  await direct.end();
});

test('statements without a name that come again and again leave no more on a server than is allowed', async () => {
  const pooler = await sharing({ maxPreparedStatements: 3 });
  const client = await pooler.connect();
  for (let n = 0; n < 20; n++)
    expect((await ask(client, `select ${n} + $1::int as n`, [1])).rows).toEqual([{ n: n + 1 }]);
  expect((await prepared(client)).length).toBeLessThanOrEqual(3);
  expect((await client.query('select 0 + $1::int as n', [1])).rows).toEqual([{ n: 1 }]);
});

test('statements without a name that come again and again are of those settings that their client has', async () => {
  const pooler = await sharing({ poolSize: 2, serverRoundRobin: true });
  const [first, second] = await Promise.all([pooler.connect(), pooler.connect()]);
  await first.query('create schema here; create table here.thing (h int)');
  await first.query('create schema there; create table there.thing (t int)');
  await first.query('set search_path = here');
  await second.query('set search_path = there');
  for (let n = 0; n < 20; n++) {
    expect((await first.query('select * from thing where $1', [true])).fields[0]?.name).toBe('h');
    expect((await second.query('select * from thing where $1', [true])).fields[0]?.name).toBe('t');
  }
  await first.query('drop schema here cascade; drop schema there cascade');
});

const statements = [
  { text: 'select * from repeated', values: [] },
  { text: 'select * from repeated where n = $1', values: ['1'] },
  { text: 'select * from repeated where n = $1', values: ['none'] },
  { text: 'insert into repeated (n) values ($1)', values: ['2'] },
  { text: 'insert into repeated (n) values (1/$1::int)', values: ['0'] },
  { text: 'select nonsense', values: [] },
  { text: "select 'text', $1::text", values: ['x'] },
  { text: "update repeated set n = n + 1 where n > 'now'::date - 'now'::date", values: [] },
  { text: 'select * from later', values: [] },
  { text: "set timezone = 'Asia/Tokyo'", values: [] },
] as const;

function turn(script: Script, { text, values }: (typeof statements)[number]): Script {
  return script.parse(text).bind(values).describePortal().execute().sync();
}

const changes = [
  'alter table repeated add column m int',
  'alter table repeated drop column m',
  'alter table repeated alter n type bigint',
  'create table later (l int)',
  'drop table later',
  'set search_path = other',
  'reset search_path',
  'begin',
  'commit',
  'rollback',
  'discard all',
];

/** The client's next act, in words for the message of a failure. */
type Act =
  | { readonly turns: readonly (typeof statements)[number][] }
  | { readonly query: string }
  | { readonly last: 'run' | 'run with a value' | 'describe' | 'close' };

const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...statements).map((one) => ({ turns: [one] })) },
  // The next is sent before the first is answered.
  {
    weight: 2,
    arbitrary: fc.record({ turns: fc.array(fc.constantFrom(...statements), { minLength: 2, maxLength: 4 }) }),
  },
  { weight: 3, arbitrary: fc.record({ query: fc.constantFrom(...changes) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      last: fc.constantFrom<('run' | 'run with a value' | 'describe' | 'close')[]>(
        'run',
        'run',
        'run with a value',
        'describe',
        'close',
      ),
    }),
  },
);

function stepOf(act: Act): Step {
  if ('turns' in act) return step((script) => act.turns.reduce(turn, script), act.turns.length);
  if ('query' in act) return step((script) => script.query(act.query));
  switch (act.last) {
    case 'run':
      return step((script) => script.bind().describePortal().execute().sync());
    case 'run with a value':
      return step((script) => script.bind(['1']).execute().sync());
    case 'describe':
      return step((script) => script.describeStatement().sync());
    case 'close':
      return step((script) => script.closeStatement().sync());
  }
}

const fresh = step((script) =>
  script.query(
    'rollback; drop schema if exists other cascade; drop table if exists repeated, later; create schema other;' +
      'create table repeated (n int); create table other.repeated (n text, o int); insert into repeated values (1)',
  ),
);

/** Each message that comes, from both. */
async function played(place: TestDatabase, life: readonly Step[], first: RawSession): Promise<string[]> {
  await playIn(first, [fresh]);
  const session = await RawSession.start(place, StartupCode.version30);
  try {
    return await playIn(session, [
      ...life,
      step((script) => script.query('rollback').query('discard all'), 2),
    ]);
  } finally {
    session.socket.destroy();
  }
}

test.each([
  ['on one server', { poolSize: 1 }],
  ['on a server that is another one each time', { poolSize: 3, serverRoundRobin: true }],
  ['with hardly any prepared statement kept', { poolSize: 2, maxPreparedStatements: 1 }],
])(
  'whatever comes between them, clients are answered as by the server itself, %s',
  async (_name, pooling) => {
    const pooler = await sharing(pooling);
    const direct = await RawSession.start(db, StartupCode.version30);
    const property = fc.asyncProperty(fc.array(acts, { minLength: 5, maxLength: 40 }), async (lived) => {
      const life = lived.map(stepOf);
      const wanted = await played(db, life, direct);
      expect(await played(pooler, life, direct)).toEqual(wanted);
    });
    await fc
      .assert(property, { numRuns: Number(process.env['HEADGATE_SEQUENCES'] ?? 40) })
      .finally(() => direct.socket.destroy());
  },
  600_000,
);
