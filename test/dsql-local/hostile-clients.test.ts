// Clients that break the protocol, go silent or leave: the stand-in keeps serving, and nothing of them is left.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../support/dsql-local.js';
import { nextTurn, rejectionOf } from '../support/outcomes.js';
import { int32, message, RawDialer, startup } from '../support/raw-dsql-client.js';

let dsql: TestDsql;
let dialer: RawDialer;
let token: string;
let filesBefore: number;
let processesBefore: number;
const folder = mkdtempSync(join(tmpdir(), 'headgate-hostile-'));
// PostgreSQL runs as another user where the tests run as root.
chmodSync(folder, 0o711);

beforeAll(async () => {
  dsql = await startTestDsql({
    dataFolder: join(folder, 'kept'),
    loginTimeoutMs: 3_000,
    connectionBurst: 10_000,
  });
  dialer = new RawDialer(dsql);
  token = await dsql.token();
  // The first connection leaves things behind that are made once: a TLS session, compiled code.
  await serves();
  filesBefore = openFiles();
  processesBefore = serverProcesses();
});
afterAll(async () => {
  await dsql.stop();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(async () => {
  await serves();
  while (openFiles() > filesBefore || serverProcesses() > processesBefore) await delay(5);
  expect(dsql.connectionCounts().open).toBe(0);
  expect(dsql.troubles).toEqual([]);
});

async function serves(): Promise<void> {
  await servesOne();
  while (dsql.connectionCounts().open > 0) await nextTurn();
}

/** Connects, asks and leaves: by then, what was sent before has come. */
async function servesOne(): Promise<void> {
  const client = await dsql.connect();
  expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  await client.end();
}

/** 0 where the system can't be asked. */
function openFiles(): number {
  return process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0;
}

function serverProcesses(): number {
  if (process.platform !== 'linux') return 0;
  const [pid] = readFileSync(join(folder, 'kept/postgres/postmaster.pid'), 'utf8').split('\n');
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').length;
}

const admin = startup({ user: 'admin', database: 'postgres' });
const many = Array.from({ length: 50 });
const closed = (socket: Socket): Promise<unknown> => {
  socket.resume();
  return socket.closed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve));
};

test('clients that go silent, at whatever step of the login, are disconnected when their time is over', async () => {
  const plain = async (bytes: Buffer): Promise<Socket> => {
    const socket = dialer.plain();
    socket.write(bytes);
    return socket;
  };
  const secure = async (bytes: Buffer): Promise<Socket> => {
    const socket = await dialer.secure();
    socket.write(bytes);
    return socket;
  };
  const steps = [
    async () => dialer.plain(),
    // Half an SSLRequest, and a whole one.
    () => plain(int32(8)),
    () => plain(Buffer.concat([int32(8), int32(80877103)])),
    () => dialer.secure(),
    () => secure(admin.subarray(0, 20)),
    () => secure(admin),
    async () => {
      const socket = await secure(admin);
      await once(socket, 'data');
      socket.write(message('p', `${token}\0`).subarray(0, 100));
      return socket;
    },
  ];
  const sockets = await Promise.all(many.flatMap(() => steps.map((dial) => dial())));
  await serves();
  await Promise.all(sockets.map(closed));
  expect(dsql.connectionCounts()).toMatchObject({ refused: {} });
});

