import { expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import {
  readBackendKeyData,
  readNotification,
  readParameterStatus,
} from '../../../src/wire/session-messages.js';
import { writeCancelRequest } from '../../../src/wire/startup-packet.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { RawSession, typesOf } from '../../wire/server/raw-session.js';
import { greet, open, startupPacket } from '../raw/greeting.js';
import { ScriptedServer } from './scripted-server.js';

const { version30 } = StartupCode;

async function query(session: RawSession, text: string): Promise<string> {
  return typesOf(await session.ask((writer) => writeQuery(writer, text)));
}

function parametersOf({ db }: ScriptedServer, pooler: TestPooler): Promise<ReadonlyMap<string, string>> {
  const packet = startupPacket(version30, { user: db.user, database: db.database });
  return greet(pooler, packet).then(({ parameters }) => parameters);
}

/** Until the pooler has read all that the server sent while nobody asked it anything. */
async function untilRead(session: RawSession): Promise<void> {
  await query(session, 'select 1');
}

test('a server that gives no key is served all the same; its clients have a key, and a cancel does nothing', async () => {
  const server = await ScriptedServer.start({ answer: (text) => text !== 'wait' });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  const key = session.received.find(({ type }) => type === Backend.backendKeyData)?.bytes as Buffer;
  const { processId, secretKey } = readBackendKeyData(key, 0, key.length);
  expect(secretKey).toHaveLength(4);

  const answer = query(session, 'wait');
  await expect.poll(() => server.connection.queries).toContain('wait');
  const cancel = await open(pooler);
  const writer = new MessageWriter();
  writeCancelRequest(writer, processId, secretKey);
  const closed = new Promise((resolve) => cancel.once('close', resolve));
  cancel.write(writer.take());
  cancel.resume();
  await closed;
  expect(server.cancels).toBe(0);
  server.connection.done('SELECT 0');
  expect(await answer).toBe('CZ');
  session.socket.destroy();
});

test('a client that has a server hears what it says unasked', async () => {
  const server = await ScriptedServer.start({ answer: (text) => text !== 'wait' });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  const answer = session.ask((writer) => writeQuery(writer, 'wait'));
  await expect.poll(() => server.connection.queries).toContain('wait');
  server.connection.notify('news', 'good');
  server.connection.notice({ severity: 'WARNING', code: '01000', message: 'careful' });
  server.connection.report('TimeZone', 'Asia/Tokyo');
  server.connection.done('SELECT 0');
  const messages = await answer;
  expect(typesOf(messages)).toBe('ANSCZ');
  const [notification] = messages;
  expect(readNotification(notification?.bytes as Buffer, 0, notification?.bytes.length as number)).toEqual({
    processId: 1,
    channel: 'news',
    payload: 'good',
  });
  session.socket.destroy();
});

test('a parameter that an idle server reports reaches clients that come later', async () => {
  const server = await ScriptedServer.start({ parameters: { server_version: '17.1', in_hot_standby: 'on' } });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  await query(session, 'select 1');
  expect((await parametersOf(server, pooler)).get('in_hot_standby')).toBe('on');
  server.connection.report('in_hot_standby', 'off');
  await untilRead(session);
  const parameters = await parametersOf(server, pooler);
  expect([parameters.get('in_hot_standby'), parameters.get('server_version')]).toEqual(['off', '17.1']);
  session.socket.destroy();
});

test('a client that is there already hears of it with its next query', async () => {
  const server = await ScriptedServer.start({ parameters: { in_hot_standby: 'on', TimeZone: 'UTC' } });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const [first, second] = [
    await RawSession.start(pooler, version30),
    await RawSession.start(pooler, version30),
  ];
  await query(first, 'select 1');
  server.connection.report('in_hot_standby', 'off');
  await expect.poll(async () => (await parametersOf(server, pooler)).get('in_hot_standby')).toBe('off');
  for (const session of [first, second]) {
    const messages = await session.ask((writer) => writeQuery(writer, 'select 1'));
    expect(typesOf(messages)).toBe('SCZ');
    const { bytes } = messages[0] as { bytes: Buffer };
    expect(readParameterStatus(bytes, 0, bytes.length)).toEqual({ name: 'in_hot_standby', value: 'off' });
    expect(await query(session, 'select 1')).toBe('CZ');
    session.socket.destroy();
  }
});

test('another version of the server is told to clients that come after the first connection to it', async () => {
  const server = await ScriptedServer.start({ parameters: { server_version: '17.1' } });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  expect((await parametersOf(server, pooler)).get('server_version')).toBe('17.1');
  server.options = { parameters: { server_version: '18.0' } };
  server.connection.socket.destroy();
  await expect.poll(() => pooler.pooler.stats().pools[0]?.live).toBe(0);
  const session = await RawSession.start(pooler, version30);
  await query(session, 'select 1');
  expect((await parametersOf(server, pooler)).get('server_version')).toBe('18.0');
  session.socket.destroy();
});

test('a notice of an idle server reaches no client, and does no harm', async () => {
  const server = await ScriptedServer.start();
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  await query(session, 'select 1');
  server.connection.notice({ severity: 'NOTICE', code: '00000', message: 'by the way' });
  expect(await query(session, 'select 2')).toMatch(/^N?CZ$/);
  expect(server.connections).toHaveLength(1);
  session.socket.destroy();
});

test.each([
  ['an error', { severity: 'ERROR', code: '58000', message: 'something is wrong' }],
  ['its end', { severity: 'FATAL', code: '57P01', message: 'terminating connection' }],
])('an idle server that says %s is not used again', async (_name, error) => {
  const server = await ScriptedServer.start();
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  await query(session, 'select 1');
  server.connection.error(error);
  if (error.severity === 'FATAL') server.connection.socket.end();
  await expect.poll(() => pooler.pooler.stats().pools[0]?.live).toBe(0);
  expect(await query(session, 'select 2')).toBe('CZ');
  expect(server.connections).toHaveLength(2);
  session.socket.destroy();
});

test('a server that turns out to be dead when it is looked at is never given a query', async () => {
  const server: ScriptedServer = await ScriptedServer.start({
    answer: (text, connection) => {
      const isDead = text === '' && connection === server.connections[0];
      if (isDead) connection.socket.destroy();
      return !isDead;
    },
  });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1, serverCheckDelay: '1ms' } });
  const session = await RawSession.start(pooler, version30);
  await expect.poll(() => pooler.pooler.view.servers().map(({ state }) => state)).toEqual(['used']);
  expect(await query(session, 'select 1')).toBe('CZ');
  expect(server.connections.map(({ queries }) => queries.includes('select 1'))).toEqual([false, true]);
  session.socket.destroy();
});

test('a server that answers what was not asked is not used again, and its client is told', async () => {
  const server = await ScriptedServer.start({
    answer: (text, connection) => {
      if (text === 'twice') connection.done('SELECT 1');
      return true;
    },
  });
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, version30);
  await session.ask((writer) => writeQuery(writer, 'twice')).catch(() => {});
  await expect.poll(() => server.connection.socket.destroyed).toBe(true);
  const next = await RawSession.start(pooler, version30);
  expect(await query(next, 'select 1')).toBe('CZ');
  for (const each of [session, next]) each.socket.destroy();
});
