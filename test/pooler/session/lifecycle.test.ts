import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { SessionCounter } from '../../support/counting.js';
import { poolerConfig, startTestPooler, treeFor } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('a shutdown sends idle clients away with 57P01, lets transactions end, and leaves nothing on the server', async () => {
  const pooler = await startTestPooler(db);
  const idle = await RawSession.start(pooler, StartupCode.version30);
  const busy = await RawSession.start(pooler, StartupCode.version30);
  await busy.ask((writer) => writeQuery(writer, 'begin; create table done_at_the_end (a int)'));
  const over = pooler.pooler.shutdown({ deadlineMs: 20_000 });
  await idle.until(Backend.error);
  expect(errorOf(idle.received)).toMatchObject({ severity: 'FATAL', code: '57P01' });
  expect(errorOf(idle.received)?.hint).toContain('again');
  await expect(pooler.connect()).rejects.toThrow();
  expect(typesOf(await busy.ask((writer) => writeQuery(writer, 'select 1')))).toBe('TDCZ');
  writeQuery(busy.writer, 'commit');
  busy.send();
  expect(typesOf(await busy.until(Backend.error))).toBe('CZE');
  await over;
  await using counter = await SessionCounter.open(db.url);
  await counter.until({ database: db.database }, (sessions) => sessions === 0);
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await client.query('drop table done_at_the_end');
  await client.end();
});

test('a shutdown ends what is not over at the deadline', async () => {
  const pooler = await startTestPooler(db);
  const busy = await RawSession.start(pooler, StartupCode.version30);
  await busy.ask((writer) => writeQuery(writer, 'begin; create table never_done (a int)'));
  const running = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(running.writer, 'select pg_sleep(60)');
  running.send();
  await pooler.pooler.shutdown({ deadlineMs: 100 });
  for (const session of [busy, running]) {
    await expect.poll(() => session.isClosed).toBe(true);
    expect(errorOf(session.received)).toMatchObject({ severity: 'FATAL', code: '57P01' });
  }
  await using counter = await SessionCounter.open(db.url);
  await counter.until({ database: db.database }, (sessions) => sessions === 0);
});

test('a shutdown serves clients that wait already', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const waiting = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(waiting.writer, 'select 2');
  waiting.send();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  const over = pooler.pooler.shutdown({ deadlineMs: 20_000 });
  await holder.query('commit').catch(() => {});
  expect(typesOf(await waiting.until(Backend.error))).toBe('TDCZE');
  await over;
});

test('a shutdown waits for clients that keep a server in session mode, and ends those without a server', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolMode: 'session' } });
  const holder = await pooler.connect();
  await holder.query("set work_mem = '7MB'");
  const without = await RawSession.start(pooler, StartupCode.version30);
  const over = pooler.pooler.shutdown({ deadlineMs: 1_000_000 });
  await without.until(Backend.error);
  expect(errorOf(without.received)).toMatchObject({ severity: 'FATAL', code: '57P01' });
  await holder.query('begin; select 1');
  await holder.query('commit');
  expect((await holder.query('show work_mem')).rows).toEqual([{ work_mem: '7MB' }]);
  await holder.end();
  await over;
});

test('a shutdown waits for a pinned client, and ends it when it is pinned no more', async () => {
  const pooler = await startTestPooler(db);
  const pinned = await RawSession.start(pooler, StartupCode.version30);
  await pinned.ask((writer) => writeQuery(writer, 'listen news'));
  const over = pooler.pooler.shutdown({ deadlineMs: 1_000_000 });
  expect(typesOf(await pinned.ask((writer) => writeQuery(writer, 'select 1')))).toBe('TDCZ');
  writeQuery(pinned.writer, 'discard all');
  pinned.send();
  expect(typesOf(await pinned.until(Backend.error))).toBe('CZE');
  expect(errorOf(pinned.received)).toMatchObject({ severity: 'FATAL', code: '57P01' });
  await over;
});

