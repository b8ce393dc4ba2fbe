import type { Socket } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { flush, terminate } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeCopyData,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import type { MessageWriter } from '../../../src/wire/message-writer.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';

let db: TestDatabase;
let watcher: pg.Client;
beforeAll(async () => {
  db = await withDatabase();
  watcher = new pg.Client({ connectionString: db.url });
  await watcher.connect();
  await watcher.query('create table seen (n int)');
});
afterAll(async () => {
  await watcher.end();
  await db.drop();
});

/** How a client goes away. */
const ways: readonly (readonly [string, (socket: Socket) => void])[] = [
  ['closes its socket', (socket) => socket.destroy()],
  ['resets the connection', (socket) => socket.resetAndDestroy()],
  ['says no more, and reads on', (socket) => socket.end()],
];

/** A moment to leave at, and whether the server connection can be kept. */
interface Moment {
  readonly name: string;
  readonly write: (writer: MessageWriter) => void;
  /** Answers that the client has got by then. */
  readonly heard?: number;
  /** Work of the server by then. */
  readonly runs?: string;
  readonly isKept: boolean;
}

const moments: readonly Moment[] = [
  {
    name: 'nothing',
    write: (writer) => writeQuery(writer, 'select 1'),
    heard: Backend.readyForQuery,
    isKept: true,
  },
  {
    name: 'a transaction',
    write: (writer) => writeQuery(writer, 'begin; insert into seen values (1)'),
    heard: Backend.readyForQuery,
    isKept: true,
  },
  {
    name: 'a failed transaction',
    write: (writer) => writeQuery(writer, 'begin; insert into seen values (1); select nonsense'),
    heard: Backend.readyForQuery,
    isKept: true,
  },
  {
    name: 'a query that runs',
    write: (writer) => writeQuery(writer, 'select pg_sleep(30), 1'),
    runs: 'pg_sleep(30), 1',
    isKept: true,
  },
  {
    name: 'a query that runs in a transaction',
    write: (writer) => writeQuery(writer, 'begin; insert into seen values (1); select pg_sleep(30), 2'),
    runs: 'pg_sleep(30), 2',
    isKept: true,
  },
  {
    name: 'a query that runs, of a pipeline without an end',
    write: (writer) => {
      writeParse(writer, { text: 'select pg_sleep(30), 3' });
      writeBind(writer, {});
      writeExecute(writer);
      writeParse(writer, { text: 'select 2' });
    },
    runs: 'pg_sleep(30), 3',
    isKept: true,
  },
  {
    name: 'a pipeline without an end',
    write: (writer) => {
      writeParse(writer, { text: 'insert into seen values (1)' });
      writeBind(writer, {});
      writeExecute(writer);
      writer.append(flush);
    },
    heard: Backend.commandComplete,
    isKept: true,
  },
  {
    name: 'a pipeline that failed, without an end',
    write: (writer) => {
      writeParse(writer, { text: 'select nonsense' });
      writer.append(flush);
    },
    heard: Backend.error,
    isKept: true,
  },
  {
    name: 'a portal with rows left',
    write: (writer) => {
      writeParse(writer, { text: 'select generate_series(1, 100)' });
      writeBind(writer, {});
      writeExecute(writer, '', 10);
      writer.append(flush);
    },
    heard: Backend.portalSuspended,
    isKept: true,
  },
  {
    name: 'COPY in',
    write: (writer) => writeQuery(writer, 'copy seen from stdin'),
    heard: Backend.copyInResponse,
    isKept: true,
  },
  {
    name: 'COPY in with data',
    write: (writer) => {
      writeQuery(writer, 'copy seen from stdin');
      writeCopyData(writer, Buffer.from('1\n2\n'));
    },
    heard: Backend.copyInResponse,
    isKept: true,
  },
  {
    name: 'COPY in, in the extended protocol',
    write: (writer) => {
      writeParse(writer, { text: 'copy seen from stdin' });
      writeBind(writer, {});
      writeExecute(writer);
      writer.append(flush);
      writeCopyData(writer, Buffer.from('1\n'));
    },
    heard: Backend.copyInResponse,
    isKept: true,
  },
  {
    name: 'COPY out that goes on',
    write: (writer) => writeQuery(writer, 'copy (select generate_series(1, 5000000)) to stdout'),
    heard: Backend.copyOutResponse,
    isKept: true,
  },
  {
    name: 'many rows that come',
    write: (writer) => writeQuery(writer, 'select generate_series(1, 5000000), 4'),
    heard: Backend.dataRow,
    isKept: true,
  },
  {
    name: 'half a message',
    write: (writer) => {
      writeQuery(writer, 'begin; insert into seen values (1)');
      writer.append(Buffer.from([0x51, 0, 1, 0, 0, 0x73, 0x65, 0x6c]));
    },
    heard: Backend.readyForQuery,
    isKept: true,
  },
  {
    name: 'half a message that was passed on already',
    write: (writer) => {
      writeQuery(writer, 'begin; insert into seen values (1)');
      const head = Buffer.alloc(70_000, 0x20);
      head.writeUInt8(0x51, 0);
      head.writeInt32BE(200_000, 1);
      writer.append(head);
    },
    heard: Backend.readyForQuery,
    isKept: false,
  },
];

let pooler: TestPooler;
beforeEach(async () => {
  await watcher.query('truncate seen');
  pooler = await startTestPooler(db, { pooling: { poolSize: 1, serverCleaningTimeout: '20s' } });
});

async function isRunning(text: string): Promise<boolean> {
  const { rows } = await watcher.query(
    "select 1 from pg_stat_activity where datname = current_database() and state = 'active' and query like $1 and pid <> pg_backend_pid()",
    [`%${text}%`],
  );
  return rows.length > 0;
}

