// `server_fast_close`: clients that keep a server connection for the session, when that connection is to be replaced.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { poolerConfig, startTestPooler, type TestPooler, treeFor } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const fast = { poolMode: 'session', serverFastClose: true };

/** The test's database as its entry has it, with something else in it. */
function entry(more: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  const { host, port, password, database } = db;
  return { host, port, password, dbname: database, ...more };
}

interface Guest {
  readonly client: pg.Client;
  /** The error that ended it, once it has ended. */
  readonly ended: Promise<unknown>;
  hasEnded: boolean;
}

/** A client that has a server connection. */
async function guestOf(pooler: TestPooler, database = db.database): Promise<Guest> {
  const client = await pooler.connect({ database });
  let cause: unknown;
  client.on('error', (error) => {
    cause ??= error;
  });
  const guest: Guest = {
    client,
    ended: new Promise((resolve) => {
      client.once('end', () => {
        guest.hasEnded = true;
        resolve(cause);
      });
    }),
    hasEnded: false,
  };
  await client.query('select 1');
  return guest;
}

/** The error that each client gets. */
const goodbye = {
  severity: 'FATAL',
  code: '57P01',
  message: 'terminating connection: its server connection is to be replaced',
};

async function reload(pooler: TestPooler, tree: Parameters<typeof treeFor>[1]): Promise<void> {
  await pooler.pooler.reload(poolerConfig(treeFor(db, tree)));
}

test('with server_fast_close, a reload that leads a database elsewhere ends its sessions, as RECONNECT does, and no others', async () => {
  const databases = { [db.database]: entry(), other: entry() };
  const pooler = await startTestPooler(db, { pooling: fast, databases });
  const gone = await guestOf(pooler);
  const stays = await guestOf(pooler, 'other');
  await reload(pooler, {
    pooling: fast,
    databases: { ...databases, [db.database]: entry({ timezone: 'Asia/Tokyo' }) },
  });
  expect(await gone.ended).toMatchObject(goodbye);
  expect((await stays.client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  const next = await pooler.connect();
  expect((await next.query("select current_setting('timezone') as zone")).rows).toEqual([
    { zone: 'Asia/Tokyo' },
  ]);
});

test('with server_fast_close, a reload lets a transaction end first', async () => {
  const pooler = await startTestPooler(db, { pooling: fast });
  const { client, ended } = await guestOf(pooler);
  await client.query('begin');
  await reload(pooler, { pooling: fast, databases: { [db.database]: entry({ timezone: 'Asia/Tokyo' }) } });
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await client.query('commit');
  expect(await ended).toMatchObject(goodbye);
});

test('with server_fast_close, a reload of * ends the sessions of databases that came from it', async () => {
  const pooler = await startTestPooler(db, { pooling: fast, databases: { '*': entry() } });
  const gone = await guestOf(pooler, 'whatever');
  const stays = await guestOf(pooler);
  await reload(pooler, { pooling: fast, databases: { '*': entry({ timezone: 'Asia/Tokyo' }) } });
  expect(await gone.ended).toMatchObject(goodbye);
  expect((await stays.client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('with server_fast_close, a reload of TLS with servers ends all sessions', async () => {
  const pooler = await startTestPooler(db, { pooling: fast, serverTls: { mode: 'prefer' } });
  const gone = await guestOf(pooler);
  await reload(pooler, { pooling: fast, serverTls: { mode: 'disable' } });
  expect(await gone.ended).toMatchObject(goodbye);
});

test.each([
  ['the size of a pool', { poolSize: 7 }],
  ['how long a server connection lives', { serverLifetime: '30m' }],
  ['how often it is used', { serverMaxUses: 100 }],
])('with server_fast_close, a reload of %s ends no client', async (_, more) => {
  const pooler = await startTestPooler(db, { pooling: fast, databases: { [db.database]: entry() } });
  const guest = await guestOf(pooler);
  await reload(pooler, { pooling: { ...fast, ...more }, databases: { [db.database]: entry(more) } });
  expect((await guest.client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(guest.hasEnded).toBe(false);
});

test('without server_fast_close, a session keeps its server connection over a reload', async () => {
  const pooling = { poolMode: 'session' };
  const pooler = await startTestPooler(db, { pooling });
  const { client } = await guestOf(pooler);
  const { rows: before } = await client.query('select pg_backend_pid() as pid');
  await reload(pooler, { pooling, databases: { [db.database]: entry({ timezone: 'Asia/Tokyo' }) } });
  expect((await client.query('select pg_backend_pid() as pid')).rows).toEqual(before);
});

test('with server_fast_close, RECONNECT ends sessions of the database that it names', async () => {
  const databases = { [db.database]: entry(), other: entry() };
  const admin = { adminUsers: [db.user] };
  const pooler = await startTestPooler(db, { pooling: fast, databases, admin });
  const gone = await guestOf(pooler);
  const stays = await guestOf(pooler, 'other');
  const operator = await pooler.connect({ database: 'headgate' });
  await operator.query(`RECONNECT "${db.database}"`);
  expect(await gone.ended).toMatchObject(goodbye);
  expect((await stays.client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
