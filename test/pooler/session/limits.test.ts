import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { SessionCounter } from '../../support/counting.js';
import {
  type ConfigTree,
  poolerConfig,
  startTestPooler,
  type TestPooler,
  treeFor,
} from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';

let db: TestDatabase;
let watcher: pg.Client;
beforeAll(async () => {
  db = await withDatabase();
  watcher = new pg.Client({ connectionString: db.url });
  await watcher.connect();
});
afterAll(async () => {
  await watcher.end();
  await db.drop();
});

async function fatalOf(session: RawSession): Promise<string | undefined> {
  await session.until(Backend.error).catch(() => {});
  const error = errorOf(session.received);
  await expect.poll(() => session.isClosed).toBe(true);
  return error === undefined ? undefined : `${error.severity} ${error.code}`;
}

test('a query that runs for too long is ended with 57014, on the server too', async () => {
  const pooler = await startTestPooler(db, {
    timeouts: { queryTimeout: '150ms' },
    pooling: { poolSize: 1 },
  });
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'select pg_sleep(60), 21');
  session.send();
  expect(await fatalOf(session)).toBe('FATAL 57014');
  const next = await pooler.connect();
  expect((await next.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  const { rows } = await watcher.query(
    "select count(*)::int as n from pg_stat_activity where query like '%(60), 21' and state = 'active'",
  );
  expect(rows).toEqual([{ n: 0 }]);
});

test('a client that does nothing in a transaction is ended with 25P03, and its transaction is rolled back', async () => {
  const pooler = await startTestPooler(db, {
    timeouts: { idleTransactionTimeout: '150ms' },
    pooling: { poolSize: 1 },
  });
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'begin; create table never (a int)'));
  expect(await fatalOf(session)).toBe('FATAL 25P03');
  const next = await pooler.connect();
  await expect(next.query('select * from never')).rejects.toMatchObject({ code: '42P01' });
});

test.each([
  ['idleTransactionTimeout', '25P03'],
  ['transactionTimeout', '25P04'],
])('%s counts from a BEGIN on that no server has heard of, and not from before', async (timeout, code) => {
  const pooler = await startTestPooler(db, { timeouts: { [timeout]: '800ms' } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'select 1'));
  // A client that begins a transaction later is too late already.
  const late = await RawSession.start(pooler, StartupCode.version30);
  await late.ask((writer) => writeQuery(writer, 'begin; select 1'));
  expect(await fatalOf(late)).toBe(`FATAL ${code}`);
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'begin')))).toBe('CZ');
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'commit')))).toBe('CZ');
  await session.ask((writer) => writeQuery(writer, 'begin'));
  expect(await fatalOf(session)).toBe(`FATAL ${code}`);
});

test('a client that does nothing at all is ended with 57P05', async () => {
  const pooler = await startTestPooler(db, { timeouts: { clientIdleTimeout: '150ms' } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'select 1'));
  expect(await fatalOf(session)).toBe('FATAL 57P05');
});

test('a client that has a server and does not read is ended, and its server is free', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1 },
    timeouts: { clientWriteTimeout: '300ms' },
  });
  const stuck = await RawSession.start(pooler, StartupCode.version30);
  stuck.socket.pause();
  writeQuery(stuck.writer, "select repeat('x', 1000) from generate_series(1, 100000)");
  stuck.send();
  await expect.poll(() => pooler.pooler.stats().pools[0]?.inUse).toBe(1);
  const other = await pooler.connect();
  expect((await other.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  stuck.socket.destroy();
});

test('a transaction that takes too long is ended with 25P04, however busy it is', async () => {
  const pooler = await startTestPooler(db, { timeouts: { transactionTimeout: '200ms' } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'begin; select 1'));
  let isBusy = true;
  void (async () => {
    while (isBusy)
      await session
        .ask((writer) => writeQuery(writer, 'select pg_sleep(0.01)'))
        .catch(() => (isBusy = false));
  })();
  await expect.poll(() => session.isClosed, { timeout: 5_000 }).toBe(true);
  isBusy = false;
  expect(errorOf(session.received)).toMatchObject({ severity: 'FATAL', code: '25P04' });
});

