// Limits, refusals and ends that hold where PgBouncer has them.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { errorOf, RawSession } from '../../wire/server/raw-session.js';
import { greet, startupPacket } from '../raw/greeting.js';

/** A server of its own: roles are the server's. */
let db: TestDatabase;
let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
  const admin = new pg.Client({ connectionString: db.url });
  await admin.connect();
  await admin.query("create role asker login superuser password 'ask'");
  await admin.query("create role looked_up login password 'found'");
  await admin.end();
});
afterAll(() => server.stop());

function packet(more: Readonly<Record<string, string>> = {}): Buffer {
  return startupPacket(StartupCode.version30, { user: db.user, database: db.database, ...more });
}

async function ends(session: RawSession): Promise<string> {
  const { severity, code } = errorOf(await session.lastWords()) ?? {};
  return `${severity} ${code}`;
}

/** A client in a transaction, on the only server. */
async function holder(pooler: TestPooler): Promise<pg.Client> {
  const client = await pooler.connect();
  await client.query('begin');
  await client.query('select 1');
  return client;
}

/** A client that waits for a server. */
async function waiter(pooler: TestPooler): Promise<RawSession> {
  const session = await RawSession.start(pooler, StartupCode.version30);
  const before = pooler.pooler.stats().waiting;
  writeQuery(session.writer, 'select 1');
  session.send();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(before + 1);
  return session;
}

test('query_timeout ends a client that waits for a server for longer, with 57014', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1 },
    timeouts: { queryTimeout: '300ms', queryWaitTimeout: '60s' },
  });
  await holder(pooler);
  const session = await waiter(pooler);
  expect(await ends(session)).toBe('FATAL 57014');
  expect(pooler.pooler.stats().waiting).toBe(0);
});

test('query_timeout counts the wait and the query together', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1 },
    timeouts: { queryTimeout: '1500ms', queryWaitTimeout: '60s' },
  });
  const first = await holder(pooler);
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'select pg_sleep(1.2)');
  session.send();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await first.query('select pg_sleep(1)');
  await first.query('commit');
  expect(await ends(session)).toBe('FATAL 57014');
});

test('query_timeout lets a client wait that has none', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1 },
    timeouts: { queryTimeout: 0, queryWaitNotify: '100ms' },
  });
  const first = await holder(pooler);
  const session = await waiter(pooler);
  // Its wait has been longer than another time limit.
  await session.until(Backend.notice);
  await first.query('commit');
  expect((await session.until(Backend.readyForQuery)).length).toBeGreaterThan(0);
  session.socket.destroy();
});

describe('limits of clients on the console', () => {
  const admin = { adminUsers: ['boss'], statsUsers: ['watcher'] };
  const atConsole = (user: string) => packet({ user, database: 'pgbouncer' });
  const connectTo = (pooler: TestPooler, user: string, database = 'pgbouncer') =>
    pooler.connect({ user, database });

  test.each([
    ['max_user_client_connections', { limits: { maxUserClientConnections: 1 } }],
    ['max_db_client_connections', { limits: { maxDbClientConnections: 1 } }],
    ['max_user_client_connections of the user', { users: { watcher: { maxUserClientConnections: 1 } } }],
  ] as [string, ConfigTree][])(
    '%s holds for users in stats_users, and not in admin_users',
    async (_, tree) => {
      const pooler = await startTestPooler(db, { admin, ...tree });
      const first = await connectTo(pooler, 'watcher');
      expect((await greet(pooler, atConsole('watcher'))).error).toMatchObject({ code: '53300' });
      await connectTo(pooler, 'boss');
      expect((await greet(pooler, atConsole('boss'))).types.endsWith('Z')).toBe(true);
      await first.end();
      await pooler.stop();
    },
  );

  test('a place on the console is free again when its client has left', async () => {
    const pooler = await startTestPooler(db, { admin, limits: { maxUserClientConnections: 1 } });
    const first = await connectTo(pooler, 'watcher');
    await first.end();
    await expect.poll(async () => (await greet(pooler, atConsole('watcher'))).types.endsWith('Z')).toBe(true);
  });

  test('connections to the console count for max_user_client_connections of their user', async () => {
    const pooler = await startTestPooler(db, {
      admin: { adminUsers: [db.user] },
      limits: { maxUserClientConnections: 1 },
    });
    await connectTo(pooler, db.user);
    expect((await greet(pooler, packet())).error).toMatchObject({ code: '53300' });
  });

  test('max_client_conn does not hold on the console', async () => {
    const pooler = await startTestPooler(db, { admin, limits: { maxClientConn: 1 } });
    await pooler.connect();
    await connectTo(pooler, 'watcher');
    expect((await greet(pooler, atConsole('watcher'))).types.endsWith('Z')).toBe(true);
  });
});