test('a shutdown ends those at the deadline, too', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolMode: 'session' } });
  const holder = await RawSession.start(pooler, StartupCode.version30);
  await holder.ask((writer) => writeQuery(writer, 'select 1'));
  await pooler.pooler.shutdown({ deadlineMs: 100 });
  await expect.poll(() => holder.isClosed).toBe(true);
  expect(errorOf(holder.received)).toMatchObject({ severity: 'FATAL', code: '57P01' });
});

test('a shutdown ends a client that has waited in vain', async () => {
  const timeouts = { queryWaitTimeout: '1s' };
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 }, timeouts });
  const holder = await pooler.connect();
  await holder.query('begin; select 1');
  const waiting = await RawSession.start(pooler, StartupCode.version30);
  const heard = waiting.received.length;
  writeQuery(waiting.writer, 'select 2');
  waiting.send();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  const over = pooler.pooler.shutdown({ deadlineMs: 1_000_000 });
  await expect.poll(() => waiting.isClosed, { timeout: 20_000 }).toBe(true);
  expect(typesOf(waiting.received.slice(heard))).toBe('EZE');
  await holder.query('commit');
  await over;
});

test('a shutdown that is asked for twice goes by the more impatient one', async () => {
  const pooler = await startTestPooler(db);
  const busy = await RawSession.start(pooler, StartupCode.version30);
  await busy.ask((writer) => writeQuery(writer, 'begin; select 1'));
  const first = pooler.pooler.shutdown({ deadlineMs: 1_000_000 });
  await pooler.pooler.shutdown({ deadlineMs: 0 });
  await first;
  await expect.poll(() => busy.isClosed).toBe(true);
});

test('a shutdown of an unused pooler is over at once', async () => {
  const pooler = await startTestPooler(db);
  await pooler.pooler.shutdown({ deadlineMs: 0 });
  expect(pooler.pooler.addresses).toEqual([]);
});

test('a reload changes limits and timeouts for connected clients, and ends none', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const clients = await Promise.all([pooler.connect(), pooler.connect(), pooler.connect()]);
  const tree = treeFor(db, { pooling: { poolSize: 3 }, timeouts: { clientIdleTimeout: '1h' } });
  await pooler.pooler.reload(poolerConfig(tree));
  await Promise.all(clients.map((client) => client.query('select pg_sleep(0.1)')));
  expect(pooler.pooler.stats().pools[0]?.limit).toBe(3);
  expect(pooler.pooler.stats().pools[0]?.live).toBe(3);
  await pooler.pooler.reload(poolerConfig(treeFor(db, { pooling: { poolSize: 1 } })));
  await expect.poll(() => pooler.pooler.stats().pools[0]?.live).toBe(1);
  expect((await clients[0]?.query('select 1 as one'))?.rows).toEqual([{ one: 1 }]);
});

test('a reload replaces server connections when the server is another one, and never has too many meanwhile', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 2 } });
  const client = await pooler.connect();
  const holder = await pooler.connect();
  await holder.query('begin');
  const { rows: held } = await holder.query('select pg_backend_pid() as pid');
  const { rows: before } = await client.query(
    "select pg_backend_pid() as pid, current_setting('timezone') as zone",
  );
  const entry = { host: db.host, port: db.port, password: db.password, timezone: 'Asia/Tokyo' };
  await using counter = await SessionCounter.open(db.url.replace(/[^/]+$/, 'postgres'));
  await pooler.pooler.reload(
    poolerConfig(treeFor(db, { pooling: { poolSize: 2 }, databases: { [db.database]: entry } })),
  );
  // The one in a transaction stays until that is over.
  expect((await holder.query('select pg_backend_pid() as pid')).rows).toEqual(held);
  const { rows: after } = await client.query(
    "select pg_backend_pid() as pid, current_setting('timezone') as zone",
  );
  expect(after[0].pid).not.toBe(before[0].pid);
  expect(after[0].zone).toBe('Asia/Tokyo');
  expect(await counter.count({ database: db.database })).toBeLessThanOrEqual(2);
  await holder.query('commit');
  expect((await holder.query('select pg_backend_pid() as pid')).rows[0].pid).not.toBe(held[0].pid);
});