test('timeouts can be those of one user', async () => {
  const pooler = await startTestPooler(db, { users: { [db.user]: { clientIdleTimeout: '150ms' } } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  expect(await fatalOf(session)).toBe('FATAL 57P05');
});

test('how long a client waits and idles is its own, also where it comes to the pool of another user', async () => {
  const { host, port, user, password, database } = db;
  const databases = { [database]: { host, port, user, password } };
  const users = { hasty: { clientIdleTimeout: '1s', queryWaitTimeout: '50ms' } };
  const pooler = await startTestPooler(db, { databases, users, pooling: { poolSize: 1 } });
  const patient = await pooler.connect({ user: 'patient' });
  await patient.query('begin');
  await patient.query('select 1');
  const hasty = await pooler.connect({ user: 'hasty' });
  await expect(hasty.query('select 1')).rejects.toMatchObject({ code: '53300' });
  const message = new Promise<string>((resolve) => hasty.on('error', (error) => resolve(error.message)));
  expect(await message).toContain('client_idle_timeout');
  await patient.query('commit');
});

test('a client that comes to the pool of another user has its own new limits after a reload', async () => {
  const { host, port, user, password, database } = db;
  const databases = { [database]: { host, port, user, password } };
  const tree = (queryWaitTimeout: string): ConfigTree => ({
    databases,
    users: { hasty: { queryWaitTimeout } },
    pooling: { poolSize: 1 },
  });
  const pooler = await startTestPooler(db, tree('1h'));
  const patient = await pooler.connect({ user: 'patient' });
  await patient.query('begin');
  await patient.query('select 1');
  const hasty = await pooler.connect({ user: 'hasty' });
  await pooler.pooler.reload(poolerConfig(treeFor(db, { ...tree('50ms'), listen: { port: pooler.port } })));
  await expect(hasty.query('select 1')).rejects.toMatchObject({ code: '53300' });
  await patient.query('commit');
});

test('a client that waits for too long gets an error with the numbers, and stays', async () => {
  const pooling = { poolSize: 1 };
  const pooler = await startTestPooler(db, { pooling });
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const session = await RawSession.start(pooler, StartupCode.version30);
  // From here on: until then a connection is opened, which may take its time.
  const timeouts = { queryWaitTimeout: '150ms' };
  await pooler.pooler.reload(poolerConfig(treeFor(db, { pooling, timeouts, listen: { port: pooler.port } })));
  const answer = await session.ask((writer) => writeQuery(writer, 'select 2'));
  expect(typesOf(answer)).toBe('EZ');
  expect(errorOf(answer)).toMatchObject({ severity: 'ERROR', code: '53300' });
  expect(errorOf(answer)?.message).toMatch(/limit 1: 1 in use/);
  await holder.query('commit');
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'select 3')))).toBe('TDCZ');
  session.socket.destroy();
});

test('a client that waits gets a notice', async () => {
  const pooler = await startTestPooler(db, {
    timeouts: { queryWaitNotify: '100ms' },
    pooling: { poolSize: 1 },
  });
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'select 2');
  session.send();
  const [notice] = await session.until(Backend.notice);
  expect(notice?.bytes.toString()).toMatch(
    /waiting for a server connection.*1 of 1 are in use, 1 clients wait/,
  );
  await holder.query('commit');
  expect(typesOf(await session.until(Backend.readyForQuery))).toBe('TDCZ');
  session.socket.destroy();
});

test('a server connection is replaced when its life is over, and no client notices', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1, serverLifetime: '200ms', serverLifetimeJitter: 0 },
  });
  const client = await pooler.connect();
  const pids = new Set<number>();
  const until = Date.now() + 1_000;
  while (Date.now() < until) pids.add((await client.query('select pg_backend_pid() as pid')).rows[0].pid);
  expect(pids.size).toBeGreaterThan(1);
});

/** The most sessions that the server had at any moment of it, and what it led to. */
async function mostWhile(act: () => Promise<unknown>): Promise<number> {
  await using counter = await SessionCounter.open(db.url.replace(/[^/]+$/, 'postgres'));
  let most = 0;
  let isOver = false;
  const counting = (async () => {
    // The watcher's own session is one of them.
    while (!isOver) most = Math.max(most, (await counter.count({ database: db.database })) - 1);
  })();
  await act().finally(() => {
    isOver = true;
  });
  await counting;
  return most;
}

async function storm(connect: () => Promise<pg.Client>, clients: number): Promise<void> {
  const all = await Promise.all(Array.from({ length: clients }, connect));
  await Promise.all(
    all.map(async (client) => {
      for (let n = 0; n < 10; n++) {
        await client.query('begin');
        await client.query('select pg_sleep(0.002)');
        await client.query(n % 3 === 0 ? 'rollback' : 'commit');
      }
    }),
  );
  for (const client of all.slice(0, clients / 2))
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  await Promise.all(all.slice(clients / 2).map((client) => client.query('select pg_sleep(0.01)')));
}