const garbage = (length: number): Buffer => randomBytes(length);
test.each<[string, () => Promise<Socket>]>([
  [
    'garbage',
    async () => {
      const socket = dialer.plain();
      // Not the first byte of TLS.
      socket.write(Buffer.concat([Buffer.from([0xff]), garbage(2_000)]));
      return socket;
    },
  ],
  [
    'garbage that begins like TLS',
    async () => {
      const socket = dialer.plain();
      socket.write(Buffer.concat([Buffer.from([0x16, 3, 1, 0, 200]), garbage(500)]));
      return socket;
    },
  ],
  [
    'HTTP',
    async () => {
      const socket = dialer.plain();
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      return socket;
    },
  ],
  [
    'garbage through TLS',
    async () => {
      const socket = await dialer.secure();
      socket.write(garbage(20_000));
      return socket;
    },
  ],
  [
    'a startup packet of 1 GB',
    async () => {
      const socket = await dialer.secure();
      socket.write(int32(1_000_000_000));
      return socket;
    },
  ],
  [
    'a query in place of the token',
    async () => {
      const socket = await dialer.secure();
      socket.write(Buffer.concat([admin, message('Q', 'SELECT 1\0')]));
      return socket;
    },
  ],
  [
    'the token before they are asked for it',
    async () => {
      const socket = await dialer.secure();
      socket.write(Buffer.concat([admin, message('p', `${token}\0`)]));
      return socket;
    },
  ],
  [
    'a message of an unknown type',
    async () => {
      const { socket } = await dialer.logIn(token);
      socket.write(message('?', ''));
      return socket;
    },
  ],
  [
    'a Bind message that is too short',
    async () => {
      const { socket } = await dialer.logIn(token);
      socket.write(Buffer.concat([message('B', 'x'), message('S', '')]));
      return socket;
    },
  ],
  [
    'a length of less than 4',
    async () => {
      const { socket } = await dialer.logIn(token);
      socket.write(Buffer.concat([Buffer.from('Q'), int32(3)]));
      return socket;
    },
  ],
])('clients that send %s are disconnected', async (_what, dial) => {
  const sockets = await Promise.all(many.map(dial));
  await Promise.all(sockets.map(closed));
});

test('a client that sends a message of 20 MB is disconnected without a word, and one of 9 MB is answered', async () => {
  const client = await dsql.connect();
  const text = 'x'.repeat(9 * 1_048_576);
  expect((await client.query('SELECT length($1) AS n', [text])).rows).toEqual([{ n: text.length }]);
  const error = await rejectionOf(client.query('SELECT length($1)', ['x'.repeat(20 * 1_048_576)]));
  expect(error.message).toMatch(/Connection terminated unexpectedly|EPIPE|ECONNRESET/);
});

test('clients that send 500 wrong tokens are refused, all of them, and take no place', async () => {
  const answers = new Set<string>();
  const wrong = [token.slice(0, -1), `${token}0`, token.replace('Admin', ''), '', 'x'.repeat(20_000)];
  for (let round = 0; round < 20; round += 1) {
    const logins = await Promise.all(
      [...wrong, ...wrong, ...wrong, ...wrong, ...wrong].map((text) => dialer.logIn(text)),
    );
    for (const { answer } of logins) answers.add(answer);
  }
  expect([...answers]).toEqual(['08006 unable to accept connection, access denied']);
});

test.each([
  'during the TLS handshake',
  'after the startup packet',
  'right after the token',
  'in the middle of a statement',
  'with a transaction open',
  'while an answer comes that they do not read',
])('clients that leave %s leave nothing behind', async (when) => {
  const leave = async (): Promise<void> => {
    if (when === 'during the TLS handshake') {
      const socket = dialer.plain();
      socket.write(Buffer.from([0x16, 3, 1, 0, 200]));
      await once(socket, 'connect');
      socket.destroy();
      return;
    }
    if (when === 'after the startup packet' || when === 'right after the token') {
      const socket = await dialer.secure();
      socket.write(admin);
      await once(socket, 'data');
      if (when === 'right after the token') socket.write(message('p', `${token}\0`));
      socket.destroy();
      return;
    }
    const { socket } = await dialer.logIn(token);
    // Each has an answer that begins, and only that of BEGIN has an end.
    const statement = {
      'in the middle of a statement': `SELECT repeat('x', 1000) FROM generate_series(1, 100) UNION ALL SELECT pg_sleep(600)::text`,
      'with a transaction open': 'BEGIN',
    }[when];
    socket.write(
      message('Q', `${statement ?? 'SELECT repeat(n::text, 100) FROM generate_series(1, 200000) n'}\0`),
    );
    await once(socket, 'data');
    socket.pause();
    await servesOne();
    socket.destroy();
  };
  await Promise.all(many.slice(0, 10).map(leave));
});