test('a reload serves another database from then on', async () => {
  const pooler = await startTestPooler(db);
  await expect(pooler.connect({ database: 'later' })).rejects.toMatchObject({ code: '3D000' });
  const entry = { host: db.host, port: db.port, password: db.password };
  const databases = { [db.database]: entry, later: { ...entry, dbname: db.database } };
  await pooler.pooler.reload(poolerConfig(treeFor(db, { databases })));
  const client = await pooler.connect({ database: 'later' });
  expect((await client.query('select current_database() as name')).rows).toEqual([{ name: db.database }]);
});

test('a reload with files that can not be used changes nothing', async () => {
  const pooler = await startTestPooler(db);
  const broken = poolerConfig(treeFor(db, { auth: { type: 'md5', file: 'users.txt' } }), {
    'users.txt': 'nonsense',
  });
  await expect(pooler.pooler.reload(broken)).rejects.toThrow(/line 1/);
  expect((await (await pooler.connect()).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

const admin = { admin: { adminUsers: ['boss'], statsUsers: ['watcher'] } };

test('the console is open to the users that are named for it, and to no others', async () => {
  const pooler = await startTestPooler(db, admin);
  for (const database of ['headgate', 'pgbouncer']) {
    const boss = await pooler.connect({ database, user: 'boss' });
    const { rows } = await boss.query('show pools');
    expect(rows).toEqual([]);
    await expect(pooler.connect({ database, user: 'someone' })).rejects.toMatchObject({ code: '28000' });
  }
  const watcher = await pooler.connect({ database: 'headgate', user: 'watcher' });
  await expect(watcher.query('pause')).rejects.toMatchObject({ code: '42501' });
});

test('the console shows what there is', async () => {
  const pooler = await startTestPooler(db, admin);
  const client = await pooler.connect({ application_name: 'shown' });
  await client.query('begin');
  await client.query('select 1');
  const boss = await pooler.connect({ database: 'headgate', user: 'boss' });
  expect((await boss.query('show pools')).rows).toMatchObject([
    { database: db.database, user: db.user, cl_active: 1, sv_active: 1, pool_mode: 'transaction' },
  ]);
  const { rows: clients } = await boss.query('show clients');
  expect(clients.map(({ database, application_name }) => [database, application_name])).toContainEqual([
    db.database,
    'shown',
  ]);
  expect((await boss.query('show servers')).rows).toMatchObject([
    { state: 'active', application_name: 'shown' },
  ]);
  expect((await boss.query('show databases')).rows).toMatchObject([
    { name: db.database, current_connections: 1 },
  ]);
  expect((await boss.query('show stats')).rows[0].total_query_count).toBe('1');
  await client.query('commit');
});

test('the console pauses and resumes', async () => {
  const pooler = await startTestPooler(db, admin);
  const client = await pooler.connect();
  await client.query('select 1');
  const boss = await pooler.connect({ database: 'headgate', user: 'boss' });
  await boss.query('pause');
  await using counter = await SessionCounter.open(db.url.replace(/[^/]+$/, 'postgres'));
  await counter.until({ database: db.database }, (sessions) => sessions === 0);
  const answer = client.query('select 2 as two');
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await boss.query('resume');
  expect((await answer).rows).toEqual([{ two: 2 }]);
});

test('the console replaces connections, kills clients, disables a database, and shuts down', async () => {
  const pooler = await startTestPooler(db, admin);
  const client = await pooler.connect();
  const pid = async (): Promise<number> => (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
  const before = await pid();
  const boss = await pooler.connect({ database: 'headgate', user: 'boss' });
  await boss.query('reconnect');
  await boss.query('wait_close');
  expect(await pid()).not.toBe(before);
  await boss.query(`disable ${db.database}`);
  await expect(pooler.connect()).rejects.toMatchObject({ code: '57P03' });
  await boss.query(`enable ${db.database}`);
  const { rows } = await boss.query('show clients');
  const { id } = rows.find(({ database }) => database === db.database);
  await boss.query(`kill_client ${id}`);
  await expect(client.query('select 1')).rejects.toThrow();
  void boss.query('shutdown').catch(() => {});
  await pooler.pooler.stopped;
});