test('a pool never has more server connections than its size', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 3 } });
  expect(await mostWhile(() => storm(() => pooler.connect(), 24))).toBeLessThanOrEqual(3);
  expect(pooler.pooler.stats().pools[0]?.peak).toBeLessThanOrEqual(3);
});

test('all pools of a database together never have more than that allows, and each is served', async () => {
  await watcher.query("create role second login password 'second'");
  const second = { user: 'second', password: 'second' };
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 5 },
    limits: { maxDbConnections: 4 },
    databases: { [db.database]: { host: db.host, port: db.port } },
    users: { [db.user]: { password: db.password }, second: { password: 'second' } },
  });
  const most = await mostWhile(() =>
    Promise.all([storm(() => pooler.connect(), 10), storm(() => pooler.connect(second), 10)]),
  );
  expect(most).toBeLessThanOrEqual(4);
  expect(most).toBeGreaterThan(1);
  await watcher.query('drop role second');
});

test('idle connections of one user are closed when another needs the place', async () => {
  await watcher.query("create role third login password 'third'");
  const pooler = await startTestPooler(db, {
    limits: { maxServerConnections: 1 },
    databases: { [db.database]: { host: db.host, port: db.port } },
    users: { [db.user]: { password: db.password }, third: { password: 'third' } },
  });
  const first = await pooler.connect();
  await first.query('select 1');
  const other = await pooler.connect({ user: 'third', password: 'third' });
  expect((await other.query('select current_user as who')).rows).toEqual([{ who: 'third' }]);
  expect((await first.query('select current_user as who')).rows).toEqual([{ who: db.user }]);
  await watcher.query('drop role third');
});

test('the reserve is opened for clients that wait for long, and closed again', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1, reservePoolSize: 1, reservePoolTimeout: '100ms' },
  });
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const other = await pooler.connect();
  expect((await other.query('select 2 as two')).rows).toEqual([{ two: 2 }]);
  expect(pooler.pooler.stats().pools[0]?.peak).toBe(2);
  await holder.query('commit');
  await expect.poll(() => pooler.pooler.stats().pools[0]?.live, { timeout: 5_000 }).toBe(1);
});

const liveOf = ({ pooler }: TestPooler): Record<string, number> =>
  Object.fromEntries(pooler.stats().pools.map(({ database, live }) => [database, live]));

test('a pool is kept at its minimum while it has a client, and no longer', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 4, minPoolSize: 2, serverIdleTimeout: '50ms' },
  });
  const client = await pooler.connect();
  await client.query('select 1');
  await expect.poll(() => liveOf(pooler), { timeout: 10_000 }).toEqual({ [db.database]: 2 });
  // The other one is idle far beyond the timeout, and stays.
  await client.query('select pg_sleep(0.5)');
  expect(liveOf(pooler)).toEqual({ [db.database]: 2 });
  await client.end();
  await expect.poll(() => liveOf(pooler), { timeout: 10_000 }).toEqual({ [db.database]: 0 });
});

test('a pool is kept at its minimum before a client comes and after the last is gone, where the configuration names its user', async () => {
  const { host, port, user, password, database } = db;
  const pooler = await startTestPooler(db, {
    databases: {
      [database]: { host, port, user, password, minPoolSize: 2 },
      // Nobody knows what databases there will be, or who will come.
      '*': { host, port, user, password, minPoolSize: 1 },
      other: { host, port, dbname: database, password, minPoolSize: 1 },
    },
    pooling: { poolSize: 4, serverIdleTimeout: '50ms' },
  });
  await expect.poll(() => liveOf(pooler), { timeout: 10_000 }).toEqual({ [database]: 2 });
  const clients = await Promise.all([
    pooler.connect({ user: 'anybody' }),
    pooler.connect({ database: 'other' }),
  ]);
  const [rows] = await Promise.all(clients.map((client) => client.query('select current_user as name')));
  expect(rows?.rows).toEqual([{ name: user }]);
  await Promise.all(clients.map((client) => client.end()));
  await expect.poll(() => liveOf(pooler), { timeout: 10_000 }).toEqual({ [database]: 2, other: 0 });
});

test('a pool is not kept at its minimum while its database is disabled', async () => {
  const { host, port, user, password, database } = db;
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [user] },
    databases: {
      [database]: { host, port, user, password },
      other: { host, port, dbname: database, user, password },
    },
    pooling: { poolSize: 4 },
  });
  const admin = await pooler.connect({ database: 'headgate' });
  await admin.query(`DISABLE ${database}`);
  await admin.query('SET min_pool_size = 1');
  await expect.poll(() => liveOf(pooler), { timeout: 10_000 }).toEqual({ other: 1 });
  await admin.query(`ENABLE ${database}`);
  await expect.poll(() => liveOf(pooler), { timeout: 10_000 }).toEqual({ other: 1, [database]: 1 });
});

