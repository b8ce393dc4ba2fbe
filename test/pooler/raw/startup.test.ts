import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gssEncRequest, sslRequest } from '../../../src/wire/fixed-messages.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase, withDatabase } from '../../support/postgres.js';
import { greet, nextByte, open, readGreeting, startupPacket } from './greeting.js';

const { version30, version32 } = StartupCode;

let db: TestDatabase;
let pooler: TestPooler;
const log: string[] = [];
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(
    db,
    { limits: { maxClientConn: 50 } },
    { host: { log: (level, message) => log.push(`${level} ${message}`) } },
  );
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

function packet(more: Readonly<Record<string, string>> = {}, version: number = version30): Buffer {
  return startupPacket(version, { user: db.user, database: db.database, ...more });
}

test('the first packet is understood wherever it is cut', async () => {
  const whole = packet({ application_name: 'cut' });
  const { lines } = await greet(pooler, whole);
  expect(lines.at(-1)).toBe('Z');
  for (let at = 1; at < whole.length; at += 7)
    expect((await greet(pooler, whole.subarray(0, at), whole.subarray(at))).lines).toEqual(lines);
  const bytes = Array.from(whole, (byte) => Buffer.of(byte));
  expect((await greet(pooler, ...bytes)).lines).toEqual(lines);
});

test('the first packet of another major version is refused with 0A000', async () => {
  for (const version of [0x0002_0000, 0x0004_0000]) {
    const { error } = await greet(pooler, packet({}, version));
    expect(error).toMatchObject({ severity: 'FATAL', code: '0A000' });
  }
});

test('the first packet of a newer minor version, or with options of the protocol, is negotiated once, and the session goes on', async () => {
  const { types, negotiated } = await greet(pooler, packet({ '_pq_.test': '1' }, 0x0003_0000 + 9999));
  expect(types.match(/v/g)).toHaveLength(1);
  expect(types.indexOf('v')).toBeLessThan(types.indexOf('R'));
  expect(types.endsWith('Z')).toBe(true);
  expect(negotiated).toEqual({ version: version32, unknownOptions: ['_pq_.test'] });
  const older = await greet(pooler, packet({ '_pq_.test': '1' }));
  expect(older.negotiated).toEqual({ version: version30, unknownOptions: ['_pq_.test'] });
});

test('the first packet decides how long the cancel key is: 4 bytes, and 32 from 3.2 on; the process id is positive', async () => {
  for (const [version, secretBytes] of [
    [version30, 4],
    [version32, 32],
  ] as const) {
    const { key, negotiated } = await greet(pooler, packet({}, version));
    expect(key?.secretBytes).toBe(secretBytes);
    expect(key?.processId).toBeGreaterThan(0);
    expect(negotiated).toBeUndefined();
  }
});

test('the first packet without a user is refused with 28000', async () => {
  const { error } = await greet(pooler, startupPacket(version30, { database: db.database }));
  expect(error).toMatchObject({ severity: 'FATAL', code: '28000' });
});

test('the first packet without a database means the database with the name of the user', async () => {
  const { error } = await greet(pooler, startupPacket(version30, { user: 'somebody' }));
  expect(error).toMatchObject({
    severity: 'FATAL',
    code: '3D000',
    message: 'database "somebody" does not exist',
  });
});

test('the first packet that asks for replication is refused in the words of a server that has no walsenders', async () => {
  for (const replication of ['true', 'database', '1'])
    expect((await greet(pooler, packet({ replication }))).error).toMatchObject({
      severity: 'FATAL',
      code: '53300',
      message: expect.stringContaining('max_wal_senders'),
    });
  expect((await greet(pooler, packet({ replication: 'maybe' }))).error).toMatchObject({ code: '22023' });
  expect((await greet(pooler, packet({ replication: 'false' }))).types.endsWith('Z')).toBe(true);
});

test('the first packet that is too long, too short or nonsense is refused with 08P01', async () => {
  const tooLong = Buffer.alloc(8);
  tooLong.writeInt32BE(10_005, 0);
  const negative = Buffer.from([0x80, 0, 0, 8, 0, 3, 0, 0]);
  const tooShort = Buffer.from([0, 0, 0, 7, 0, 3, 0]);
  const unfinished = Buffer.from([0, 0, 0, 12, 0, 3, 0, 0, 0x75, 0x73, 0x65, 0x72]);
  for (const bad of [tooLong, negative, tooShort, unfinished])
    expect((await greet(pooler, bad)).error).toMatchObject({ severity: 'FATAL', code: '08P01' });
});

test('the first packet may never come: a check whether the port listens is not logged', async () => {
  const before = log.length;
  const socket = await open(pooler);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.end();
  await closed;
  (await open(pooler)).destroy();
  (await open(pooler)).resetAndDestroy();
  await greet(pooler, packet());
  const added = log.slice(before).filter((line) => !/^info client (?:dis)?connected/.test(line));
  expect(added).toEqual([]);
});