describe.each(moments)('of a client that goes in the middle of $name', ({ write, heard, runs, isKept }) => {
  test.each(ways)('and %s, nothing is left for the next one', async (_way, go) => {
    const { rows: before } = await (await pooler.connect()).query('select pg_backend_pid() as pid');
    const session = await RawSession.start(pooler, StartupCode.version30);
    write(session.writer);
    session.send();
    if (heard !== undefined) await session.until(heard);
    if (runs !== undefined) while (!(await isRunning(runs)));
    go(session.socket);

    const next = await pooler.connect();
    const { rows } = await next.query('select pg_backend_pid() as pid, count(*)::int as seen from seen');
    expect(rows[0].seen).toBe(0);
    if (isKept) expect(rows[0].pid).toBe(before[0].pid);
    if (runs !== undefined) expect(await isRunning(runs)).toBe(false);
    expect((await next.query('select $1::text as mine', ['mine'])).rows).toEqual([{ mine: 'mine' }]);
    const [pool] = pooler.pooler.stats().pools;
    expect([pool?.live, pool?.peak]).toEqual([1, 1]);
  });
});

test('statements that were sent before Terminate run, as on the server', async () => {
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'select pg_sleep(0.2); insert into seen values (6)');
  writeQuery(session.writer, 'insert into seen values (7)');
  session.writer.append(Buffer.from([0x58, 0, 0, 0, 4]));
  session.send();
  await expect
    .poll(async () => (await watcher.query('select n from seen order by n')).rows, { timeout: 5_000 })
    .toEqual([{ n: 6 }, { n: 7 }]);
  const next = await pooler.connect();
  expect((await next.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test.each<readonly [string, (writer: MessageWriter) => void]>([
  [
    'before its Sync',
    (writer) => {
      writeParse(writer, { text: 'insert into seen values (8)' });
      writeBind(writer, {});
      writeExecute(writer);
    },
  ],
  ['in a transaction', (writer) => writeQuery(writer, 'begin; insert into seen values (8)')],
  [
    'in the data of a COPY',
    (writer) => {
      writeQuery(writer, 'copy seen from stdin');
      writeCopyData(writer, Buffer.from('8\n'));
    },
  ],
])(
  'a goodbye %s undoes what is not finished, and what is behind it is not looked at',
  async (_name, write) => {
    const session = await RawSession.start(pooler, StartupCode.version30);
    write(session.writer);
    session.writer.append(terminate);
    writeQuery(session.writer, 'insert into seen values (9)');
    session.send();
    await expect.poll(() => session.isClosed).toBe(true);
    const next = await pooler.connect();
    expect((await next.query('select count(*)::int as n from seen')).rows).toEqual([{ n: 0 }]);
  },
);

describe.each([
  ['the usual reset query', {}],
  ['another reset query', { serverResetQuery: 'select 1' }],
  ['no reset query', { serverResetQuery: '' }],
])('with %s', (_name, pooling) => {
  beforeEach(async () => {
    pooler = await startTestPooler(db, { pooling: { poolSize: 1, ...pooling } });
  });

  test('a setting that is changed when its client has said goodbye is not the next one’s', async () => {
    const zone = async (): Promise<unknown> =>
      (await (await pooler.connect()).query("select current_setting('timezone') as zone")).rows[0].zone;
    const usual = await zone();
    const session = await RawSession.start(pooler, StartupCode.version30);
    writeQuery(session.writer, 'select pg_sleep(0.1)');
    writeQuery(session.writer, "set timezone = 'Asia/Tokyo'");
    session.writer.append(terminate);
    session.send();
    await session.next().catch(() => {});
    expect(await zone()).toBe(usual);
  });

  test('a setting that is rolled back because its client is gone is set for the next one who wants it', async () => {
    const session = await RawSession.start(pooler, StartupCode.version30);
    await session.ask((writer) => writeQuery(writer, 'begin'));
    await session.ask((writer) => writeQuery(writer, "set timezone = 'Asia/Tokyo'"));
    session.socket.destroy();
    const next = await RawSession.start(pooler, StartupCode.version30, [['timezone', 'Asia/Tokyo']]);
    const answer = await next.ask((writer) => writeQuery(writer, 'show timezone'));
    expect(answer.some(({ bytes }) => bytes.includes('Asia/Tokyo'))).toBe(true);
    next.socket.destroy();
  });
});

test('messages that are followed by nonsense are sent before the server goes to the next client', async () => {
  const session = await RawSession.start(pooler, StartupCode.version30);
  // The server ignores such data outside of a COPY, but has to get all of it.
  const data = Buffer.from('d\x00\x00\x00\x081\n2\n', 'latin1');
  writeQuery(session.writer, 'select 1');
  session.writer.append(data.subarray(0, 7));
  session.send();
  await session.until(Backend.readyForQuery);
  session.writer.append(data.subarray(7));
  session.writer.append(data);
  session.writer.append(Buffer.from([0]));
  session.send();
  await expect.poll(() => session.isClosed).toBe(true);
  const next = await pooler.connect();
  for (const mine of ['one', 'two'])
    expect((await next.query('select $1::text as mine', [mine])).rows).toEqual([{ mine }]);
});

test('a client that goes while it waits leaves its place in the queue to others', async () => {
  const holder = await pooler.connect();
  await holder.query('begin');
  await holder.query('select 1');
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'insert into seen values (9)');
  session.send();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  session.socket.destroy();
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(0);
  await holder.query('commit');
  expect((await holder.query('select count(*)::int as n from seen')).rows).toEqual([{ n: 0 }]);
});
