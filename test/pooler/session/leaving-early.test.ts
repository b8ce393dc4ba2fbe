import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sslRequest, terminate } from '../../../src/wire/fixed-messages.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { ca, material } from '../../net/certificates.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { nextByte, open, startupPacket } from '../raw/greeting.js';
import { ScriptedServer } from './scripted-server.js';

let db: TestDatabase;
let plain: TestPooler;
let encrypting: TestPooler;
const log: string[] = [];
beforeAll(async () => {
  db = await withDatabase();
  const host = { log: (level: string, message: string) => log.push(`${level} ${message}`) };
  const auth = { type: 'scram-sha-256', file: 'users' };
  const users = `"${db.user}" "${db.password}"\n`;
  plain = await startTestPooler(db, { auth }, { host, files: { users } });
  encrypting = await startTestPooler(
    db,
    { auth, clientTls: { mode: 'prefer', keyFile: 'server.key', certFile: 'server.pem' } },
    { host, files: { users, 'server.pem': material('server').cert, 'server.key': material('server').key } },
  );
});
afterAll(async () => {
  await plain.stop();
  await encrypting.stop();
  await db.drop();
});

function packet(): Buffer {
  return startupPacket(StartupCode.version30, { user: db.user, database: db.database });
}

/** All that the other side says until it closes the connection. */
function untilClosed(socket: Socket): Promise<string> {
  const words: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => words.push(chunk));
  socket.on('error', () => {});
  return new Promise((resolve) =>
    socket.once('close', () => resolve(Buffer.concat(words).toString('latin1'))),
  );
}

/** Sends these bytes, one piece after the other is answered with a byte, and reads the rest. */
async function said(pooler: TestPooler, ...pieces: readonly Buffer[]): Promise<string> {
  const socket = await open(pooler);
  for (const piece of pieces.slice(0, -1)) {
    socket.write(piece);
    await nextByte(socket);
  }
  const words = untilClosed(socket);
  socket.write(pieces.at(-1) as Buffer);
  return words;
}

test('a client that terminates during its login is disconnected without a word a Terminate in place of the startup packet is not answered', async () => {
  expect(await said(plain, terminate)).toBe('');
  expect(await said(encrypting, terminate)).toBe('');
  expect(await said(plain, Buffer.concat([terminate, packet()]))).toBe('');
});

test('a client that terminates during its login is disconnected without a word a Terminate that comes byte by byte is not answered', async () => {
  const socket = await open(plain);
  socket.setNoDelay(true);
  const words = untilClosed(socket);
  for (const byte of terminate) {
    socket.write(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await words).toBe('');
});

test('a client that terminates during its login is disconnected without a word a Terminate after a refused SSLRequest is not answered', async () => {
  expect(await said(plain, sslRequest, terminate)).toBe('');
});

test('a client that terminates during its login is disconnected without a word a Terminate in the same packet as the SSLRequest is not answered', async () => {
  expect(await said(plain, Buffer.concat([sslRequest, terminate]))).toBe('');
  expect(await said(encrypting, Buffer.concat([sslRequest, terminate]))).toBe('');
});

test('a client that terminates during its login is disconnected without a word a Terminate in place of the TLS handshake is not answered', async () => {
  const words = await said(encrypting, sslRequest, terminate);
  // An alert of TLS is no message of PostgreSQL's.
  expect(words).not.toMatch(/^E/);
});

test('a client that terminates during its login is disconnected without a word a Terminate within TLS in place of the startup packet is not answered', async () => {
  const socket = await open(encrypting);
  socket.write(sslRequest);
  expect(await nextByte(socket)).toBe('S');
  const encrypted = connectTls({ socket, ca, checkServerIdentity: () => undefined });
  await new Promise((resolve) => encrypted.once('secureConnect', resolve));
  const words = untilClosed(encrypted);
  encrypted.write(terminate);
  expect(await words).toBe('');
});

test('a client that terminates during its login is disconnected without a word a Terminate in place of a password is not answered', async () => {
  const socket = await open(plain);
  socket.write(packet());
  expect(await nextByte(socket)).toMatch(/^R/);
  const words = untilClosed(socket);
  socket.write(terminate);
  expect(await words).toBe('');
});

test('a client that terminates during its login is disconnected without a word a Terminate right behind the startup packet is not answered', async () => {
  const words = await said(plain, Buffer.concat([packet(), terminate]));
  expect(words).not.toMatch(/E.*FATAL/s);
});

test('a client that terminates during its login is disconnected without a word none of them is a line in the log', () => {
  expect(log.filter((line) => !line.startsWith('info'))).toEqual([]);
});

test('a client that terminates while its login waits for a server leaves the queue, and is not answered', async () => {
  // The server neither accepts nor refuses a login.
  const silent = await ScriptedServer.start({ greets: false });
  const pooler = await startTestPooler(silent.db);
  const socket = await open(pooler);
  const words = untilClosed(socket);
  const { user, database } = silent.db;
  socket.write(startupPacket(StartupCode.version30, { user, database }));
  await expect.poll(() => pooler.pooler.stats().pools[0]?.waiting).toBe(1);
  socket.write(terminate);
  expect(await words).toBe('');
  await expect.poll(() => pooler.pooler.stats().pools[0]?.waiting).toBe(0);
});

test.each([
  ['without TLS', false],
  ['with TLS', true],
])('node-postgres connects and ends at once %s, without an error', async (_, isEncrypted) => {
  const { host, port, user, password, database } = isEncrypted ? encrypting : plain;
  const ssl = isEncrypted && { ca, checkServerIdentity: () => undefined };
  for (let run = 0; run < 20; run++) {
    const client = new pg.Client({ host, port, user, password, database, ssl });
    const errors: Error[] = [];
    client.on('error', (error) => errors.push(error));
    client.connect().catch((error: Error) => errors.push(error));
    // Before it is connected, and at different moments after that.
    for (let turn = 0; turn < run; turn++) await new Promise((resolve) => setImmediate(resolve));
    await client.end();
    // Its own word for a connection that it has ended itself.
    expect(errors.filter(({ message }) => message !== 'Connection terminated')).toEqual([]);
  }
});
