import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { Transport } from '../../../src/net/transport.js';
import { Outgoing } from '../../../src/pooler/servers/outgoing.js';
import { sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeCopyData,
  writeExecute,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode, Target } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession, typesOf } from '../../wire/server/raw-session.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** Sends the same again and again, as fast as it is taken, until the test is over; how often it was sent. */
function flood(socket: Socket, bytes: Buffer): { readonly sent: number } {
  const count = { sent: 0 };
  let isOver = false;
  const more = (): void => {
    while (!isOver) {
      count.sent++;
      if (!socket.write(bytes)) break;
    }
  };
  socket.on('drain', more);
  socket.on('error', () => {});
  onTestFinished(() => {
    isOver = true;
    socket.destroy();
  });
  more();
  return count;
}

function repeated(times: number, write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  for (let n = 0; n < times; n++) write(writer);
  return writer.take();
}

const floods: readonly (readonly [string, (writer: MessageWriter) => void])[] = [
  ['Syncs, which need no server', (writer) => writer.append(sync)],
  [
    'transactions with nothing in them',
    (writer) => {
      writeQuery(writer, 'begin');
      writeQuery(writer, 'commit');
    },
  ],
  ['queries', (writer) => writeQuery(writer, 'select 1')],
  [
    'pipelines',
    (writer) => {
      writeParse(writer, { text: 'select 1' });
      writeBind(writer, {});
      writeExecute(writer);
      writer.append(sync);
    },
  ],
];

test.each(floods)(
  'a client that sends %s without end does not keep others from being served',
  async (_name, write) => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 2 } });
    const others = [await pooler.connect(), await pooler.connect()];
    const greedy = await RawSession.start(pooler, StartupCode.version30);
    // Answers are read and ignored.
    greedy.socket.removeAllListeners('data').resume();
    const { sent } = flood(greedy.socket, repeated(2_000, write));
    expect(sent).toBeGreaterThan(0);
    for (let n = 0; n < 5; n++)
      for (const other of others)
        expect((await other.query('select $1::int as n', [n])).rows).toEqual([{ n }]);
  },
);

test.each(floods.slice(0, 2))(
  'a client that sends %s and never reads is not kept in memory without end',
  async (_name, write) => {
    const pooler = await startTestPooler(db, { limits: { maxClientUnreadSize: '256KB' } });
    const greedy = await RawSession.start(pooler, StartupCode.version30);
    greedy.socket.removeAllListeners('data').pause();
    const received = (): number =>
      pooler.pooler.stats().pools.reduce((sum, { tally }) => sum + tally.received, 0);
    flood(greedy.socket, repeated(2_000, write));
    // The client is read from until its answers fill max_client_unread_size and the buffers of the two sockets, of up to 6 MB each, and then no more.
    const most = 16 * 1_024 * 1_024;
    const other = await pooler.connect();
    for (let before = -1; before !== greedy.socket.writableLength; ) {
      before = greedy.socket.writableLength;
      expect(received()).toBeLessThan(most);
      // So many times the pooler could have read more of it.
      for (let n = 0; n < 200; n++) await other.query('select 1');
    }
    expect(greedy.isClosed).toBe(false);
  },
);

test('a client that copies without end does not keep others from being served', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 2 } });
  const other = await pooler.connect();
  await other.query('create table copied (t text)');
  const greedy = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(greedy.writer, 'copy copied from stdin');
  greedy.send();
  await greedy.until(Backend.copyInResponse);
  flood(
    greedy.socket,
    repeated(10, (writer) => writeCopyData(writer, Buffer.from(`${'x'.repeat(60_000)}\n`))),
  );
  for (let n = 0; n < 5; n++) expect((await other.query('select $1::int as n', [n])).rows).toEqual([{ n }]);
});

test('clients that only connect, many times over, do not keep others from being served', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const other = await pooler.connect();
  let isOver = false;
  const again = (): void => {
    if (isOver) return;
    const socket = connect(pooler.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('connect', () => socket.destroy());
    socket.on('close', again);
  };
  onTestFinished(() => {
    isOver = true;
  });
  for (let n = 0; n < 5; n++) again();
  for (let n = 0; n < 20; n++) expect((await other.query('select $1::int as n', [n])).rows).toEqual([{ n }]);
});

/** Sizes of what is sent at once to the sockets that `isWanted` picks. */
function watchPortions(isWanted: (to: Transport) => boolean): number[] {
  const sizes: number[] = [];
  const { sendTo } = Outgoing.prototype;
  const send = vi.spyOn(Outgoing.prototype, 'sendTo').mockImplementation(function (this: Outgoing, to) {
    if (isWanted(to) && this.size > 0) sizes.push(this.size);
    return sendTo.call(this, to);
  });
  onTestFinished(() => send.mockRestore());
  return sizes;
}

test.each([
  ['queries', 64, (writer: MessageWriter) => writeQuery(writer, `select 1 -- ${'x'.repeat(30)}`)],
  ['rows of a COPY', 1_024, (writer: MessageWriter) => writeCopyData(writer, Buffer.from('1\n'))],
] as const)(
  '%s that came together are passed on in portions of %i, and others are served in between',
  async (_name, portion, write) => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 2 } });
    const session = await RawSession.start(pooler, StartupCode.version30);
    const sizes = watchPortions((to) => to.remotePort === db.port);
    const one = repeated(1, write).length;
    const times = Math.floor(64_000 / one);
    if (portion > 1_000) {
      writeQuery(session.writer, 'create temporary table portions (n int)');
      writeQuery(session.writer, 'copy portions from stdin');
      session.send();
      await session.until(Backend.copyInResponse);
    }
    session.socket.write(repeated(times, write));
    await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(times * one);
    // The settings that a server connection is given come with the first portion.
    expect(Math.max(...sizes)).toBeLessThanOrEqual(portion * one + 1_000);
    expect(session.isClosed).toBe(false);
  },
);

test('answers that came together are passed on in portions of 128, and others are served in between', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  const sizes = watchPortions((to) => to.localPort === pooler.port);
  const times = 3_000;
  const answer = 5;
  session.socket.write(
    repeated(times, (writer) => {
      writeParse(writer, { name: 'a', text: 'select 1' });
      writeClose(writer, Target.statement, Buffer.from('a'));
    }),
  );
  const all = await session.ask((writer) => {
    writeQuery(writer, 'select 1');
  });
  expect(typesOf(all)).toBe(`${'13'.repeat(times)}TDCZ`);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(128 * answer + 200);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(2 * times * answer);
});

const answersBehind = 20_000;

test.each([
  ['succeeds', 'select 1', `12DC${'3'.repeat(answersBehind)}Z`],
  ['fails', 'select 1 / 0', '1EZ'],
] as const)(
  'thousands of answers of the pooler behind a statement that %s are given in portions of 512, in order',
  async (_outcome, text, answers) => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
    const session = await RawSession.start(pooler, StartupCode.version30);
    const sizes = watchPortions((to) => to.localPort === pooler.port);
    const all = await session.ask((writer) => {
      writeParse(writer, { text });
      writeBind(writer, {});
      writeExecute(writer);
      for (let n = 0; n < answersBehind; n++) writeClose(writer, Target.statement, Buffer.from('unknown'));
      writer.append(sync);
    });
    expect(typesOf(all)).toBe(answers);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(512 * 5 + 200);
    const next = await session.ask((writer) => writeQuery(writer, 'select 1'));
    expect(typesOf(next)).toBe('TDCZ');
  },
);
