// The console of a real pooler in front of a real PostgreSQL: what it counts, and what it can do to clients.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { portWhereNobodyListens } from '../support/faulty-server.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

/** The machine may be busy. */
const soon = { timeout: 10_000, interval: 20 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

type Rows = Record<string, unknown>[];

/** A pooler, someone at its console, and what the console answers. */
async function start(
  tree = {},
): Promise<TestPooler & { admin: pg.Client; show(what: string): Promise<Rows> }> {
  const pooler = await startTestPooler(db, { admin: { adminUsers: [db.user] }, ...tree });
  const admin = await pooler.connect({ database: 'headgate', application_name: 'the operator' });
  const show = async (what: string): Promise<Rows> => (await admin.query(`SHOW ${what}`)).rows;
  return { ...pooler, admin, show };
}

const statsOf = async (show: (what: string) => Promise<Rows>) =>
  (await show('STATS')).find(({ database }) => database === db.database);
const totalOf = async (show: (what: string) => Promise<Rows>, name: string): Promise<number> =>
  Number((await show('TOTALS')).find((row) => row.name === name)?.value);

test('SHOW STATS and SHOW TOTALS keep what a pool has counted when it is forgotten, and go on from there', async () => {
  const { connect, show } = await start({
    timeouts: { poolIdleTimeout: '1ms', queryTimeout: '2s' },
    pooling: { serverIdleTimeout: '1ms' },
  });
  const client = await connect();
  for (let i = 0; i < 5; i++) await client.query('select 1');
  await client.end();
  await vi.waitFor(async () => expect(await show('POOLS')).toEqual([]), soon);
  const { total_query_count: queries, total_server_assignment_count: assignments } =
    (await statsOf(show)) ?? {};
  expect([Number(queries), Number(assignments)]).toEqual([5, 5]);
  expect(await totalOf(show, 'total_query_count')).toBe(5);
  await (await connect()).query('select 1');
  expect(Number((await statsOf(show))?.total_query_count)).toBe(6);
  expect(await totalOf(show, 'total_query_count')).toBe(6);
});

test('SHOW STATS and SHOW TOTALS keep it when all server connections are replaced', async () => {
  const { connect, show, admin } = await start();
  const client = await connect();
  for (let i = 0; i < 5; i++) await client.query('select 1');
  const before = Number((await statsOf(show))?.total_server_assignment_count);
  await admin.query('RECONNECT');
  await admin.query('PAUSE');
  await admin.query('RESUME');
  await client.query('select 1');
  expect(Number((await statsOf(show))?.total_server_assignment_count)).toBe(before + 1);
});

test('KILL_CLIENT ends the session of a client with an error', async () => {
  const { connect, show, admin } = await start();
  const client = await connect();
  const ended = new Promise<Error>((resolve) => client.once('error', resolve));
  const [row] = (await show('CLIENTS')).filter(({ database }) => database === db.database);
  await admin.query(`KILL_CLIENT ${row?.id}`);
  expect(await ended).toMatchObject({ code: '57P01' });
  await vi.waitFor(async () => expect(await show('CLIENTS')).toHaveLength(1), soon);
  await expect(admin.query(`KILL_CLIENT ${row?.id}`)).rejects.toThrow(`no client with the id ${row?.id}`);
});

test('KILL_CLIENT ends the session of a client at the console in good order', async () => {
  const { connect, show, admin } = await start();
  const other = await connect({ database: 'pgbouncer', application_name: 'another' });
  const ended = new Promise<Error>((resolve) => other.once('error', resolve));
  const row = (await show('CLIENTS')).find(({ application_name: name }) => name === 'another');
  await admin.query(`KILL_CLIENT ${row?.id}`);
  expect(await ended).toMatchObject({ severity: 'FATAL', code: '57P01' });
  await vi.waitFor(async () => expect(await show('CLIENTS')).toHaveLength(1), soon);
});

const waits = ['SHUTDOWN WAIT_FOR_SERVERS', 'SHUTDOWN WAIT_FOR_CLIENTS'];

test.each(waits)(
  'SHUTDOWN %s is answered before the console is closed, also where nobody is waited for',
  async (command) => {
    const { admin, pooler } = await start();
    const ended = new Promise<Error>((resolve) => admin.once('error', resolve));
    expect(await admin.query(command)).toMatchObject({ command: 'SHUTDOWN' });
    await pooler.stopped;
    expect(await ended).toMatchObject({ severity: 'FATAL', code: '57P01' });
  },
);

test.each(waits)('SHUTDOWN %s is answered when the last client is gone', async (command) => {
  const { admin, connect, pooler } = await start();
  const client = await connect();
  await client.query('begin; select 1');
  let isAnswered = false;
  const answer = admin.query(command).then(({ command: tag }) => {
    isAnswered = true;
    return tag;
  });
  expect((await client.query('select 7 as n')).rows).toEqual([{ n: 7 }]);
  expect(isAnswered).toBe(false);
  await client.query('commit');
  await client.end();
  expect(await answer).toBe('SHUTDOWN');
  await pooler.stopped;
});

test('SHUTDOWN without a word more is answered by the end of the connection', async () => {
  const { admin, pooler } = await start();
  await expect(admin.query('SHUTDOWN')).rejects.toMatchObject({ code: '57P01' });
  await pooler.stopped;
});

test.runIf(process.platform !== 'win32')(
  'SHUTDOWN leaves the Unix socket open meanwhile, for the console alone',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-console-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const port = await portWhereNobodyListens();
    const { admin, connect, pooler } = await start({ listen: { port }, unixSocket: { dir: folder } });
    const local = { host: folder };
    const client = await connect();
    await client.query('begin; select 1');
    const answer = admin.query('SHUTDOWN WAIT_FOR_SERVERS');
    await expect.poll(() => pooler.addresses).toEqual([expect.stringContaining(folder)]);
    await expect(connect()).rejects.toThrow('ECONNREFUSED');
    await expect(connect(local)).rejects.toMatchObject({ code: '57P01' });
    const second = await connect({ ...local, database: 'headgate' });
    expect((await second.query('SHOW POOLS')).rows).toMatchObject([{ cl_active: 1 }]);
    await client.query('commit');
    await answer;
    await pooler.stopped;
    await expect(connect({ ...local, database: 'headgate' })).rejects.toThrow('ENOENT');
  },
);

