// Deaths of a real server, whose processes are ended while clients work; a scripted server is in server-death.test.ts.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { copyDone, flush, sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeCopyData,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import type { MessageWriter } from '../../../src/wire/message-writer.js';
import { ca, material } from '../../net/certificates.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';

/** Work that a client repeats until its connection ends. */
type Work = (session: RawSession, turn: number) => Promise<unknown>;

function ask(session: RawSession, ...texts: readonly string[]): Promise<unknown> {
  for (const text of texts) writeQuery(session.writer, text);
  session.send();
  return untilReady(session, texts.length);
}

async function untilReady(session: RawSession, count: number): Promise<void> {
  for (let left = count; left > 0; left--) await session.until(Backend.readyForQuery);
}

const works: Readonly<Record<string, Work>> = {
  'short queries': (session) => ask(session, 'select 1'),
  'queries that are sent before the last is answered': (session) =>
    ask(session, 'select 1', 'select 2', 'select 3'),
  transactions: (session) => ask(session, 'begin', 'select 1', 'select 2', 'commit'),
  'idle transactions': async (session) => {
    await ask(session, 'begin; select 1');
    await new Promise((resolve) => setImmediate(resolve));
    await ask(session, 'rollback');
  },
  'long queries': (session) => ask(session, 'select pg_sleep(0.02)'),
  settings: (session, turn) => ask(session, `set search_path = s${turn}`, 'select 1'),
  pipelines: async (session) => {
    for (let n = 0; n < 5; n++) statement(session.writer, 'select 1');
    session.writer.append(flush);
    session.send();
    await session.until(Backend.commandComplete);
    session.writer.append(sync);
    session.send();
    await untilReady(session, 1);
  },
  'COPY of data': async (session) => {
    writeQuery(session.writer, 'copy kept from stdin');
    session.send();
    await session.until(Backend.copyInResponse);
    for (let n = 0; n < 1_000; n++) writeCopyData(session.writer, Buffer.from(`${n}\n`));
    session.send();
    session.writer.append(copyDone);
    session.send();
    await untilReady(session, 1);
  },
  'large answers': (session) => ask(session, "select repeat('x', 5000) from generate_series(1, 200)"),
};

function statement(writer: MessageWriter, text: string): void {
  writeParse(writer, { text });
  writeBind(writer, {});
  writeExecute(writer);
}

/** Works until the connection ends, and answers how; or until there is enough. */
async function workUntilTheEnd(pooler: TestPooler, work: Work, isEnough: () => boolean): Promise<string> {
  const session = await RawSession.start(pooler, StartupCode.version30);
  try {
    for (let turn = 0; !isEnough(); turn++) await work(session, turn);
    return 'served';
  } catch {
    await session.lastWords();
  } finally {
    session.socket.destroy();
  }
  if (session.isInsideMessage) return 'inside a message';
  return session.received.at(-1)?.type === Backend.error ? 'told' : 'a bare EOF';
}

/** A database of its own on the server of all tests, whose processes may be ended, but not killed. */
async function makeDatabase(): Promise<{ db: TestDatabase; admin: pg.Client }> {
  const db = await withDatabase();
  onTestFinished(() => db.drop());
  const admin = await connect(db);
  await admin.query('create table kept (n int)');
  return { db, admin };
}

/** A server of its own. A killed process takes all others of a server with it. */
async function startServer(): Promise<TestDatabase> {
  const server = await startPostgres();
  const db = { ...server, drop: async () => {} };
  const admin = await connect(db);
  await admin.query('create table kept (n int)');
  // Unwritten data is lost with the first process that is killed.
  await admin.query('checkpoint');
  await admin.end();
  return db;
}

async function connect(db: TestDatabase): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: db.url });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** The processes that serve the pooler. */
async function processes(admin: pg.Client): Promise<number[]> {
  const { rows } = await admin.query(
    "select pid from pg_stat_activity where backend_type = 'client backend' and datname = current_database() and pid <> pg_backend_pid()",
  );
  return rows.map(({ pid }) => pid);
}

/** False where the process has ended by itself. */
function isKilled(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** How connections ended for clients that come again after each end, while the server is struck so many times. */
async function count(
  pooler: TestPooler,
  work: Work,
  strikes: number,
  strike: () => Promise<unknown>,
): Promise<ReadonlySet<string>> {
  const ends = new Set<string>();
  let isEnough = false;
  const client = async (): Promise<void> => {
    while (!isEnough) {
      // A login may fail by the same stroke, and is told as well.
      const end = await workUntilTheEnd(pooler, work, () => isEnough).catch((error: Error) =>
        error.message.startsWith('It said') ? 'told' : `at login: ${error.message}`,
      );
      ends.add(end);
    }
  };
  const clients = Promise.all(Array.from({ length: 4 }, client));
  for (let done = 0; done < strikes; done++) await strike();
  isEnough = true;
  await clients;
  return ends;
}

test.each(Object.entries(works))(
  'pg_terminate_backend() during %s leaves no client without an ErrorResponse',
  async (_, work) => {
    const { db, admin } = await makeDatabase();
    const pooler = await startTestPooler(db, { pooling: { poolSize: 3 } });
    const ends = await count(pooler, work, 60, async () => {
      for (const pid of await processes(admin)) await admin.query('select pg_terminate_backend($1)', [pid]);
    });
    await admin.end();
    expect(new Set([...ends, 'served', 'told'])).toEqual(new Set(['served', 'told']));
  },
);

test.each(['transactions', 'long queries', 'settings', 'COPY of data'])(
  'SIGKILL of a server process during %s leaves no client without an ErrorResponse',
  async (name) => {
    const work = works[name] as Work;
    const db = await startServer();
    const pooler = await startTestPooler(db, { pooling: { poolSize: 3, serverLoginRetry: '10ms' } });
    const ends = await count(pooler, work, 5, async () => {
      // All connections end, this one too, and the server is started anew.
      for (;;) {
        const admin = await connect(db).catch(() => undefined);
        const [pid] = admin === undefined ? [] : await processes(admin).catch(() => []);
        await admin?.end().catch(() => {});
        if (pid !== undefined && isKilled(pid)) return;
      }
    });
    expect(new Set([...ends, 'served', 'told'])).toEqual(new Set(['served', 'told']));
  },
);

test('node-postgres with TLS is told as well', async () => {
  const { db, admin } = await makeDatabase();
  const pooler = await startTestPooler(
    db,
    {
      clientTls: { mode: 'require', keyFile: 'server.key', certFile: 'server.pem' },
      pooling: { poolSize: 3 },
    },
    { files: { 'server.pem': material('server').cert, 'server.key': material('server').key } },
  );
  const codes: Record<string, number> = {};
  for (let run = 0; run < 40; run++) {
    const client = await pooler.connect({ ssl: { ca, checkServerIdentity: () => undefined } });
    const { rows } = await client.query('begin; select pg_backend_pid() as pid').then((results) => {
      return (results as unknown as pg.QueryResult[])[1] as pg.QueryResult;
    });
    const asked = client.query('select pg_sleep(30)').catch((error: Error & { code?: string }) => error);
    await admin.query('select pg_terminate_backend($1)', [rows[0].pid]);
    const { code = 'a bare EOF' } = (await asked) as { code?: string };
    codes[code] = (codes[code] ?? 0) + 1;
  }
  await admin.end();
  expect(codes).toEqual({ '57P01': 40 });
});
