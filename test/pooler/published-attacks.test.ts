// Attacks on PgBouncer that were published in 2025 and 2026, tried here. Each test has the number of the report in its name.
import { type AddressInfo, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
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

const requests = {
  'a request for TLS': Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]),
  'a request for GSS encryption': Buffer.from([0, 0, 0, 8, 4, 210, 22, 48]),
  'a cancel request': Buffer.from([0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 1]),
  'half a startup packet': Buffer.from([0, 0, 0, 100, 0, 3, 0, 0, 117]),
  'a startup packet with options=-c=': startupPacket(version30, {
    user: 'x',
    database: 'missing',
    options: '-c=',
  }),
  'a startup packet for the console': startupPacket(version30, { user: 'x', database: 'headgate' }),
  'a startup packet for replication': startupPacket(version30, { user: 'x', replication: 'true' }),
};

test.each(
  Object.entries(requests).flatMap(([what, packet]) =>
    ['scram-sha-256', 'md5', 'plain'].map((type) => ({ what, packet, type })),
  ),
)(
  'CVE-2026-107350: $what in the middle of a login by $type ends that login, and nothing else',
  async ({ packet, type }) => {
    const pooler = await startTestPooler(db, {
      ...withUser(),
      auth: { type, allowUnencryptedPasswords: true },
    });
    for (const database of [db.database, 'missing']) {
      const first = startupPacket(version30, { user: db.user, database });
      expect(await fatalAfter(pooler, first, packet)).toBe('FATAL 08P01');
      // In one piece, as if it had not waited for the question.
      expect(await fatalAfter(pooler, Buffer.concat([first, packet]))).toBe('FATAL 08P01');
    }
    await expectServed(pooler);
  },
);

