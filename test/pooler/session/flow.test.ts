import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyDone } from '../../../src/wire/fixed-messages.js';
import { writeCopyData, writeQuery } from '../../../src/wire/frontend-writers.js';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { errorOf, RawSession, typesOf } from '../../wire/server/raw-session.js';
import { ScriptedServer } from './scripted-server.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const megabyte = 1_048_576;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes that the process has, in its heap and outside, where all buffers are. */
function allocatedBytes(): number {
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}

/** How many more it has now, without what nobody holds. */
function heldSince(before: number): number {
  if (allocatedBytes() - before > 10 * megabyte) collectGarbage();
  return allocatedBytes() - before;
}

test('a result of 100 MB streams to a client that reads it, without being held', async () => {
  const pooler = await startTestPooler(db);
  const session = await RawSession.start(pooler, StartupCode.version30);
  // The client itself must not hold it either.
  session.socket.removeAllListeners('data');
  let received = 0;
  let most = 0;
  const before = allocatedBytes();
  const over = new Promise<void>((resolve) => {
    session.socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      most = Math.max(most, heldSince(before));
      if (chunk.at(-6) === Backend.readyForQuery && chunk.at(-1) === 0x49) resolve();
    });
  });
  writeQuery(session.writer, "select repeat('x', 10000) from generate_series(1, 10486)");
  session.send();
  await over;
  expect(received).toBeGreaterThan(100 * megabyte);
  expect(most).toBeLessThan(40 * megabyte);
  session.socket.destroy();
});

test('a result of 100 MB in one row is passed on in pieces', async () => {
  const pooler = await startTestPooler(db);
  const session = await RawSession.start(pooler, StartupCode.version30);
  session.socket.removeAllListeners('data');
  let received = 0;
  const over = new Promise<void>((resolve) => {
    session.socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (chunk.at(-6) === Backend.readyForQuery) resolve();
    });
  });
  writeQuery(session.writer, "select repeat('x', 104857600)");
  session.send();
  await over;
  expect(received).toBeGreaterThan(100 * megabyte);
  session.socket.destroy();
});

test('a result of 100 MB for a client that does not read waits at the server, and does not hold up others', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 2 } });
  const slow = await RawSession.start(pooler, StartupCode.version30);
  const before = allocatedBytes();
  slow.socket.pause();
  writeQuery(slow.writer, "select repeat('x', 10000) from generate_series(1, 10486)");
  slow.send();
  const fast = await pooler.connect();
  for (let n = 0; n < 300; n++) expect((await fast.query('select $1::int as n', [n])).rows).toEqual([{ n }]);
  expect(pooler.pooler.stats().pools[0]?.inUse).toBe(1);
  expect(heldSince(before)).toBeLessThan(40 * megabyte);
  slow.socket.resume();
  await slow.until(Backend.readyForQuery);
  expect(slow.received.length).toBeGreaterThan(10_486);
  slow.socket.destroy();
});

test('COPY to a client that does not read waits at the server, and is whole when the client reads', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 2 } });
  const slow = await RawSession.start(pooler, StartupCode.version30);
  const before = allocatedBytes();
  slow.socket.pause();
  const lines = 4_000;
  writeQuery(slow.writer, `copy (select repeat('x', 9999) from generate_series(1, ${lines})) to stdout`);
  slow.send();
  const fast = await pooler.connect();
  for (let n = 0; n < 300; n++) expect((await fast.query('select $1::int as n', [n])).rows).toEqual([{ n }]);
  expect(pooler.pooler.stats().pools[0]?.inUse).toBe(1);
  expect(heldSince(before)).toBeLessThan(20 * megabyte);
  slow.socket.resume();
  const copied = (await slow.until(Backend.readyForQuery)).filter(({ type }) => type === Backend.copyData);
  expect(copied.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBe(lines * (9_999 + 1 + 5));
  slow.socket.destroy();
});

test('a server that does not read is not sent more than a little, and all of it in the end', async () => {
  const server = await ScriptedServer.start();
  const pooler = await startTestPooler(server.db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'select 1'));
  const { socket } = server.connection;
  socket.pause();
  const much = 40 * megabyte;
  const received = (): number => pooler.pooler.stats().pools[0]?.tally.received ?? 0;
  writeQuery(session.writer, `select '${'q'.repeat(much)}'`);
  session.send();
  // The client is read from until the way to the server is full, and then no more.
  for (let before = -1; before !== received(); ) {
    before = received();
    for (let n = 0; n < 200; n++) await new Promise((resolve) => setImmediate(resolve));
    expect(received()).toBeLessThan(much / 2);
  }
  let arrived = 0;
  socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
    arrived += chunk.length;
  });
  socket.resume();
  await expect.poll(() => arrived, { timeout: 10_000 }).toBeGreaterThan(much);
  server.connection.done('SELECT 1');
  expect(typesOf(await session.until(Backend.readyForQuery))).toBe('CZ');
  session.socket.destroy();
});