test('a wish for encryption is answered with N where there is none, in any order, and the client goes on in plain text', async () => {
  for (const wishes of [
    [sslRequest],
    [gssEncRequest],
    [sslRequest, gssEncRequest],
    [gssEncRequest, sslRequest],
  ]) {
    const socket = await open(pooler);
    for (const wish of wishes) {
      socket.write(wish);
      expect(await nextByte(socket)).toBe('N');
    }
    socket.write(packet());
    expect((await readGreeting(socket)).types.endsWith('Z')).toBe(true);
  }
});

test('a wish for encryption that comes a second time is refused with 08P01', async () => {
  for (const wish of [sslRequest, gssEncRequest]) {
    const socket = await open(pooler);
    socket.write(wish);
    expect(await nextByte(socket)).toBe('N');
    socket.write(wish);
    expect((await readGreeting(socket)).error).toMatchObject({ severity: 'FATAL', code: '08P01' });
  }
});

test('a request for encryption with bytes behind it is refused: they may be from a man in the middle', async () => {
  for (const wish of [sslRequest, gssEncRequest]) {
    const { error } = await greet(pooler, Buffer.concat([wish, packet()]));
    expect(error).toMatchObject({ severity: 'FATAL', code: '08P01' });
  }
});

test('a wish for encryption by TLS from the first byte, where there is none, ends the connection', async () => {
  const socket = await open(pooler);
  socket.write(Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]));
  expect(await nextByte(socket)).toBe('closed');
});

describe('settings in the first packet', () => {
  const good: Readonly<Record<string, string>>[] = [
    {},
    { application_name: 'mine' },
    { application_name: 'über' },
    { application_name: 'x'.repeat(100) },
    { client_encoding: 'latin1' },
    { client_encoding: 'utf-8', DateStyle: 'iso', TimeZone: 'utc' },
    { timezone: 'Europe/Berlin', datestyle: 'german', intervalstyle: 'iso_8601' },
    { search_path: 'a, "B c"', statement_timeout: '5000', extra_float_digits: '2' },
    { options: '-c statement_timeout=5s' },
    { options: '-cTimeZone=Asia/Tokyo --application-name=by\\ option' },
    { options: '--application_name=option', application_name: 'packet' },
    { options: "-c my.own=it's\\\\ok" },
  ];
  test.each(good)('settings in the first packet mean what they mean to the server: %j', async (settings) => {
    const expected = await greet(db, packet(settings));
    const found = await greet(pooler, packet(settings));
    expect(new Map([...found.parameters].sort())).toEqual(new Map([...expected.parameters].sort()));
    expect(found.error).toBeUndefined();
    // The second time no server has to be asked.
    expect((await greet(pooler, packet(settings))).parameters).toEqual(found.parameters);
  });

  const bad: Readonly<Record<string, string>>[] = [
    { client_encoding: 'klingon' },
    { timezone: 'Nowhere/Land' },
    { no_such_setting: '1' },
    { statement_timeout: 'soon' },
    { server_version: '1' },
    { options: '-c no_such_setting=1' },
    { options: '-c work_mem' },
    { options: 'work_mem=4MB' },
  ];
  test.each(bad)(
    'settings in the first packet are refused as the server refuses them: %j',
    async (settings) => {
      const expected = await greet(db, packet(settings));
      const found = await greet(pooler, packet(settings));
      expect(expected.error?.severity).toBe('FATAL');
      expect(found.error).toMatchObject({ severity: 'FATAL', code: expected.error?.code });
      expect(found.types).not.toContain('Z');
    },
  );

  test('settings in the first packet may be written as in a URL, with a plus for a space', async () => {
    const { parameters } = await greet(
      pooler,
      packet({ options: '-c+TimeZone=Asia/Tokyo+-c+DateStyle=german' }),
    );
    expect([parameters.get('TimeZone'), parameters.get('DateStyle')]).toEqual(['Asia/Tokyo', 'German, DMY']);
  });

  test('settings in the first packet hold for every statement of the session', async () => {
    const client = await pooler.connect({ options: '-c statement_timeout=4321 -c my.own=x' });
    const { rows } = await client.query(
      "select current_setting('statement_timeout') as a, current_setting('my.own') as b",
    );
    expect(rows).toEqual([{ a: '4321ms', b: 'x' }]);
    const other = await pooler.connect();
    const others = await other.query(
      "select current_setting('statement_timeout') as a, current_setting('my.own', true) as b",
    );
    expect(others.rows[0].a).toBe('0');
    expect(others.rows[0].b ?? '').toBe('');
  });

  test('settings in the first packet are told to be ignored by the configuration', async () => {
    const lenient = await startTestPooler(db, { pooling: { ignoreStartupParameters: ['no_such_setting'] } });
    expect((await greet(lenient, packet({ no_such_setting: '1' }))).types.endsWith('Z')).toBe(true);
  });

  test.each(['-c no_such_setting=1 -c statement_timeout=1234 -c TimeZone=Asia/Tokyo', 'endpoint=somewhere'])(
    'settings in the first packet are ignored as PgBouncer does it where the options are to be: %s',
    async (options) => {
      const lenient = await startTestPooler(db, { pooling: { ignoreStartupParameters: ['options'] } });
      const client = await lenient.connect({ options });
      const { rows } = await client.query(
        "select current_setting('statement_timeout') as timeout, current_setting('timezone') as zone",
      );
      expect(rows[0].timeout).toBe('0');
      expect(rows[0].zone === 'Asia/Tokyo').toBe(options.includes('TimeZone'));
    },
  );

  test('the name of the application can have the address of the client added', async () => {
    const adding = await startTestPooler(db, { pooling: { applicationNameAddHost: true } });
    const { parameters } = await greet(adding, packet({ application_name: 'app' }));
    expect(parameters.get('application_name')).toMatch(/^app - 127\.0\.0\.1:\d+$/);
  });
});

