// What was found in PgBouncer and published in 2025 and 2026, tried here. Each test has the number of the report in its name.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ScramClient } from '../../src/pooler/auth/scram-client.js';
import { readErrorFields } from '../../src/wire/error-fields.js';
import { writeQuery, writeSaslInitialResponse, writeSaslResponse } from '../../src/wire/frontend-writers.js';
import { Backend, Frontend, StartupCode } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { RawSession } from '../wire/server/raw-session.js';
import { startupPacket } from './raw/greeting.js';
import { ScriptedServer } from './session/scripted-server.js';

const { version30 } = StartupCode;
const scram = 'SCRAM-SHA-256';
const errorType = 'E'.charCodeAt(0);

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** Sends these bytes, one message after the answer to the one before, and says how that ended. */
async function fatalAfter(pooler: TestPooler, ...messages: readonly Buffer[]): Promise<string> {
  const session = await RawSession.open(pooler);
  for (const [n, message] of messages.entries()) {
    session.socket.write(message);
    if (n < messages.length - 1) await session.next();
  }
  await session.lastWords();
  const { bytes } = session.received.find(({ type }) => type === errorType) ?? {};
  if (bytes === undefined) return 'nothing';
  const { severity, code } = readErrorFields(bytes, 0, bytes.length);
  return `${severity} ${code}`;
}

function written(write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  write(writer);
  return writer.take();
}

const firstResponse = written((writer) =>
  writeSaslInitialResponse(writer, scram, Buffer.from('n,,n=,r=abcdefghijklmnop')),
);

/** A client that does nothing wrong is served as before. */
async function expectServed(pooler: TestPooler): Promise<void> {
  const client = await pooler.connect();
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
}

const withPasswords = { auth: { type: 'scram-sha-256' } };
const withUser = (): Record<string, Record<string, unknown>> => ({
  ...withPasswords,
  users: { [db.user]: { password: db.password } },
});

test.each(['missing', undefined])(
  'CVE-2026-107350: a second startup packet in the middle of SCRAM for the database %s ends that login, and nothing else',
  async (name) => {
    const pooler = await startTestPooler(db, withUser());
    const packet = startupPacket(version30, { user: db.user, database: name ?? db.database });
    expect(await fatalAfter(pooler, packet, packet)).toBe('FATAL 08P01');
    expect(await fatalAfter(pooler, packet, firstResponse, packet)).toBe('FATAL 08P01');
    await expectServed(pooler);
  },
);

test.each(['-c=', '-c =', '-c', '-c=x', '--=', '--', '-c a', '-c=\\', '\\', '-c==', '-', '-c-'])(
  'CVE-2026-107349: options=%j are answered, and do not keep the pooler busy',
  async (options) => {
    const pooler = await startTestPooler(db);
    const packet = startupPacket(version30, { user: db.user, database: db.database, options });
    expect(await fatalAfter(pooler, packet)).toBe('FATAL 42601');
    await expectServed(pooler);
  },
);

/** As they stand in the length word of a message. */
const lengths = [0, 3, -1, -2_147_483_648, 2_147_483_647, 0x4000_0000];

function withLength(type: number, length: number): Buffer {
  const header = Buffer.alloc(9);
  header[0] = type;
  header.writeInt32BE(length, 1);
  return header;
}

test('CVE-2026-107348, CVE-2026-6668 and CVE-2026-6664: lengths that overflow of a client that is in end its session', async () => {
  const pooler = await startTestPooler(db);
  for (const type of Object.values(Frontend).filter((one) => one !== Frontend.password))
    for (const length of lengths) {
      const session = await RawSession.start(pooler, version30);
      session.socket.write(withLength(type, length));
      await session.lastWords();
      const { bytes = Buffer.alloc(0) } = session.received.find(({ type: came }) => came === errorType) ?? {};
      expect(readErrorFields(bytes, 0, bytes.length)).toMatchObject({ severity: 'FATAL', code: '08P01' });
    }
  await expectServed(pooler);
});