test('SHOW CLIENTS has the application name of each client, and SHOW SERVERS that of the client that a server serves', async () => {
  const { connect, show } = await start();
  const client = await connect({ application_name: 'shop' });
  await client.query('begin; select 1');
  const names = async (what: string): Promise<unknown[]> =>
    (await show(what)).map(({ application_name: name, state }) => `${name} ${state}`).sort();
  expect(await names('CLIENTS')).toEqual(['shop active', 'the operator active']);
  expect(await names('SERVERS')).toEqual(['shop active']);
  await client.query('commit');
  expect(await names('CLIENTS')).toEqual(['shop idle', 'the operator active']);
  expect(await names('SERVERS')).toEqual([' idle']);
});

test('SHOW CLIENTS and SHOW SERVERS tell servers that will be checked before their next client from those that need not be', async () => {
  const { connect, show } = await start({ pooling: { serverCheckDelay: '1ms' } });
  await (await connect()).query('select 1');
  await vi.waitFor(async () => expect(await show('POOLS')).toMatchObject([{ sv_idle: 0, sv_used: 1 }]), soon);
  expect(await show('SERVERS')).toMatchObject([{ state: 'used' }]);
});

test.each([
  'server_idle_timeout = 300',
  'server_check_delay = 10',
  'server_login_retry = 5',
  'server_round_robin = 1',
  'min_pool_size = 1',
  'default_pool_size = 2',
  'query_wait_timeout = 60',
])('SET of %s replaces no server connection', async (change) => {
  const { connect, admin } = await start({ pooling: { poolSize: 1 } });
  const client = await connect();
  const pid = async (): Promise<number> => (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
  const before = await pid();
  await admin.query(`SET ${change}`);
  expect([await pid(), await pid()]).toEqual([before, before]);
});

test('SET server_lifetime to 0 has each server connection used once, and to another value many times again', async () => {
  const { connect, admin } = await start({ pooling: { poolSize: 1 } });
  const client = await connect();
  const seen = async (): Promise<number> => {
    const pids = new Set<unknown>();
    for (let i = 0; i < 3; i++) pids.add((await client.query('select pg_backend_pid() as pid')).rows[0].pid);
    return pids.size;
  };
  await admin.query('SET server_lifetime = 0');
  expect(await seen()).toBe(3);
  await admin.query('SET server_lifetime = 3600');
  // The first of these may be from before.
  await client.query('select 1');
  expect(await seen()).toBe(1);
});
