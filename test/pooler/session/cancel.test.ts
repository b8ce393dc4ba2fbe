import { connect } from 'node:net';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sync } from '../../../src/wire/fixed-messages.js';
import { writeBind, writeExecute, writeParse, writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { type BackendKey, readBackendKeyData } from '../../../src/wire/session-messages.js';
import { writeCancelRequest } from '../../../src/wire/startup-packet.js';
import { startFaultyServer } from '../../support/faulty-server.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';
import { scrape } from '../metrics/scrape.js';
import { ScriptedServer } from './scripted-server.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** Resolves when the pooler has closed the connection, which it does when the request is done. Nothing is said to it. */
async function sendCancel({ host, port }: TestPooler, key: BackendKey): Promise<void> {
  const writer = new MessageWriter();
  writeCancelRequest(writer, key.processId, key.secretKey);
  const socket = connect(port, host);
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.write(writer.take());
  socket.resume();
  await closed;
  expect(socket.bytesRead).toBe(0);
}

function keyOf(session: RawSession): BackendKey {
  const { bytes } = session.received.find(({ type }) => type === Backend.backendKeyData) as { bytes: Buffer };
  return readBackendKeyData(bytes, 0, bytes.length);
}

/** Waits until the server itself is busy with a text. */
async function untilRuns(watcher: pg.Client, text: string, times = 1): Promise<void> {
  for (;;) {
    const { rows } = await watcher.query(
      "select 1 from pg_stat_activity where datname = current_database() and state = 'active' and query like $1 and pid <> pg_backend_pid()",
      [`%${text}%`],
    );
    if (rows.length >= times) return;
  }
}

/** A client of the server itself, which the end of the test closes, failed or not. */
async function direct(): Promise<pg.Client> {
  const { default: driver } = await import('pg');
  const client = new driver.Client({ connectionString: db.url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

describe.each([
  ['3.0', StartupCode.version30],
  ['3.2', StartupCode.version32],
])('with keys of protocol %s', (_name, version) => {
  test('a running query is cancelled on the server, and the session goes on', async () => {
    const pooler = await startTestPooler(db);
    const watcher = await direct();
    const session = await RawSession.start(pooler, version);
    const answer = session.ask((writer) => writeQuery(writer, 'select pg_sleep(30), 1'));
    await untilRuns(watcher, 'pg_sleep(30), 1');
    await sendCancel(pooler, keyOf(session));
    expect(errorOf(await answer)?.code).toBe('57014');
    const next = await session.ask((writer) => writeQuery(writer, 'select 1'));
    expect(typesOf(next)).toBe('TDCZ');
    session.socket.destroy();
  });
});

test('a client that waits for a server is taken out of the queue, and told so; it goes on', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const session = await RawSession.start(pooler, StartupCode.version30);
  const answer = session.ask((writer) => writeQuery(writer, 'select 2'));
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await sendCancel(pooler, keyOf(session));
  const messages = await answer;
  expect(typesOf(messages)).toBe('EZ');
  expect(errorOf(messages)?.code).toBe('57014');
  expect(pooler.pooler.stats().waiting).toBe(0);
  const next = session.ask((writer) => writeQuery(writer, 'select 3'));
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await holder.query('commit');
  expect(typesOf(await next)).toBe('TDCZ');
  session.socket.destroy();
});

test('a client that waits for a server loses the whole pipeline that waits, up to its Sync', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const session = await RawSession.start(pooler, StartupCode.version30);
  const { writer } = session;
  for (const text of ['select 1', 'select 2']) {
    writeParse(writer, { text });
    writeBind(writer, {});
    writeExecute(writer);
  }
  writer.append(sync);
  writeQuery(writer, 'select 3');
  session.send();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await sendCancel(pooler, keyOf(session));
  expect(typesOf(await session.until(Backend.readyForQuery))).toBe('EZ');
  // The statement behind it waits on.
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await holder.query('commit');
  expect(typesOf(await session.until(Backend.readyForQuery))).toBe('TDCZ');
  session.socket.destroy();
});

test('a client that waits for a server in a transaction that no server knows of yet, has a failed transaction then', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'begin'));
  const answer = session.ask((writer) => writeQuery(writer, 'select 2'));
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  await sendCancel(pooler, keyOf(session));
  const status = (messages: Awaited<typeof answer>): string =>
    String.fromCharCode(messages.at(-1)?.bytes[5] ?? 0);
  expect(status(await answer)).toBe('E');
  const refused = await session.ask((writer) => writeQuery(writer, 'select 3'));
  expect([errorOf(refused)?.code, status(refused)]).toEqual(['25P02', 'E']);
  const over = await session.ask((writer) => writeQuery(writer, 'commit'));
  expect([typesOf(over), status(over)]).toEqual(['CZ', 'I']);
  await holder.query('commit');
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'select 4')))).toBe('TDCZ');
  session.socket.destroy();
});

test('a request to cancel with a wrong key, or of a client that does nothing, does nothing', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const watcher = await direct();
  const session = await RawSession.start(pooler, StartupCode.version30);
  const idle = await RawSession.start(pooler, StartupCode.version30);
  const answer = session.ask((writer) => writeQuery(writer, 'select pg_sleep(0.3), 2'));
  await untilRuns(watcher, 'pg_sleep(0.3), 2');
  const { processId, secretKey } = keyOf(session);
  const wrong = Buffer.from(secretKey);
  wrong[0] = (wrong[0] as number) ^ 1;
  await sendCancel(pooler, { processId, secretKey: wrong });
  await sendCancel(pooler, { processId: processId ^ 1, secretKey });
  await sendCancel(pooler, { processId, secretKey: Buffer.alloc(32) });
  await sendCancel(pooler, keyOf(idle));
  expect(typesOf(await answer)).toBe('TDCZ');
  for (const each of [session, idle]) each.socket.destroy();
});

