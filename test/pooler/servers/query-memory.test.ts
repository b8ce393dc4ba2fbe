// Statistics of statements, and the memory that clients can make them take.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { RunningQuery } from '../../../src/pooler/clients/relay/running-query.js';
import { PoolQueries, QueryBook, type QueryCount } from '../../../src/pooler/servers/query-stats.js';
import { writeParse } from '../../../src/wire/frontend-writers.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function ask(queries: PoolQueries, text: string): QueryCount {
  const bytes = Buffer.from(text);
  return queries.ofText(bytes, 0, bytes.length);
}

/** Memory without garbage, in bytes. Buffers are freed some turns after the objects that they belong to. */
async function memoryUsed(): Promise<number> {
  for (let turn = 0; turn < 4; turn++) {
    await new Promise(setImmediate);
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const megabyte = 1_048_576;
const shapes: readonly (readonly [string, (n: number) => string])[] = [
  ['words', (n) => `select a${n}${'w'.repeat(100_000)}`],
  ['names in quotes', (n) => `select "${n}${'"" x'.repeat(3_000)}"`],
  ['names beyond ASCII', (n) => `select ${n}a${'\u4e16'.repeat(30_000)}`],
  ['texts of many words', (n) => `select a${n} ${'from a '.repeat(10_000)}`],
  ['texts of many constants', (n) => `select a${n}, 1 ${', 1, a'.repeat(10_000)}`],
];

test.each(shapes)('Long %s in statements are cut before statistics keep them', async (_name, textOf) => {
  const most = 200;
  const book = new QueryBook(most);
  const queries = new PoolQueries(book, 'db', 'me');
  ask(queries, textOf(0));
  const before = await memoryUsed();
  for (let n = 1; n <= 400; n++) ask(queries, textOf(n)).record(1, 0, false);
  // 1,000 characters of up to two bytes, twice: as the text and as its key.
  expect((await memoryUsed()) - before).toBeLessThan(most * 6_000 + megabyte / 2);
  for (const { text } of book.entries()) expect(text.length).toBeLessThanOrEqual(1_004);
});

test('A pool keeps nothing of statements that the book of statistics has dropped', async () => {
  const book = new QueryBook(1);
  const queries = new PoolQueries(book, 'db', 'me');
  const dropped = Array.from({ length: 10 }, (_, n) => new WeakRef(ask(queries, `select a${n}`)));
  ask(queries, 'select b');
  expect(book.forgotten).toBe(10);
  await memoryUsed();
  expect(dropped.map((entry) => entry.deref())).toEqual(dropped.map(() => undefined));
});

test('A statement that the book of statistics has dropped is found again under its fingerprint', () => {
  const book = new QueryBook(1);
  const queries = new PoolQueries(book, 'db', 'me');
  const first = ask(queries, 'select a');
  ask(queries, 'select b');
  expect(first.isForgotten).toBe(true);
  const again = ask(queries, 'select a');
  expect(again).not.toBe(first);
  expect(ask(queries, 'select a')).toBe(again);
  expect([...book.entries()]).toEqual([again]);
});

function parseOf(name: string, text: string): Buffer {
  const writer = new MessageWriter();
  writeParse(writer, { name, text });
  return Buffer.from(writer.take());
}

test('Names of statements that a client keeps for statistics take a bounded memory', async () => {
  const queries = new PoolQueries(new QueryBook(10), 'db', 'me');
  const running = new RunningQuery(queries);
  const nameOf = (n: number): string => `${n}`.padEnd(10_000, 'x');
  running.parsedAs(nameOf(0), parseOf('', 'select 0'));
  const before = await memoryUsed();
  for (let n = 1; n < 1_000; n++) running.parsedAs(nameOf(n), parseOf('', `select a${n}`));
  expect((await memoryUsed()) - before).toBeLessThan(megabyte);
  running.parsedAs(Buffer.alloc(2 * megabyte, 'x').toString('latin1'), parseOf('', 'select b'));
  expect((await memoryUsed()) - before).toBeLessThan(megabyte);
  running.boundTo(nameOf(999));
  running.batchEnds(false);
  expect(running.current?.text).toBe('select a999');
});
