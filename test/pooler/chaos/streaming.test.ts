// Much more data than a pooler could keep: it passes through in constant memory, whichever way it goes and however slow the reader.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { type PoolerProcess, startPoolerProcess } from './pooler-process.js';

// Takes a few seconds on an idle machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const megabyte = 1_000_000;
/** How much more memory a pooler may use than at its start. */
const allowance = 100 * megabyte;

let db: TestDatabase;
let watcher: pg.Client;
let pooler: PoolerProcess;
let memoryBefore: number;
beforeAll(async () => {
  db = await withDatabase();
  watcher = await connectTo(db);
  await watcher.query('create unlogged table taken_in (line text)');
  pooler = await startPoolerProcess(db, { pooling: { poolSize: 2 }, logging: { connections: false } });
  const first = await connectTo(pooler);
  await first.query('select 1');
  await first.end();
  memoryBefore = pooler.memoryBytes();
});
afterAll(async () => {
  await pooler?.stop();
  await watcher?.end();
  await db.drop();
});
afterEach(() => {
  expect(pooler.memoryBytes() - memoryBefore).toBeLessThan(allowance);
});

async function connectTo({ host, port, user, password, database }: TestDatabase): Promise<pg.Client> {
  const client = new pg.Client({ host, port, user, password, database });
  await client.connect();
  return client;
}

/** A session whose bytes are counted and not kept. */
async function startCounting(): Promise<{ session: RawSession; whole: Promise<number> }> {
  const session = await RawSession.start(pooler, StartupCode.version30);
  session.socket.removeAllListeners('data');
  let received = 0;
  const whole = new Promise<number>((resolve) => {
    session.socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (chunk.at(-6) === Backend.readyForQuery && chunk.at(-5) === 0 && chunk.at(-1) === 0x49)
        resolve(received);
    });
  });
  return { session, whole };
}

test('a result of 1 GB', async () => {
  const { session, whole } = await startCounting();
  writeQuery(session.writer, "select repeat('x', 1000000) from generate_series(1, 1024)");
  session.send();
  expect(await whole).toBeGreaterThan(1_024 * megabyte);
  session.socket.destroy();
});

test('a row of 250 MB', async () => {
  const { session, whole } = await startCounting();
  writeQuery(session.writer, "select repeat('y', 250000000)");
  session.send();
  expect(await whole).toBeGreaterThan(250 * megabyte);
  session.socket.destroy();
});

test('COPY of 200 MB to the server', async () => {
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'copy taken_in from stdin');
  session.send();
  await session.until(Backend.copyInResponse);
  const line = Buffer.alloc(100_000, 'z');
  line.write('\n', line.length - 1);
  const message = Buffer.concat([Buffer.from([0x64, 0, 0, 0, 0]), line]);
  message.writeInt32BE(line.length + 4, 1);
  for (let n = 0; n < 2_000; n++)
    if (!session.socket.write(message)) await new Promise((resolve) => session.socket.once('drain', resolve));
  session.socket.write(Buffer.from([0x63, 0, 0, 0, 4]));
  await session.until(Backend.readyForQuery);
  expect((await watcher.query('select count(*)::int as lines from taken_in')).rows).toEqual([
    { lines: 2_000 },
  ]);
  await watcher.query('truncate taken_in');
  session.socket.destroy();
});

test('a result of 1 GB for a client that does not read it waits at the server, and others are served', async () => {
  const slow = await RawSession.start(pooler, StartupCode.version30);
  slow.socket.pause();
  writeQuery(slow.writer, "select repeat('s', 1000000), 'slow' from generate_series(1, 1024)");
  slow.send();
  /** Wait event of the slow reader's server process. */
  const waitOf = async (): Promise<string | undefined> => {
    const { rows } = await watcher.query(
      `select wait_event as wait from pg_stat_activity where datname = current_database() and state = 'active' and query like '%''slow''%'
       and pid <> pg_backend_pid()`,
    );
    return rows[0]?.wait;
  };
  /** Looked at again and again, it always waits for somebody to read. */
  const isStuck = async (): Promise<boolean> => {
    for (let looks = 0; looks < 30; looks++) if ((await waitOf()) !== 'ClientWrite') return false;
    return true;
  };
  await expect.poll(isStuck, { timeout: 20_000 }).toBe(true);
  const other = await connectTo(pooler);
  for (let n = 0; n < 200; n++) expect((await other.query('select $1::int as n', [n])).rows).toEqual([{ n }]);
  await other.end();
  // Nobody has read on meanwhile, or the server would be done. (It may wake for a moment: for what it is told of other sessions, or since the kernel has moved a little on.)
  await expect.poll(isStuck, { timeout: 20_000 }).toBe(true);
  slow.socket.destroy();
  await expect.poll(waitOf, { timeout: 10_000 }).toBe(undefined);
});
