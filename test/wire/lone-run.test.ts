import { expect, test } from 'vitest';
import { copyDone, flush, sync } from '../../src/wire/fixed-messages.js';
import { writeBind, writeDescribe, writeExecute } from '../../src/wire/frontend-writers.js';
import { isLoneRun } from '../../src/wire/lone-run.js';
import { Target } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';

type Write = (writer: MessageWriter) => void;

const bind: Write = (writer) => writeBind(writer, { values: ['17', null] });
const describePortal: Write = (writer) => writeDescribe(writer, Target.portal, '');
const execute: Write = (writer) => writeExecute(writer);
const end: Write = (writer) => writer.append(sync);

function bytesOf(...writes: readonly Write[]): Buffer {
  const writer = new MessageWriter();
  for (const write of writes) write(writer);
  return writer.take();
}

/** In the middle of other bytes, which must not matter. */
function isRun(bytes: Buffer, name = ''): boolean {
  const all = Buffer.concat([flush, bytes, copyDone]);
  return isLoneRun(Buffer.from(name), all, flush.length, flush.length + bytes.length);
}

const run = bytesOf(bind, describePortal, execute, end);

test.each<readonly [string, readonly Write[]]>([
  ['values', [bind, describePortal, execute, end]],
  ['none', [(writer) => writeBind(writer, {}), describePortal, execute, end]],
  ['a limit on its rows', [bind, describePortal, (writer) => writeExecute(writer, '', 3), end]],
])('the run of the unnamed statement is recognised, with %s', (_with, writes) => {
  expect(isRun(bytesOf(...writes))).toBe(true);
});

test('and that of one that has a name, if it is this one', () => {
  const ofA = bytesOf((writer) => writeBind(writer, { statement: 'abc' }), describePortal, execute, end);
  expect(isRun(ofA, 'abc')).toBe(true);
  for (const name of ['', 'ab', 'abcd', 'abd', 'ABC']) expect(isRun(ofA, name)).toBe(false);
  expect(isRun(run, 'abc')).toBe(false);
});

test.each<readonly [string, readonly Write[]]>([
  ['no Bind', [describePortal, execute, end]],
  ['no Describe', [bind, execute, end]],
  ['no Execute', [bind, describePortal, end]],
  ['no Sync', [bind, describePortal, execute]],
  ['another order', [describePortal, bind, execute, end]],
  ['something before it', [(writer) => writer.append(flush), bind, describePortal, execute, end]],
  ['something behind it', [bind, describePortal, execute, end, end]],
  ['two of them', [bind, describePortal, execute, end, bind, describePortal, execute, end]],
  ['a statement that has a name', [(w) => writeBind(w, { statement: 'a' }), describePortal, execute, end]],
  ['a portal that has a name', [(w) => writeBind(w, { portal: 'p' }), describePortal, execute, end]],
  ['another portal described', [bind, (w) => writeDescribe(w, Target.portal, 'p'), execute, end]],
  ['a statement described', [bind, (w) => writeDescribe(w, Target.statement, ''), execute, end]],
  ['another portal executed', [bind, describePortal, (w) => writeExecute(w, 'p'), end]],
])('it is not, with %s', (_with, writes) => {
  expect(isRun(bytesOf(...writes))).toBe(false);
});

test('a run of messages is not alone when it is cut, or a byte of its headers or names is another', () => {
  for (let length = 0; length < run.length; length++) expect(isRun(run.subarray(0, length))).toBe(false);
  const described = run.length - 22;
  const values = { from: 7, to: described };
  const limit = { from: run.length - 9, to: run.length - 5 };
  for (let at = 0; at < run.length; at++) {
    const isFree = [values, limit].some(({ from, to }) => at >= from && at < to);
    for (let value = 0; value < 256; value++) {
      const bent = Buffer.from(run);
      bent[at] = value;
      expect(isRun(bent)).toBe(isFree || bent.equals(run));
    }
  }
});
