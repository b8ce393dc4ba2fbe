import { beforeEach, expect, test } from 'vitest';
import { type PreparedStatement, StatementRegistry } from '../../../src/pooler/servers/prepared-statement.js';
import {
  preparedFrom,
  type RepeatedStatement,
  RepeatedStatements,
  usedForMs,
} from '../../../src/pooler/servers/repeated-statement.js';
import { writeParse } from '../../../src/wire/frontend-writers.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';

function parseOf(text: string, parameterTypes: readonly number[] = []): Buffer {
  const writer = new MessageWriter();
  writeParse(writer, { text, parameterTypes });
  return writer.take();
}

function meet(repeated: RepeatedStatements, text: string, types: readonly number[] = []): RepeatedStatement {
  const parse = parseOf(text, types);
  const met = repeated.meet(parse, 0, parse.length, '');
  if (met === undefined) throw new Error(`too long: ${text}`);
  return met;
}

function some(most?: number): { registry: StatementRegistry; repeated: RepeatedStatements } {
  const registry = new StatementRegistry(0);
  return { registry, repeated: new RepeatedStatements(registry, most) };
}

let now = 0;
/** Statements by the order in which they stood in for others. */
let seen: PreparedStatement[] = [];
beforeEach(() => {
  now = 0;
  seen = [];
});

function numberOf(statement: PreparedStatement): number {
  if (!seen.includes(statement)) seen.push(statement);
  return seen.indexOf(statement) + 1;
}

/** Repeats a statement; the result is the name that stands in for it the last time. */
function come(
  repeated: RepeatedStatements,
  text: string,
  times = preparedFrom,
  settings = '',
): number | undefined {
  const parse = parseOf(text);
  let number: number | undefined;
  for (let time = 0; time < times; time++) {
    const known = repeated.find(parse, 0, parse.length, settings);
    if (known === undefined) repeated.meet(parse, 0, parse.length, settings);
    else {
      const standIn = repeated.use(known, now);
      number = standIn === undefined ? undefined : numberOf(standIn.statement);
    }
  }
  return number;
}

test('statements without a name that come often enough are prepared', () => {
  const { repeated } = some();
  expect(come(repeated, 'select 1', preparedFrom - 1)).toBeUndefined();
  expect(come(repeated, 'select 1', 1)).toBe(1);
  expect(come(repeated, 'select 1', 1)).toBe(1);
});

test('statements without a name are the same only with the same text, types and settings', () => {
  const { repeated } = some();
  const find = (parse: Buffer, settings: string) => repeated.find(parse, 0, parse.length, settings);
  const one = meet(repeated, 'select $1', [23]);
  expect(find(parseOf('select $1', [23]), '')).toBe(one);
  expect(find(parseOf('select $1', [25]), '')).toBeUndefined();
  expect(find(parseOf('select $1 ', [23]), '')).toBeUndefined();
  expect(find(parseOf('select $1', [23]), 'set search_path = other')).toBeUndefined();
});

test('statements without a name are apart from what clients have prepared under a name', () => {
  const { registry, repeated } = some();
  come(repeated, 'select 2');
  expect(registry.size).toBe(0);
});

test('statements without a name are prepared anew when a table has changed', () => {
  const { repeated } = some();
  const one = meet(repeated, 'select 1');
  expect(come(repeated, 'select 1')).toBe(1);
  if (one.standIn !== undefined) one.standIn.isOutdated = true;
  expect(come(repeated, 'select 1', 1)).toBe(2);
});

test('statements without a name are prepared anew after a while, and what they were before can go', () => {
  const { repeated } = some();
  expect(come(repeated, 'select 1')).toBe(1);
  now = usedForMs - 1;
  expect(come(repeated, 'select 1', 1)).toBe(1);
  now = usedForMs;
  expect(come(repeated, 'select 1', 1)).toBe(2);
  const parse = parseOf('select 1');
  const { previous } = repeated.find(parse, 0, parse.length, '')?.standIn ?? {};
  expect(previous).toBe(seen[0]);
});

test('statements without a name are all prepared anew after a change of the schema', () => {
  const { repeated } = some();
  for (const text of ['select 1', 'select 2']) come(repeated, text);
  repeated.renew();
  expect(come(repeated, 'select 1', 1)).toBe(3);
  expect(come(repeated, 'select 2', 1)).toBe(4);
  expect(come(repeated, 'select 1', 1)).toBe(3);
});

test('statements without a name that mean something else each time, or are very long, are left alone', () => {
  const { repeated } = some();
  expect(come(repeated, "select 'now'::timestamptz")).toBeUndefined();
  expect(come(repeated, "select 'now'::timestamptz", 20)).toBeUndefined();
  expect(come(repeated, `select '${'x'.repeat(9_000)}'`)).toBeUndefined();
  expect(repeated.size).toBe(1);
});

test('statements without a name that come no more are forgotten', () => {
  const { repeated } = some(3);
  for (let n = 0; n < 50; n++) come(repeated, `select ${n}`);
  expect(repeated.size).toBe(3);
});

test('statements without a name that come often are not forgotten for those that come once', () => {
  const { repeated } = some(3);
  come(repeated, 'select 0');
  for (let n = 1; n < 50; n++) {
    come(repeated, `select ${n}`, 1);
    expect(come(repeated, 'select 0', 1)).toBe(1);
  }
  expect(repeated.size).toBe(3);
});

test('statements without a name that are forgotten while a client has them are sent as they are', () => {
  const { repeated } = some(1);
  const one = meet(repeated, 'select 1');
  for (let time = 0; time < preparedFrom; time++) repeated.use(one, 0);
  expect(one.standIn).toBeDefined();
  for (const text of ['select 2', 'select 3']) meet(repeated, text);
  expect(one.isForgotten).toBe(true);
  expect(repeated.use(one, 0)).toBeUndefined();
});
