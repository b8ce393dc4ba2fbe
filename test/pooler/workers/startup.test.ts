// The first bytes of a client are read by the supervisor, and the worker goes on as if it had read them itself.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { connect as tlsConnect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gssEncRequest, sslRequest, terminate } from '../../../src/wire/fixed-messages.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { greet, nextByte, open, type Place, readGreeting, startupPacket } from '../raw/greeting.js';
import { type Served, serve } from './served.js';

const certificates = join(import.meta.dirname, '../../net/certificates');

let db: TestDatabase;
let served: Served;
let place: Place;

beforeAll(async () => {
  db = await withDatabase();
  served = await serve(db, { timeouts: { clientLoginTimeout: '2s' } });
  place = { host: '127.0.0.1', port: served.port };
});
afterAll(async () => {
  await served.end();
  await db.drop();
});

function packet(
  more: Readonly<Record<string, string>> = {},
  version: number = StartupCode.version30,
): Buffer {
  return startupPacket(version, { user: db.user, database: db.database, ...more });
}

function query(text: string): Buffer {
  const body = Buffer.from(`${text}\0`);
  const head = Buffer.from([0x51, 0, 0, 0, 0]);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** All that comes until there is this text in it, or the connection ends. */
async function until(socket: Awaited<ReturnType<typeof open>>, text: string): Promise<string> {
  let seen = '';
  for await (const chunk of socket) {
    seen += (chunk as Buffer).toString('latin1');
    if (seen.includes(text)) break;
  }
  return seen;
}

test('the startup packet of a client of several workers is understood wherever it is cut', async () => {
  const whole = packet({ application_name: 'cut' });
  for (let at = 1; at < whole.length; at += 9)
    expect((await greet(place, whole.subarray(0, at), whole.subarray(at))).lines.at(-1)).toBe('Z');
  expect((await greet(place, ...Array.from(whole, (byte) => Buffer.of(byte)))).lines.at(-1)).toBe('Z');
});

test('the startup packet of a client of several workers may come with queries behind it, which are answered', async () => {
  const socket = await open(place);
  const texts = Array.from({ length: 2_000 }, (_, n) => query(`select 'answer ${n}' as a`));
  socket.write(Buffer.concat([packet(), ...texts]));
  const seen = await until(socket, 'answer 1999');
  expect(seen.match(/answer \d+/g)).toEqual(texts.map((_, n) => `answer ${n}`));
  socket.destroy();
});

test('the startup packet of a client of several workers may come in halves with a pause between them, longer than it is waited for', async () => {
  const socket = await open(place);
  const whole = packet();
  socket.write(whole.subarray(0, 20));
  setTimeout(() => socket.write(whole.subarray(20)), 1_300);
  expect((await readGreeting(socket)).lines.at(-1)).toBe('Z');
});

test('the startup packet of a client of several workers that never comes is too late after client_login_timeout', async () => {
  const socket = await open(place);
  socket.write(packet().subarray(0, 20));
  const { error } = await readGreeting(socket);
  expect(error).toMatchObject({ severity: 'FATAL', code: '57014' });
});

test.each([
  ['of another major version', () => packet({}, 0x0004_0000), '0A000'],
  ['without a user', () => startupPacket(StartupCode.version30, { database: 'app' }), '28000'],
  ['for a database that is not there', () => packet({ database: 'nowhere' }), '3D000'],
  ['that is too short', () => Buffer.from([0, 0, 0, 7, 0, 3, 0, 0]), '08P01'],
  ['that is too long', () => Buffer.from([0, 1, 0, 0, 0, 3, 0, 0]), '08P01'],
  ['that is nonsense', () => Buffer.from('GET / HTTP/1.1\r\n\r\n'), '08P01'],
  ['with a text that does not end', () => Buffer.from([0, 0, 0, 9, 0, 3, 0, 0, 0x75]), '08P01'],
])(
  'the startup packet of a client of several workers %s is refused by the worker',
  async (_, bytes, code) => {
    expect((await greet(place, bytes())).error).toMatchObject({ severity: 'FATAL', code });
  },
);

test('the startup packet of a client of several workers that is a Terminate ends the connection without an answer', async () => {
  const socket = await open(place);
  socket.write(terminate);
  expect(await nextByte(socket)).toBe('closed');
});

test.each([
  ['ssl', [sslRequest]],
  ['gssenc', [gssEncRequest]],
  ['ssl, gssenc', [sslRequest, gssEncRequest]],
  ['gssenc, ssl', [gssEncRequest, sslRequest]],
])(
  'a request for encryption to several workers without any is declined, and the client goes on in plain text: %s',
  async (_, requests) => {
    const socket = await open(place);
    for (const request of requests) {
      socket.write(request);
      expect(await nextByte(socket)).toBe('N');
    }
    socket.write(packet());
    expect((await readGreeting(socket)).lines.at(-1)).toBe('Z');
  },
);

test('a request for encryption to several workers without any that comes a second time is refused with 08P01', async () => {
  for (const request of [sslRequest, gssEncRequest]) {
    const socket = await open(place);
    socket.write(request);
    expect(await nextByte(socket)).toBe('N');
    socket.write(request);
    expect((await readGreeting(socket)).error).toMatchObject({ severity: 'FATAL', code: '08P01' });
  }
});

test('a request for encryption to several workers without any with bytes behind it is refused with 08P01', async () => {
  for (const request of [sslRequest, gssEncRequest])
    expect((await greet(place, Buffer.concat([request, packet()]))).error).toMatchObject({ code: '08P01' });
});

test('a request for encryption to several workers without any by TLS from the first byte ends the connection', async () => {
  const socket = await open(place);
  socket.write(Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]));
  expect(await nextByte(socket)).toBe('closed');
});

