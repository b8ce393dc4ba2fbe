// A reload that changes or removes the database of connected clients.
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { SessionCounter } from '../../support/counting.js';
import { poolerConfig, startTestPooler, type TestPooler, treeFor } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 20 };

let db: TestDatabase;
let other: TestDatabase;
beforeAll(async () => {
  [db, other] = [await withDatabase(), await withDatabase()];
  const owner = await connectTo(db);
  await owner.query("create role reload_one login superuser password 'one'");
  await owner.query("create role reload_two login superuser password 'two'");
  await owner.end();
});
afterAll(async () => {
  await other.drop();
  const owner = await connectTo(db);
  await owner.query('drop role reload_one, reload_two');
  await owner.end();
  await db.drop();
});

async function connectTo({ url }: TestDatabase): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

type Databases = Readonly<Record<string, unknown>>;

const at = ({ host, port, password, database }: TestDatabase) => ({ host, port, password, dbname: database });
const as = (user: string, password: string) => ({ ...at(db), user, password });

/** A pooler that serves these databases, which can be changed. */
async function serving(
  databases: Databases,
  pooling: object = {},
): Promise<TestPooler & { reload(next: Databases): Promise<void> }> {
  const pooler = await startTestPooler(db, { pooling: { ...pooling } });
  const reload = (next: Databases): Promise<void> =>
    pooler.pooler.reload(poolerConfig({ ...treeFor(db, { pooling: { ...pooling } }), databases: next }));
  await reload(databases);
  return { ...pooler, reload };
}

const nameOf = async (client: pg.Client): Promise<string> =>
  (await client.query('select current_database() as name')).rows[0].name;
const userOf = async (client: pg.Client): Promise<string> =>
  (await client.query('select current_user as name')).rows[0].name;
const endOf = (client: pg.Client): Promise<Error> => new Promise((resolve) => client.once('error', resolve));

test.each<readonly [string, () => Databases, () => Databases]>([
  ['gets an entry of its own beside *', () => ({ '*': at(db) }), () => ({ '*': at(db), shop: at(other) })],
  ['loses its own, so that * holds', () => ({ shop: at(db), '*': at(other) }), () => ({ '*': at(other) })],
  ['has other settings', () => ({ shop: at(db) }), () => ({ shop: at(other) })],
  ['is of *, which has other settings', () => ({ '*': at(db) }), () => ({ '*': at(other) })],
])(
  'a database is served by the server that its name now leads to when it %s',
  async (_what, before, after) => {
    const { connect, reload } = await serving(before());
    const client = await connect({ database: 'shop' });
    expect(await nameOf(client)).toBe(db.database);
    await reload(after());
    expect(await nameOf(client)).toBe(other.database);
    expect(await nameOf(await connect({ database: 'shop' }))).toBe(other.database);
  },
);

test('a database is served by the server that its name now leads to when it was away for a while and is back elsewhere', async () => {
  const { connect, reload } = await serving({ shop: at(db), more: at(db) });
  const client = await connect({ database: 'shop' });
  await client.query('begin; select 1');
  const ended = endOf(client);
  await reload({ more: at(db) });
  // Its pool is still there, for the transaction.
  await reload({ more: at(db), shop: at(other) });
  expect(await nameOf(await connect({ database: 'shop' }))).toBe(other.database);
  expect(await nameOf(client)).toBe(db.database);
  await client.query('commit');
  expect(await ended).toMatchObject({ code: '3D000' });
});