test('CVE-2026-107348, CVE-2026-6668 and CVE-2026-6664: lengths that overflow of a startup packet and of a password end the login', async () => {
  const pooler = await startTestPooler(db, withUser());
  const packet = startupPacket(version30, { user: db.user, database: db.database });
  for (const length of lengths) {
    const wrong = Buffer.from(packet);
    wrong.writeInt32BE(length, 0);
    expect(await fatalAfter(pooler, wrong)).toBe('FATAL 08P01');
    expect(await fatalAfter(pooler, packet, withLength(Frontend.password, length))).toBe('FATAL 08P01');
  }
  await expectServed(pooler);
});

// A row may be a GiB.
test.each(lengths.filter((length) => length !== 0x4000_0000))(
  'CVE-2026-107348, CVE-2026-6668 and CVE-2026-6664: lengths that overflow of a server, such as %i, end its connection alone',
  async (length) => {
    const server = await ScriptedServer.start({
      answer: (text, connection) => {
        if (text !== 'hurt') return true;
        connection.say(...withLength(Backend.dataRow, length));
        return false;
      },
    });
    const pooler = await startTestPooler(server.db);
    const session = await RawSession.start(pooler, version30);
    writeQuery(session.writer, 'hurt');
    session.send();
    await session.lastWords();
    expect(session.isClosed).toBe(true);
    const other = await pooler.connect();
    await other.query('select 1');
  },
);

test.each([
  ['without a nonce', 'c=biws,p=AAAA'],
  ['with an empty nonce', 'c=biws,r=,p=AAAA'],
  ['with nothing but a nonce', 'r=abcdefghijklmnop'],
  ['with nothing at all', ''],
])('CVE-2026-19888: a last SCRAM message %s is refused', async (_how, text) => {
  const pooler = await startTestPooler(db, withUser());
  const packet = startupPacket(version30, { user: db.user, database: db.database });
  const last = written((writer) => writeSaslResponse(writer, Buffer.from(text)));
  expect(await fatalAfter(pooler, packet, firstResponse, last)).toMatch(/^FATAL (?:08P01|28P01)$/);
  await expectServed(pooler);
});

test.each([1_000_001, 2_147_483_647, 9_999_999_999])(
  'CVE-2026-6669: a server that asks for %i iterations of SCRAM is refused before any is made',
  (iterations) => {
    const client = new ScramClient({ mechanisms: [scram], nonce: 'abc', endPoint: undefined });
    const first = Buffer.from(`r=abcdef,s=c2FsdHNhbHQ=,i=${iterations}`);
    expect(() => client.readServerFirst(first)).toThrow(/at most 1000000 are made/);
  },
);

test('CVE-2025-12819: the search_path of a client says nothing about where auth_query looks', async () => {
  const admin = new pg.Client({ connectionString: db.url });
  await admin.connect();
  await admin.query(
    `create table app_users (name text, secret text); insert into app_users values ('victim', 'right');
     create schema evil; create table evil.app_users (name text, secret text);
     insert into evil.app_users values ('victim', 'forged')`,
  );
  await admin.end();
  const { host, port, user, password, database } = db;
  const pooler = await startTestPooler(db, {
    auth: { type: 'scram-sha-256', user, query: 'select name, secret from app_users where name = $1' },
    users: { [user]: { password } },
    databases: { [database]: { host, port, user, password } },
    pooling: { poolSize: 1 },
  });
  const options = '-c search_path=evil';
  const refused = pooler.connect({ user: 'victim', password: 'forged', options });
  await expect(refused).rejects.toMatchObject({ code: '28P01' });
  // On the only server connection, which a client has had that looks there.
  const client = await pooler.connect({ user: 'victim', password: 'right', options });
  expect((await client.query('select secret from app_users')).rows).toEqual([{ secret: 'forged' }]);
  await expect(pooler.connect({ user: 'victim', password: 'forged' })).rejects.toMatchObject({
    code: '28P01',
  });
});