test.each([
  '-c x=',
  '-c x=y',
  '--x=',
  '-cx=',
  '-c=a -c=b',
  '-c a=b -c=',
  `${'-c='.repeat(3_000)}`,
  `${'-c a='.repeat(1_800)}`,
])(
  'CVE-2026-107349: options=%.40j are refused by the pooler or the server, also where PgBouncer ignores them',
  async (options) => {
    const packet = startupPacket(version30, { user: db.user, database: db.database, options });
    const usual = await startTestPooler(db);
    expect(
      await fatalAfter(
        usual,
        packet,
        written((writer) => writeQuery(writer, 'select 1')),
      ),
    ).not.toBe('nothing');
    const ignoring = await startTestPooler(db, {
      admin: { compatibility: 'pgbouncer' },
      pooling: { poolSize: 3, ignoreStartupParameters: ['options'] },
    });
    const session = await RawSession.open(ignoring);
    session.socket.write(packet);
    expect((await session.next()).type).toBe('R'.charCodeAt(0));
    session.socket.destroy();
    await expectServed(usual);
    await expectServed(ignoring);
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

/** A SASLInitialResponse whose response says that it has so many bytes. */
function initialResponse(length: number): Buffer {
  const message = Buffer.from(`p\0\0\0\0${scram}\0\0\0\0\0n,,n=,r=abcdefghijklmnop`);
  message.writeInt32BE(message.length - 1, 1);
  message.writeInt32BE(length, 6 + scram.length);
  return message;
}

test.each([-2, -2_147_483_648, 2_147_483_647, 0x4000_0000, 23, 25])(
  'CVE-2026-107348, CVE-2026-6668 and CVE-2026-6664: a first SCRAM response that says it has %i bytes ends the login',
  async (length) => {
    const pooler = await startTestPooler(db, withUser());
    const packet = startupPacket(version30, { user: db.user, database: db.database });
    expect(await fatalAfter(pooler, packet, initialResponse(length))).toBe('FATAL 08P01');
    await expectServed(pooler);
  },
);

test.each(['scram-sha-256', 'md5', 'plain'])(
  'CVE-2026-107348, CVE-2026-6668 and CVE-2026-6664: lengths that overflow end a login by %s at every step',
  async (type) => {
    const pooler = await startTestPooler(db, {
      ...withUser(),
      auth: { type, allowUnencryptedPasswords: true },
    });
    const packet = startupPacket(version30, { user: db.user, database: db.database });
    const steps = type === 'scram-sha-256' ? [[packet], [packet, firstResponse]] : [[packet]];
    for (const step of steps)
      for (const length of [...lengths, 65_537]) {
        const outcome = await fatalAfter(pooler, ...step, withLength(Frontend.password, length));
        expect({ length, outcome }).toEqual({ length, outcome: 'FATAL 08P01' });
      }
    // A password that does not end, and one after which something follows.
    for (const body of ['p\0\0\0\x07abc', 'p\0\0\0\x08a\0b\0'])
      expect(await fatalAfter(pooler, packet, Buffer.from(body))).toMatch(/^FATAL (?:08P01|28P01)$/);
    await expectServed(pooler);
  },
);

test('CVE-2026-107348, CVE-2026-6668 and CVE-2026-6664: wrong lengths of requests before the startup packet end the connection', async () => {
  const pooler = await startTestPooler(db);
  for (const code of [80_877_102, 80_877_103, 80_877_104])
    for (const length of [...lengths, 4, 7, 9, 11, 13, 10_001]) {
      const request = Buffer.alloc(32);
      request.writeInt32BE(length, 0);
      request.writeInt32BE(code, 4);
      const session = await RawSession.open(pooler);
      session.socket.end(request);
      await session.lastWords();
      expect(session.isClosed).toBe(true);
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
  ['with a nonce of its own', 'c=biws,r=abcdefghijklmnopxyz,p=AAAA'],
  ['with its half of the nonce', 'c=biws,r=abcdefghijklmnop,p=AAAA'],
  ['with the nonce after the proof', 'c=biws,p=AAAA,r=abcdefghijklmnop'],
  ['with two nonces', 'c=biws,r=abcdefghijklmnop,r=abcdefghijklmnop,p=AAAA'],
  ['without a proof', 'c=biws,r=abcdefghijklmnop'],
  ['with commas alone', ',,,,,'],
  ['with bytes that are no text', '\xff\0\xfe'],
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

/** A server that begins SCRAM with this message, in which `NONCE` is the pooler's. */
async function maliciousServer(serverFirst: string): Promise<{ db: TestDatabase; answers: () => number }> {
  let answers = 0;
  const authentication = (code: number, body: string): Buffer => {
    const message = Buffer.from(`R\0\0\0\0\0\0\0\0${body}`);
    message.writeInt32BE(message.length - 1, 1);
    message.writeInt32BE(code, 5);
    return message;
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      const nonce = /r=([^,]+)$/.exec(bytes.toString('latin1'))?.[1];
      if (bytes[0] !== Frontend.password) socket.write(authentication(10, `${scram}\0\0`));
      else if (bytes.includes(scram))
        socket.write(authentication(11, serverFirst.replace('NONCE', nonce ?? '')));
      else answers++;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { db: { ...db, host: '127.0.0.1', port, password: 'secret' }, answers: () => answers };
}

test.each([
  'r=NONCEx,s=c2FsdHNhbHQ=,i=1000001',
  'r=NONCEx,s=c2FsdHNhbHQ=,i=2147483647',
  'r=NONCEx,s=c2FsdHNhbHQ=,i=4294967296',
  'r=NONCEx,s=c2FsdHNhbHQ=,i=99999999999999999999',
  'r=NONCEx,s=c2FsdHNhbHQ=,i=1e9',
  'r=NONCEx,s=c2FsdHNhbHQ=,i=0',
  'r=NONCEx,s=c2FsdHNhbHQ=,i=-1',
  'r=NONCEx,s=c2FsdHNhbHQ=,i=',
  'r=NONCEx,s=c2FsdHNhbHQ=',
  'r=NONCE,s=c2FsdHNhbHQ=,i=4096',
  'r=another,s=c2FsdHNhbHQ=,i=4096',
  'r=NONCE2000 times x,s=c2FsdHNhbHQ=,i=4096',
])('CVE-2026-6669: the pooler answers no server that begins SCRAM with %.60j', async (serverFirst) => {
  const server = await maliciousServer(serverFirst.replace('2000 times x', 'x'.repeat(2_000)));
  const pooler = await startTestPooler(server.db);
  await expect(pooler.connect().then((client) => client.query('select 1'))).rejects.toMatchObject({
    code: expect.stringMatching(/^(?:08|28)/),
  });
  expect(server.answers()).toBe(0);
});

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
    auth: {
      type: 'scram-sha-256',
      user,
      query: 'select name, secret from app_users where name = $1',
      failedLoginDelay: 0,
    },
    users: { [user]: { password } },
    databases: { [database]: { host, port, user, password } },
    pooling: { poolSize: 1 },
  });
  const options = '-c search_path=evil';
  const packets: pg.ClientConfig[] = [
    { options },
    { options: '--search_path=evil' },
    { options: '-csearch-path=evil,public' },
    { options: '-c search_path=evil -c search_path=evil' },
    { options, database },
  ];
  for (const packet of packets)
    await expect(pooler.connect({ user: 'victim', password: 'forged', ...packet })).rejects.toMatchObject({
      code: '28P01',
    });
  const bySetting = RawSession.start({ ...pooler, user: 'victim', password: 'forged' }, version30, [
    ['search_path', 'evil'],
  ]);
  await expect(bySetting).rejects.toThrow();
  const known = await RawSession.start({ ...pooler, user: 'victim', password: 'right' }, version30, [
    ['search_path', 'evil'],
  ]);
  known.socket.destroy();
  // Left by the user on the server connection that asks.
  for (const text of [
    'set search_path = evil',
    "select set_config('search_path', 'evil', false)",
    'begin; set local search_path = evil; select 1',
    "create temp table app_users as select 'victim' as name, 'forged' as secret",
    'set search_path = evil; prepare q as select 1; listen x',
  ]) {
    const asker = await pooler.connect({ user, password });
    await asker.query(text);
    await asker.end();
    const forged = pooler.connect({ user: 'victim', password: 'forged' });
    await expect(forged, text).rejects.toMatchObject({ code: '28P01' });
  }
  // On the only server connection, which a client has had that looks there.
  const client = await pooler.connect({ user: 'victim', password: 'right', options });
  expect((await client.query('select secret from app_users')).rows).toEqual([{ secret: 'forged' }]);
  await expect(pooler.connect({ user: 'victim', password: 'forged' })).rejects.toMatchObject({
    code: '28P01',
  });
});