test('a message that is too long ends the connection with 08P01', async () => {
  const pooler = await startTestPooler(db, { limits: { maxPacketSize: 2_000 } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, `select '${'x'.repeat(3_000)}'`);
  session.send();
  expect(await fatalOf(session)).toBe('FATAL 08P01');
});

test.each([
  ['that comes alone', "select 'next'", true],
  ['that comes before the server has asked for data', "select 'next'", false],
  ['that would wait for an answer', 'deallocate something', false],
])(
  'a query in the middle of COPY data, %s, ends the connection, as the server does',
  async (_name, text, waits) => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
    const create = new pg.Client({ connectionString: db.url });
    await create.connect();
    await create.query('create table if not exists unfinished (n int)');
    await create.end();
    for (const place of [db, pooler]) {
      const session = await RawSession.start(place, StartupCode.version30);
      writeQuery(session.writer, 'copy unfinished from stdin');
      session.send();
      if (waits) await session.until(Backend.copyInResponse);
      writeQuery(session.writer, text);
      session.send();
      await expect.poll(() => session.isClosed).toBe(true);
      expect(errorOf(session.received.slice(-1))).toMatchObject({ severity: 'FATAL', code: '08P01' });
    }
    const next = await pooler.connect();
    expect((await next.query('select count(*)::int as n from unfinished')).rows).toEqual([{ n: 0 }]);
  },
);

test('an unknown type of message ends the connection with 08P01', async () => {
  const pooler = await startTestPooler(db);
  const session = await RawSession.start(pooler, StartupCode.version30);
  session.writer.append(Buffer.from([0x7a, 0, 0, 0, 4]));
  session.send();
  expect(await fatalOf(session)).toBe('FATAL 08P01');
});

test('with pool_mode statement, a transaction of several statements is refused with 0A000', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolMode: 'statement', poolSize: 1 } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'begin; select 1; commit')))).toBe(
    'CTDCCZ',
  );
  writeQuery(session.writer, 'begin');
  session.send();
  expect(await fatalOf(session)).toBe('FATAL 0A000');
  expect((await (await pooler.connect()).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('with pool_mode session, a client keeps its server until it leaves, and leaves nothing behind', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolMode: 'session', poolSize: 1 } });
  const client = await pooler.connect();
  await client.query("set work_mem = '7MB'; create temp table mine (a int); listen x");
  await client.query({ name: 'stmt', text: 'select 1' });
  const { rows: before } = await client.query(
    "select pg_backend_pid() as pid, current_setting('work_mem') as mem",
  );
  expect(before[0].mem).toBe('7MB');
  const other = await pooler.connect();
  const answer = other.query(
    "select pg_backend_pid() as pid, current_setting('work_mem') as mem, to_regclass('mine') as mine",
  );
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await client.end();
  const { rows } = await answer;
  expect(rows[0].pid).toBe(before[0].pid);
  expect(rows[0].mem).not.toBe('7MB');
  expect(rows[0].mine).toBeNull();
  expect((await other.query({ name: 'stmt', text: 'select 2 as two' })).rows).toEqual([{ two: 2 }]);
});

test('a database and a user can have a mode of their own', async () => {
  const entry = { host: db.host, port: db.port, password: db.password };
  const pooler = await startTestPooler(db, {
    databases: {
      [db.database]: { ...entry, poolMode: 'session' },
      other: { ...entry, dbname: db.database },
    },
  });
  const sticky = await pooler.connect();
  await sticky.query('select 1');
  const loose = await pooler.connect({ database: 'other' });
  await loose.query('select 1');
  const [first, second] = pooler.pooler.stats().pools;
  expect([first?.inUse, second?.inUse]).toEqual([1, 0]);
});

test('the reset query can be run after every transaction', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1, serverResetQueryAlways: true } });
  const client = await pooler.connect();
  await client.query('create sequence counted');
  await client.query("select nextval('counted')");
  await expect(client.query("select currval('counted')")).rejects.toMatchObject({ code: '55000' });
  await client.query('drop sequence counted');
});

test('simple queries can be refused', async () => {
  const pooler = await startTestPooler(db, { pooling: { disableSimpleQuery: true } });
  const client = await pooler.connect();
  expect((await client.query('select $1::int as n', [1])).rows).toEqual([{ n: 1 }]);
  await expect(client.query('select 1')).rejects.toMatchObject({ severity: 'FATAL', code: '0A000' });
});