const databases = (more: object = {}) => {
  const { host, port } = db;
  return {
    app: { host, port, dbname: db.database },
    secrets: { host, port, dbname: db.database },
    ...more,
  };
};
const auth = { type: 'scram-sha-256', file: 'users', user: 'asker' };
const files = { users: '"asker" "ask"\n"boss" "boss"\n' };
const startAsking = (tree: ConfigTree) =>
  startTestPooler(db, { admin: { adminUsers: ['boss'] }, ...tree }, { files });
const logIn = (pooler: TestPooler, database: string) =>
  pooler.connect({ user: 'looked_up', password: 'found', database });

test('auth_query is not asked in a database that is disabled, also for users whose secret is known', async () => {
  const pooler = await startAsking({ databases: databases(), auth: { ...auth, dbname: 'secrets' } });
  const boss = await pooler.connect({ user: 'boss', password: 'boss', database: 'pgbouncer' });
  await logIn(pooler, 'app');
  await boss.query('DISABLE secrets');
  const refusal = { code: '57P03', message: 'authentication database "secrets" is disabled' };
  await expect(logIn(pooler, 'app')).rejects.toMatchObject(refusal);
  // A user of the list needs no query.
  await pooler.connect({ user: 'boss', password: 'boss', database: 'pgbouncer' });
  await boss.query('ENABLE secrets');
  await logIn(pooler, 'app');
});

test('auth_query in a database that the server does not have is answered with 3D000 and the text of the server', async () => {
  const { host, port } = db;
  const pooler = await startAsking({ databases: databases({ '*': { host, port } }), auth });
  const refusal = { severity: 'FATAL', code: '3D000', message: 'database "nowhere" does not exist' };
  for (let n = 0; n < 5; n++) await expect(logIn(pooler, 'nowhere')).rejects.toMatchObject(refusal);
});

test('a database that the server does not have is answered with 3D000 and the text of the server, every time', async () => {
  const { host, port, password } = db;
  const pooler = await startTestPooler(db, { databases: { '*': { host, port, password } } });
  for (let n = 0; n < 10; n++)
    expect((await greet(pooler, packet({ database: 'nowhere' }))).error).toMatchObject({
      severity: 'FATAL',
      code: '3D000',
      message: 'database "nowhere" does not exist',
    });
});

/** With a client that has been served in database `one`, and nobody in `two`. */
async function paused(): Promise<TestPooler & { console: pg.Client }> {
  const { host, port, password, database: dbname } = db;
  const here = { host, port, password, dbname };
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [db.user] },
    databases: { [dbname]: here, two: here },
  });
  const console = await pooler.connect({ database: 'pgbouncer' });
  await (await pooler.connect()).query('select 1');
  await console.query('PAUSE');
  return { ...pooler, console };
}

test('a shutdown while databases are paused SHUTDOWN WAIT_FOR_SERVERS sends clients away that wait for a server, and ends', async () => {
  const { console, ...pooler } = await paused();
  const waiting = await waiter(pooler);
  const answer = console.query('SHUTDOWN WAIT_FOR_SERVERS');
  expect(await ends(waiting)).toBe('FATAL 57P01');
  await answer;
  await pooler.pooler.stopped;
});

test('a shutdown while databases are paused PAUSE after SHUTDOWN WAIT_FOR_SERVERS sends clients away that wait for a server, and it ends', async () => {
  const pooler = await startTestPooler(db, { admin: { adminUsers: [db.user] }, pooling: { poolSize: 1 } });
  const console = await pooler.connect({ database: 'pgbouncer' });
  const first = await holder(pooler);
  const waiting = await waiter(pooler);
  void pooler.pooler.shutdown({ deadlineMs: 60_000, mode: 'wait_for_servers' });
  const answer = console.query('PAUSE').catch(() => {});
  expect(await ends(waiting)).toBe('FATAL 57P01');
  await first.query('commit');
  await answer;
  await pooler.pooler.stopped;
});

test.each(['wait_for_servers', 'wait_for_clients'] as const)(
  'a shutdown while databases are paused a login that waits for a server is sent away by a shutdown with %s',
  async (mode) => {
    const pooler = await paused();
    const greeting = greet(pooler, packet({ database: 'two' }));
    await expect.poll(() => pooler.pooler.stats().pools[1]?.waiting).toBe(1);
    void pooler.pooler.shutdown({ deadlineMs: 60_000, mode });
    expect((await greeting).error).toMatchObject({ severity: 'FATAL', code: '57P01' });
  },
);

test('a shutdown while databases are paused SHUTDOWN WAIT_FOR_CLIENTS lets clients wait, who are served after RESUME', async () => {
  const { console, ...pooler } = await paused();
  const waiting = await waiter(pooler);
  const over = pooler.pooler.shutdown({ deadlineMs: 60_000, mode: 'wait_for_clients' });
  await console.query('RESUME');
  await waiting.until(Backend.readyForQuery);
  // A second shutdown may be more impatient.
  void pooler.pooler.shutdown({ deadlineMs: 60_000, mode: 'wait_for_servers' });
  expect(await ends(waiting)).toBe('FATAL 57P01');
  await over;
});