test('a request to cancel that comes late never hits the next client on the same server', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const victim = await RawSession.start(pooler, StartupCode.version30);
  const others = await Promise.all([pooler.connect(), pooler.connect()]);
  let isOver = false;
  let failures = 0;
  const work = others.map(async (client) => {
    while (!isOver)
      await client.query('select pg_sleep(0.001)').catch(() => {
        failures++;
      });
  });
  const cancels: Promise<void>[] = [];
  for (let round = 0; round < 60; round++) {
    const answer = victim.ask((writer) => writeQuery(writer, 'select 1'));
    cancels.push(sendCancel(pooler, keyOf(victim)));
    await answer;
  }
  await Promise.all(cancels);
  isOver = true;
  await Promise.all(work);
  expect(failures).toBe(0);
  victim.socket.destroy();
});

test('a request to cancel that is still under way when its statement has ended does not hit the next statement of its client', async () => {
  let hangUp: (() => void) | undefined;
  const cancelCame = new Promise<void>((resolve) => {
    hangUp = resolve;
  });
  const server = await ScriptedServer.start({
    key: { processId: 77, secretKey: Buffer.alloc(4, 'k') },
    answer: (text) => text !== 'wait',
    cancel: (hang) => {
      const came = hangUp;
      hangUp = hang;
      came?.();
    },
  });
  const pooler = await startTestPooler(server.db, { pooling: { poolMode: 'session' } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  const first = session.ask((writer) => writeQuery(writer, 'wait'));
  const cancelled = sendCancel(pooler, keyOf(session));
  await cancelCame;
  const [connection] = server.connections;
  connection?.done('SELECT 1');
  expect(typesOf(await first)).toBe('CZ');
  const second = session.ask((writer) => writeQuery(writer, 'next'));
  const other = await RawSession.start(pooler, StartupCode.version30);
  for (let n = 0; n < 5; n++) await other.ask((writer) => writeQuery(writer, 'other'));
  expect(connection?.queries).not.toContain('next');
  hangUp?.();
  expect(typesOf(await second)).toBe('CZ');
  expect(connection?.queries).toContain('next');
  await cancelled;
  for (const each of [session, other]) each.socket.destroy();
});

test('a request to cancel is one of few at the same time, however many there are, and is counted', async () => {
  const front = await startFaultyServer(db);
  const { host, port } = front;
  const pooler = await startTestPooler(db, {
    databases: { [db.database]: { host, port, password: db.password } },
    pooling: { poolSize: 2 },
    observability: { metricsListen: '127.0.0.1:0' },
  });
  const watcher = await direct();
  const sessions = await Promise.all([0, 1].map(() => RawSession.start(pooler, StartupCode.version30)));
  const answers = sessions.map((session) =>
    session.ask((writer) => writeQuery(writer, 'select pg_sleep(30), 3')),
  );
  await untilRuns(watcher, 'pg_sleep(30), 3', 2);
  await Promise.all(
    Array.from({ length: 40 }, (_, n) => sendCancel(pooler, keyOf(sessions[n % 2] as RawSession))),
  );
  for (const answer of answers) expect(errorOf(await answer)?.code).toBe('57014');
  // Two connections, and never more requests than those at a time; most are for what is being cancelled already.
  expect(front.peak).toBeLessThanOrEqual(4);
  expect(front.accepted).toBeLessThan(40);
  const metrics = await scrape(pooler.pooler.metricsPort as number);
  // A request whose statement ended while it was connecting is withheld: the front accepted it, and nothing was sent.
  const sent = metrics.value('headgate_pooler_cancels_total');
  expect(sent).toBeGreaterThanOrEqual(2);
  expect(sent).toBeLessThanOrEqual(front.accepted - 2);
  expect(metrics.value('headgate_pooler_cancel_failures_total')).toBe(0);
  for (const session of sessions) session.socket.destroy();
  await pooler.stop();
  await front.stop();
});

test('a request to cancel is passed on with the key of the server, however long that is', async () => {
  const key = { processId: 77, secretKey: Buffer.alloc(256, 'k') };
  const server = await ScriptedServer.start({ key, answer: (text) => text !== 'wait' });
  const pooler = await startTestPooler(server.db);
  const session = await RawSession.start(pooler, StartupCode.version32);
  const answer = session.ask((writer) => writeQuery(writer, 'wait'));
  await expect.poll(() => server.connection.queries).toContain('wait');
  await sendCancel(pooler, keyOf(session));
  expect(server.cancelKeys).toEqual([key]);
  server.connection.done('SELECT 0');
  await answer;
  session.socket.destroy();
});

test('a request to cancel is good for the client alone that has the key', async () => {
  const pooler = await startTestPooler(db);
  const sessions = await Promise.all(
    Array.from({ length: 20 }, () => RawSession.start(pooler, StartupCode.version32)),
  );
  const keys = sessions.map(keyOf);
  expect(new Set(keys.map(({ processId }) => processId)).size).toBe(20);
  expect(new Set(keys.map(({ secretKey }) => secretKey.toString('hex'))).size).toBe(20);
  for (const session of sessions) session.socket.destroy();
});

test('node-postgres cancels by itself when a query takes too long', async () => {
  const pooler = await startTestPooler(db);
  const client = await pooler.connect({ statement_timeout: 100 });
  await expect(client.query('select pg_sleep(30)')).rejects.toMatchObject({ code: '57014' });
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});