test('a client is sent away with 3D000 when the database does not exist', async () => {
  const { error, types } = await greet(pooler, packet({ database: 'nowhere' }));
  expect(error).toMatchObject({ severity: 'FATAL', code: '3D000' });
  expect(types).not.toContain('Z');
});

test('a client is sent away with 53300 and the number when there are too many, in all, of its user or of its database', async () => {
  const cases = [
    { limits: { maxClientConn: 1 } },
    { limits: { maxUserClientConnections: 1 } },
    { limits: { maxDbClientConnections: 1 } },
  ];
  for (const tree of cases) {
    const full = await startTestPooler(db, tree);
    const first = await full.connect();
    const { error } = await greet(full, packet());
    expect(error).toMatchObject({ severity: 'FATAL', code: '53300' });
    expect(error?.message).toContain('1');
    await first.end();
    // The place is free again.
    await expect.poll(async () => (await greet(full, packet())).types.endsWith('Z')).toBe(true);
  }
});

test('a client is sent away with what the server says when the server refuses', async () => {
  const { databases } = { databases: { gone: { host: db.host, port: db.port, password: db.password } } };
  const elsewhere = await startTestPooler(db, { databases });
  const { error } = await greet(elsewhere, packet({ database: 'gone' }));
  expect(error).toMatchObject({ severity: 'FATAL', code: '3D000' });
  expect(error?.message).toContain('"gone" does not exist');
});

test('a client is sent away with 08001 when there is no server', async () => {
  const { databases } = { databases: { down: { host: '127.0.0.1', port: 1, password: 'x' } } };
  const down = await startTestPooler(db, { databases, pooling: { serverLoginRetry: '10ms' } });
  const { error } = await greet(down, packet({ database: 'down' }));
  expect(error).toMatchObject({ severity: 'FATAL', code: '08001' });
});

test('a client is sent away with 57014 when it takes too long to say who it is', async () => {
  const impatient = await startTestPooler(db, { timeouts: { clientLoginTimeout: '50ms' } });
  const { error } = await greet(impatient, packet().subarray(0, 20));
  expect(error).toMatchObject({ severity: 'FATAL', code: '57014' });
});

test('a notice can greet every client', async () => {
  const polite = await startTestPooler(db, { admin: { loginNotifyMessage: 'be nice' } });
  const { lines } = await greet(polite, packet());
  expect(lines).toContain('N NOTICE 00000 be nice');
});

test('parameters that the server reports are asked for once, and followed when they change', async () => {
  const server = await startPostgres();
  const own: TestDatabase = { ...server, drop: () => server.stop() };
  const watching = await startTestPooler(own);
  const first = await greet(watching, startupPacket(version30, { user: own.user, database: own.database }));
  expect(first.parameters.get('server_version')).toMatch(/^\d+/);
  const clients = await Promise.all([watching.connect(), watching.connect(), watching.connect()]);
  expect(watching.pooler.stats().pools[0]?.totals.opened).toBe(1);
  await clients[0]?.query("alter system set timezone = 'Asia/Tokyo'");
  await clients[0]?.query('select pg_reload_conf()');
  await clients[0]?.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {});
  await expect
    .poll(async () => {
      const again = await watching.connect();
      const { rows } = await again.query('show timezone');
      const packetOfAnother = startupPacket(version30, { user: own.user, database: own.database });
      const { parameters } = await greet(watching, packetOfAnother);
      return [rows[0].TimeZone, parameters.get('TimeZone')];
    })
    .toEqual(['Asia/Tokyo', 'Asia/Tokyo']);
});