test('a database is served by the server that its name now leads to and keeps its connections when another entry says the same', async () => {
  const { connect, reload } = await serving({ '*': at(db) });
  const client = await connect({ database: 'shop' });
  const pid = async (): Promise<number> => (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
  const before = await pid();
  await reload({ '*': at(other), shop: at(db) });
  expect(await pid()).toBe(before);
});

test('a database is served by the server that its name now leads to in session mode with server_fast_close between two transactions', async () => {
  const mode = { poolMode: 'session', serverFastClose: true };
  const { connect, reload } = await serving({ shop: at(db), more: at(db) }, mode);
  const [client, untouched] = [await connect({ database: 'shop' }), await connect({ database: 'more' })];
  await client.query('begin; select 1');
  await untouched.query('select 1');
  const ended = endOf(client);
  await reload({ shop: at(other), more: at(db) });
  expect(await nameOf(client)).toBe(db.database);
  await client.query('commit');
  expect(await ended).toMatchObject({ code: '57P01' });
  expect(await nameOf(untouched)).toBe(db.database);
});

test('a database that is not there any more loses its clients, those in a transaction after that, and its connections', async () => {
  const { connect, reload, pooler } = await serving({ shop: at(db), more: at(other) });
  const [idle, busy] = [await connect({ database: 'shop' }), await connect({ database: 'shop' })];
  const untouched = await connect({ database: 'more' });
  await idle.query('select 1');
  await busy.query('begin; select 1');
  const ends = [endOf(idle), endOf(busy)];
  await reload({ more: at(other) });
  expect(await ends[0]).toMatchObject({
    severity: 'FATAL',
    code: '3D000',
    message: expect.stringContaining('"shop"'),
  });
  expect(await nameOf(busy)).toBe(db.database);
  await busy.query('commit');
  expect(await ends[1]).toMatchObject({ severity: 'FATAL', code: '3D000' });
  await expect(connect({ database: 'shop' })).rejects.toMatchObject({ code: '3D000' });
  await using counter = await SessionCounter.open(db.url.replace(/[^/]+$/, 'postgres'));
  await counter.until({ database: db.database }, (sessions) => sessions === 0);
  await vi.waitFor(
    () => expect(pooler.stats().pools.map(({ database }) => database)).toEqual(['more']),
    soon,
  );
  expect(await nameOf(untouched)).toBe(other.database);
});

test('a database that was removed loses clients that keep their server, too', async () => {
  const { connect, reload } = await serving({ shop: at(db), more: at(db) }, { poolMode: 'session' });
  const client = await connect({ database: 'shop' });
  await client.query('select 1');
  const ended = endOf(client);
  await reload({ more: at(db) });
  expect(await ended).toMatchObject({ code: '3D000' });
});

test('a database that was removed serves clients that wait for a server already, and then ends them', async () => {
  const { connect, reload, pooler } = await serving({ shop: at(db), more: at(db) }, { poolSize: 1 });
  const [holder, waiting] = [await connect({ database: 'shop' }), await connect({ database: 'shop' })];
  await holder.query('begin; select 1');
  const answer = waiting.query('select 7 as n');
  await vi.waitFor(() => expect(pooler.stats().waiting).toBe(1), soon);
  const ended = endOf(waiting);
  await reload({ more: at(db) });
  await holder.query('commit');
  expect((await answer).rows).toEqual([{ n: 7 }]);
  expect(await ended).toMatchObject({ code: '3D000' });
});

test('a database whose user at the server is another one has its clients connect again, and no connection of the old user is left', async () => {
  const { connect, reload, pooler } = await serving({ shop: as('reload_one', 'one') });
  const [idle, busy] = [await connect({ database: 'shop' }), await connect({ database: 'shop' })];
  expect(await userOf(idle)).toBe('reload_one');
  await busy.query('begin; select 1');
  const ends = [endOf(idle), endOf(busy)];
  await reload({ shop: as('reload_two', 'two') });
  expect(await ends[0]).toMatchObject({
    severity: 'FATAL',
    code: '57P01',
    hint: expect.stringContaining('Connect again'),
  });
  expect(await userOf(await connect({ database: 'shop' }))).toBe('reload_two');
  expect(await userOf(busy)).toBe('reload_one');
  await busy.query('commit');
  expect(await ends[1]).toMatchObject({ severity: 'FATAL', code: '57P01' });
  const watcher = await connectTo(db);
  const left = 'select 1 from pg_stat_activity where usename = $1';
  await vi.waitFor(async () => expect((await watcher.query(left, ['reload_one'])).rows).toEqual([]), soon);
  await watcher.end();
  await vi.waitFor(() => expect(pooler.stats().pools.map(({ user }) => user)).toEqual(['reload_two']), soon);
});

test('a database whose user at the server was changed serves clients that wait already as the former user', async () => {
  const { connect, reload, pooler } = await serving({ shop: as('reload_one', 'one') }, { poolSize: 1 });
  const [holder, waiting] = [await connect({ database: 'shop' }), await connect({ database: 'shop' })];
  await holder.query('begin; select 1');
  const answer = userOf(waiting);
  await vi.waitFor(() => expect(pooler.stats().waiting).toBe(1), soon);
  await reload({ shop: as('reload_two', 'two') });
  await holder.query('commit');
  expect(await answer).toBe('reload_one');
});

test('a database whose user at the server was changed keeps clients that log in under that very name', async () => {
  const { connect, reload } = await serving({ shop: at(db) });
  const client = await connect({ database: 'shop' });
  await client.query('select 1');
  await reload({ shop: { ...at(db), user: db.user } });
  expect(await userOf(client)).toBe(db.user);
});

test('a database whose user at the server is another one and is that of before again, serves as that one', async () => {
  const { connect, reload } = await serving({ shop: as('reload_one', 'one') });
  const client = await connect({ database: 'shop' });
  await client.query('begin; select 1');
  const ended = endOf(client);
  await reload({ shop: as('reload_two', 'two') });
  await reload({ shop: as('reload_one', 'one') });
  expect(await userOf(await connect({ database: 'shop' }))).toBe('reload_one');
  await client.query('commit');
  await ended;
  expect(await userOf(await connect({ database: 'shop' }))).toBe('reload_one');
});