test('a query of 50 MB is passed on in pieces', async () => {
  const pooler = await startTestPooler(db);
  const client = await pooler.connect();
  const text = 'y'.repeat(50 * megabyte);
  expect((await client.query(`select length('${text}') as n`)).rows).toEqual([{ n: text.length }]);
  expect((await client.query('select length($1) as n', [text])).rows).toEqual([{ n: text.length }]);
});

test('an error of megabytes is passed on, and the session goes on', async () => {
  const pooler = await startTestPooler(db);
  const client = await pooler.connect();
  const text = 'z'.repeat(2 * megabyte);
  await expect(client.query(`select '${text}'::int`)).rejects.toMatchObject({ code: '22P02' });
  await expect(client.query('select $1::int', [text])).rejects.toMatchObject({ code: '22P02' });
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

test('a client that writes everything before it reads anything is served all the same', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  const count = 2_000;
  const before = session.received.length;
  // Both the questions and the answers are more than sockets keep.
  const filler = 'f'.repeat(6_000);
  session.socket.pause();
  for (let n = 0; n < count; n++)
    writeQuery(session.writer, `select ${n}, repeat('a', 2500) /* ${filler} */`);
  const written = new Promise<void>((resolve) => {
    session.socket.write(session.writer.take(), () => resolve());
  });
  await written;
  session.socket.resume();
  for (let n = 0; n < count; n++) await session.until(Backend.readyForQuery);
  const rows = session.received.slice(before).filter(({ type }) => type === Backend.dataRow);
  expect(rows).toHaveLength(count);
  session.socket.destroy();
});

test('a client that asks and never reads is not kept in memory without end', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const session = await RawSession.start(pooler, StartupCode.version30);
  session.socket.pause();
  const before = allocatedBytes();
  let isGone = false;
  session.socket.on('close', () => {
    isGone = true;
  });
  const query = new MessageWriter();
  writeQuery(query, "select repeat('b', 20000)");
  const question = query.take();
  // About 60 MB of answers, if they were all taken.
  for (let n = 0; n < 3_000; n++) session.socket.write(question);
  const other = await pooler.connect();
  const asked = other.query('select 1');
  // Time enough for all answers to come, if the pooler took them.
  const direct = await pooler.connect({ host: db.host, port: db.port });
  for (let n = 0; n < 1_000; n++) await direct.query('select 1');
  expect(heldSince(before)).toBeLessThan(40 * megabyte);
  expect(isGone).toBe(false);
  session.socket.destroy();
  await asked;
});

test('COPY of 50 MB goes in and out', async () => {
  const pooler = await startTestPooler(db);
  const client = await pooler.connect();
  await client.query('create table copied_much (a text)');
  const session = await RawSession.start(pooler, StartupCode.version30);
  await session.ask((writer) => writeQuery(writer, 'select 1'));
  writeQuery(session.writer, 'copy copied_much from stdin');
  session.send();
  await session.until(Backend.copyInResponse);
  const line = Buffer.from(`${'c'.repeat(9_999)}\n`);
  const header = Buffer.from([0x64, 0, 0, 0, 0]);
  header.writeInt32BE(line.length + 4, 1);
  const message = Buffer.concat([header, line]);
  for (let n = 0; n < 5_000; n++)
    if (!session.socket.write(message)) await new Promise((resolve) => session.socket.once('drain', resolve));
  session.socket.write(Buffer.from([0x63, 0, 0, 0, 4]));
  await session.until(Backend.readyForQuery);
  expect((await client.query('select count(*)::int as n from copied_much')).rows).toEqual([{ n: 5_000 }]);
  session.socket.destroy();
  await client.query('drop table copied_much');
});

test('COPY that fails at its first line, while the client sends on for long, leaves nothing for the next one', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const other = await pooler.connect();
  await other.query('create table copied_badly (a int)');
  const session = await RawSession.start(pooler, StartupCode.version30);
  writeQuery(session.writer, 'copy copied_badly from stdin');
  const line = Buffer.from(`${'no number '.repeat(1_000)}\n`);
  for (let n = 0; n < 1_000; n++) writeCopyData(session.writer, line);
  session.writer.append(copyDone);
  session.send();
  const answer = await session.until(Backend.readyForQuery);
  expect(errorOf(answer)).toMatchObject({ severity: 'ERROR', code: '22P02' });
  // Neither the next client nor this one gets anything of the rest.
  expect((await other.query('select count(*)::int as n from copied_badly')).rows).toEqual([{ n: 0 }]);
  expect(typesOf(await session.ask((writer) => writeQuery(writer, 'select 1')))).toBe('TDCZ');
  await other.query('drop table copied_badly');
  session.socket.destroy();
});
