import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { gssEncRequest, sslRequest, sync } from '../../../src/wire/fixed-messages.js';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { ca, material } from '../../net/certificates.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { has } from '../clients/programs.js';
import { nextByte, open, readGreeting, startupPacket } from '../raw/greeting.js';

let db: TestDatabase;
let pooler: TestPooler;
const log: { readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(
    db,
    { clientTls: { mode: 'prefer', keyFile: 'server.key', certFile: 'server.pem' } },
    {
      files: { 'server.pem': material('server').cert, 'server.key': material('server').key },
      host: { log: (_level, message, fields = {}) => log.push({ message, fields }) },
    },
  );
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

function packet(more: Readonly<Record<string, string>> = {}): Buffer {
  return startupPacket(StartupCode.version30, { user: db.user, database: db.database, ...more });
}

function query(text: string): Buffer {
  const writer = new MessageWriter();
  writeQuery(writer, text);
  return writer.take();
}

/** The pooler has said yes on this socket. */
function encrypt(socket: Socket, servername = 'localhost'): Promise<TLSSocket> {
  const encrypted = connectTls({ socket, ca, servername, checkServerIdentity: () => undefined });
  encrypted.on('error', () => {});
  return new Promise((resolve) => encrypted.once('secureConnect', () => resolve(encrypted)));
}

test('a wish for encryption is answered with one byte, and is not answered a second time inside TLS', async () => {
  const socket = await open(pooler);
  socket.write(gssEncRequest);
  expect(await nextByte(socket)).toBe('N');
  socket.write(sslRequest);
  expect(await nextByte(socket)).toBe('S');
  const encrypted = await encrypt(socket);
  encrypted.write(sslRequest);
  expect((await readGreeting(encrypted)).error).toMatchObject({ severity: 'FATAL', code: '08P01' });
});

test('a request for encryption with plain text behind the answer is refused', async () => {
  const socket = await open(pooler);
  socket.write(sslRequest);
  expect(await nextByte(socket)).toBe('S');
  socket.write(packet());
  const { types } = await readGreeting(socket);
  expect(types).not.toContain('Z');
});

test('the name that a client asks for is in the log, whether the certificate has it or not', async () => {
  for (const servername of ['localhost', 'tenant-7.example', '']) {
    const socket = await open(pooler);
    socket.write(sslRequest);
    expect(await nextByte(socket)).toBe('S');
    const encrypted = await encrypt(socket, servername);
    encrypted.write(packet());
    expect((await readGreeting(encrypted)).types.endsWith('Z')).toBe(true);
    const line = log.findLast(({ message }) => message === 'client connected');
    expect(line?.fields['sni']).toBe(servername === '' ? undefined : servername);
  }
});

/** Programs that can renew the keys of a connection are few. */
const openssl = 'openssl';

describe.runIf(has(openssl, 'version', 'openssl'))('a client that renews its keys', () => {
  /** A client of TLS that sends what it is given. A line with the letter K alone makes it renew its keys, and ask for the same. */
  function startOpenssl(): ChildProcessWithoutNullStreams {
    const place = `${pooler.host}:${pooler.port}`;
    const child = spawn(openssl, [
      's_client',
      '-connect',
      place,
      '-starttls',
      'postgres',
      '-tls1_3',
      '-brief',
    ]);
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    return child;
  }

  function renewKeys({ stdin, stderr }: ChildProcessWithoutNullStreams): Promise<void> {
    const renewed = new Promise<void>((resolve) => {
      const read = (chunk: Buffer): void => {
        if (!chunk.includes('KEYUPDATE')) return;
        stderr.off('data', read);
        resolve();
      };
      stderr.on('data', read);
    });
    stdin.write('K\n');
    return renewed;
  }

  async function enter(): Promise<ChildProcessWithoutNullStreams> {
    const child = startOpenssl();
    const entered = untilReady(child.stdout, 1);
    child.stdin.write(packet());
    await entered;
    const versions = pooler.pooler.view.clients().map(({ ends }) => ends.tls?.version);
    expect(versions).toContain('TLSv1.3');
    return child;
  }

  test('while it reads nothing, and its server has to wait for it, loses nothing', async () => {
    const child = await enter();
    child.stdout.pause();
    child.stdin.write(
      Buffer.concat([sync, query("select repeat('x', 100000) from generate_series(1, 300)")]),
    );
    const watcher = await pooler.connect({ host: db.host, port: db.port });
    await expect.poll(() => isStuck(watcher), { timeout: 10_000 }).toBe(true);
    for (let times = 0; times < 3; times++) await renewKeys(child);
    child.stdin.write(Buffer.concat([sync, query("select 'behind it'")]));
    const over = untilReady(child.stdout, 4);
    child.stdout.resume();
    expect(await over).toBeGreaterThan(30_000_000);
  });

  test('while nothing is read from it, since it waits for a server, loses nothing', async () => {
    const child = await enter();
    const holders = await Promise.all([1, 2, 3].map(() => pooler.connect()));
    for (const text of ['begin', 'select 1']) await Promise.all(holders.map((holder) => holder.query(text)));
    const over = untilReady(child.stdout, 4);
    child.stdin.write(Buffer.concat([sync, query('select 1')]));
    await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
    for (let times = 0; times < 3; times++) await renewKeys(child);
    child.stdin.write(Buffer.concat([sync, query("select 'behind it'")]));
    for (const holder of holders) await holder.query('commit');
    await over;
  });
});

/** Looked at again and again, a server always waits for somebody to read. */
async function isStuck(watcher: pg.Client): Promise<boolean> {
  for (let looks = 0; looks < 30; looks++) {
    const { rows } = await watcher.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'ClientWrite'",
    );
    if (rows.length === 0) return false;
  }
  return true;
}

const ready = Buffer.from([Backend.readyForQuery, 0, 0, 0, 5, 0x49]);

/** Until so many ReadyForQuery have come, wherever they are cut; how many bytes came. */
function untilReady(stream: NodeJS.ReadableStream, count: number): Promise<number> {
  return new Promise((resolve) => {
    let bytes = 0;
    let missing = count;
    let tail = Buffer.alloc(0);
    const read = (chunk: Buffer): void => {
      bytes += chunk.length;
      let rest = Buffer.concat([tail, chunk]);
      for (let at = rest.indexOf(ready); at !== -1; at = rest.indexOf(ready)) {
        missing--;
        rest = rest.subarray(at + ready.length);
      }
      tail = rest.subarray(-(ready.length - 1));
      if (missing > 0) return;
      stream.off('data', read);
      resolve(bytes);
    };
    stream.on('data', read);
  });
}
