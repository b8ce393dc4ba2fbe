// A client that an administrator ends is gone at once, whether or not it reads the error or closes its own end.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sslRequest } from '../../../src/wire/fixed-messages.js';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { ca, material } from '../../net/certificates.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { nextByte, startupPacket } from '../raw/greeting.js';
import { ScriptedServer } from './scripted-server.js';

let db: TestDatabase;
let pooler: TestPooler;
let admin: pg.Client;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());
beforeEach(async () => {
  pooler = await startTestPooler(
    db,
    {
      admin: { adminUsers: [db.user] },
      clientTls: { mode: 'prefer', keyFile: 'server.key', certFile: 'server.pem' },
    },
    { files: { 'server.pem': material('server').cert, 'server.key': material('server').key } },
  );
  admin = await pooler.connect({ database: 'headgate' });
});

/** A client that never closes its own end. `said`: all that it was told so far. */
interface Stubborn {
  readonly socket: Socket;
  said(): string;
}

function listenTo(socket: Socket): Stubborn {
  let said = '';
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString('latin1');
  });
  return { socket, said: () => said };
}

async function open(): Promise<Socket> {
  const socket = connect({ host: pooler.host, port: pooler.port, allowHalfOpen: true });
  socket.on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

function query(text: string): Buffer {
  const writer = new MessageWriter();
  writeQuery(writer, text);
  return writer.take();
}

function packet(): Buffer {
  return startupPacket(StartupCode.version30, { user: db.user, database: db.database });
}

async function logIn(socket: Socket): Promise<Stubborn> {
  const client = listenTo(socket);
  socket.write(packet());
  await expect.poll(() => client.said().includes('Z\0\0\0\x05I')).toBe(true);
  return client;
}

async function encrypted(): Promise<Stubborn> {
  const socket = await open();
  socket.write(sslRequest);
  expect(await nextByte(socket)).toBe('S');
  const inTls = connectTls({ socket, ca, checkServerIdentity: () => undefined });
  inTls.on('error', () => {});
  return logIn(inTls);
}

/** In the middle of an answer that it does not read. */
async function unreading(): Promise<Stubborn> {
  const client = await logIn(await open());
  client.socket.pause();
  client.socket.write(query("select repeat('x', 1000000) from generate_series(1, 100)"));
  const watcher = new pg.Client({ connectionString: db.url });
  await watcher.connect();
  const isStuck = async (): Promise<boolean> =>
    (await watcher.query("select 1 from pg_stat_activity where wait_event = 'ClientWrite'")).rows.length > 0;
  await expect.poll(isStuck, { timeout: 10_000 }).toBe(true);
  await watcher.end();
  return client;
}

async function clients(): Promise<number> {
  const { rows } = await admin.query('SHOW CLIENTS');
  return rows.filter(({ database }) => database === db.database).length;
}

const kinds = [
  ['is idle', async () => logIn(await open()), true],
  ['is in a transaction', async () => inTransaction(await logIn(await open())), true],
  ['has TLS', encrypted, true],
  ['does not read its answer', unreading, false],
] as const;

async function inTransaction(client: Stubborn): Promise<Stubborn> {
  client.socket.write(query('begin; select 1'));
  await expect.poll(() => client.said().includes('Z\0\0\0\x05T')).toBe(true);
  return client;
}

describe.each(kinds)('a client that %s, and never closes its own end,', (_, come, hears) => {
  const isTold = (client: Stubborn): Promise<void> =>
    expect.poll(() => client.said().includes('57P01')).toBe(hears);

  test('a client that never closes its own end is gone when it is killed with KILL_CLIENT, and told where it reads', async () => {
    const client = await come();
    const { rows } = await admin.query('SHOW CLIENTS');
    await admin.query(`KILL_CLIENT ${rows.find(({ database }) => database === db.database).id}`);
    await expect.poll(clients).toBe(0);
    await isTold(client);
  });

  test('a client that never closes its own end is gone when its database is killed, and told where it reads', async () => {
    const client = await come();
    await admin.query(`KILL ${db.database}`);
    await expect.poll(clients).toBe(0);
    await isTold(client);
  });

  test('a client that never closes its own end does not keep the pooler from an immediate end, and is told where it reads', async () => {
    const client = await come();
    let hasStopped = false;
    void pooler.stop().then(() => {
      hasStopped = true;
    });
    await expect.poll(() => hasStopped).toBe(true);
    await isTold(client);
  });
});

test('a client at the console that never closes its own end is gone when it is killed', async () => {
  const socket = await open();
  const other = listenTo(socket);
  socket.write(startupPacket(StartupCode.version30, { user: db.user, database: 'headgate' }));
  await expect.poll(() => other.said().includes('Z\0\0\0\x05I')).toBe(true);
  const consoles = async (): Promise<pg.QueryResultRow[]> => (await admin.query('SHOW CLIENTS')).rows;
  const id = Math.max(...(await consoles()).map((row) => row.id));
  await admin.query(`KILL_CLIENT ${id}`);
  await expect.poll(async () => (await consoles()).length).toBe(1);
  await expect.poll(() => other.said().includes('57P01')).toBe(true);
});

test('a client that was sent away before, and did not go, is gone when it is killed', async () => {
  const client = await logIn(await open());
  const { rows } = await admin.query('SHOW CLIENTS');
  const { id } = rows.find(({ database }) => database === db.database);
  // The client gets the error, and the pooler waits for its end.
  await admin.query('SET client_idle_timeout = 1');
  await expect.poll(() => client.said().includes('57P05'), { timeout: 5_000 }).toBe(true);
  expect(await clients()).toBe(1);
  await admin.query(`KILL_CLIENT ${id}`);
  await expect.poll(clients).toBe(0);
});

test('a login that waits for a server is told when its database is killed', async () => {
  const silent = await ScriptedServer.start({ greets: false });
  const waiting = await startTestPooler(silent.db, { admin: { adminUsers: ['someone'] } });
  const operator = await waiting.connect({ user: 'someone', database: 'headgate' });
  const socket = connect({ host: waiting.host, port: waiting.port, allowHalfOpen: true });
  const client = listenTo(socket);
  const { user, database } = silent.db;
  socket.write(startupPacket(StartupCode.version30, { user, database }));
  await expect.poll(() => waiting.pooler.stats().pools[0]?.waiting).toBe(1);
  await operator.query(`KILL ${database}`);
  await expect.poll(() => client.said().includes('57P01')).toBe(true);
  await expect.poll(() => waiting.pooler.stats().pools[0]?.waiting).toBe(0);
  socket.destroy();
});

test('a server that does not answer does not keep the pooler from an immediate end', async () => {
  const silent = await ScriptedServer.start({ greets: false });
  const waiting = await startTestPooler(silent.db);
  const socket = connect({ host: waiting.host, port: waiting.port });
  const client = listenTo(socket);
  const { user, database } = silent.db;
  socket.write(startupPacket(StartupCode.version30, { user, database }));
  await expect.poll(() => waiting.pooler.stats().pools[0]?.waiting).toBe(1);
  // The client waits for a server, and gets the error instead.
  void waiting.pooler.shutdown({ deadlineMs: 60_000 });
  let hasStopped = false;
  void waiting.stop().then(() => {
    hasStopped = true;
  });
  await expect.poll(() => hasStopped, { timeout: 3_000 }).toBe(true);
  expect(client.said()).toContain('57P01');
});