describe('TLS with several workers', () => {
  let encrypted: Served;
  beforeAll(async () => {
    encrypted = await serve(db, {
      clientTls: {
        mode: 'allow',
        keyFile: join(certificates, 'server.key'),
        certFile: join(certificates, 'server.pem'),
      },
    });
  });
  afterAll(() => encrypted.end());

  test('TLS with several workers begins with the worker, after a request or from the first byte', async () => {
    for (const asks of [true, false]) {
      const socket = await open({ host: '127.0.0.1', port: encrypted.port });
      if (asks) {
        socket.write(gssEncRequest);
        expect(await nextByte(socket)).toBe('N');
        socket.write(sslRequest);
        expect(await nextByte(socket)).toBe('S');
      }
      const tls = tlsConnect({ socket, rejectUnauthorized: false, ALPNProtocols: ['postgresql'] });
      tls.write(packet());
      expect((await readGreeting(tls)).lines.at(-1)).toBe('Z');
    }
  });

  test('from the first byte is refused once a request for encryption was declined', async () => {
    const socket = await open({ host: '127.0.0.1', port: encrypted.port });
    socket.write(gssEncRequest);
    expect(await nextByte(socket)).toBe('N');
    socket.write(Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]));
    expect((await readGreeting(socket)).error).toMatchObject({ severity: 'FATAL', code: '08P01' });
  });
});

test.runIf(process.platform === 'linux')(
  'clients that leave before, during and after their startup packet leave no file open in the supervisor',
  async () => {
    const files = (): number => readdirSync(`/proc/${served.child.pid}/fd`).length;
    await greet(place, packet());
    await expect.poll(async () => (await served.workers()).length).toBe(2);
    const before = files();
    for (let n = 0; n < 20; n++) {
      (await open(place)).destroy();
      (await open(place)).resetAndDestroy();
      (await open(place)).end(packet().subarray(0, 20));
      (await open(place)).end(packet());
      (await open(place)).end(sslRequest);
    }
    await expect.poll(files, { timeout: 10_000 }).toBeLessThanOrEqual(before);
    expect((await greet(place, packet())).lines.at(-1)).toBe('Z');
  },
);
