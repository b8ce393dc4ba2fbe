/** Which answers need no closer look; checked by tables and against a look at each message. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Backend } from '../../src/wire/message-types.js';
import { AnswerPart, notPlain, plainAnswer } from '../../src/wire/plain-answer.js';

function message(type: number, body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body as string, 'latin1');
  const header = Buffer.alloc(5);
  header.writeUInt8(type, 0);
  header.writeInt32BE(bytes.length + 4, 1);
  return Buffer.concat([header, bytes]);
}

const parsed = message(Backend.parseComplete);
const bound = message(Backend.bindComplete);
const described = message(Backend.rowDescription, '\x00\x01a description');
const noData = message(Backend.noData);
const row = message(Backend.dataRow, '\x00\x01\x00\x00\x00\x011');
const ready = (status = 'I'): Buffer => message(Backend.readyForQuery, status);
const tag = (text: string): Buffer => message(Backend.commandComplete, `${text}\x00`);

/** In the middle of other bytes, which must not matter. */
function look(...messages: readonly Buffer[]): number {
  const bytes = Buffer.concat([row, ...messages, ready()]);
  return plainAnswer(bytes, row.length, bytes.length - ready().length);
}

const { parseComplete, bindComplete, description } = AnswerPart;

test.each([
  ['to a query with rows', [described, row, row, tag('SELECT 2'), ready()], description],
  ['to a query without rows', [described, tag('SELECT 0'), ready()], description],
  ['to an INSERT', [tag('INSERT 0 1'), ready()], 0],
  ['to an UPDATE', [tag('UPDATE 3'), ready()], 0],
  ['to a DELETE', [tag('DELETE 3'), ready()], 0],
  [
    'to Parse, Bind, Describe, Execute and Sync',
    [parsed, bound, described, row, tag('SELECT 1'), ready()],
    parseComplete | bindComplete | description,
  ],
  [
    'to the same where no rows come',
    [parsed, bound, noData, tag('INSERT 0 1'), ready()],
    parseComplete | bindComplete | description,
  ],
  [
    'to Bind, Describe and Execute',
    [bound, described, row, tag('SELECT 1'), ready()],
    bindComplete | description,
  ],
  ['to Bind and Execute', [bound, row, tag('SELECT 1'), ready()], bindComplete],
] as const)('an answer is plain %s', (_to, messages, parts) => {
  expect(look(...messages)).toBe(parts);
});

test.each([
  ['with nothing in it', []],
  ['that is ready only', [ready()]],
  ['without a tag', [described, row, ready()]],
  ['with two tags', [tag('SELECT 1'), tag('SELECT 1'), ready()]],
  ['with rows behind the tag', [tag('SELECT 1'), row, ready()]],
  ['with a notice', [message(Backend.notice, 'M\x00'), tag('SELECT 1'), ready()]],
  ['with a notice among rows', [described, row, message(Backend.notice, 'M\x00'), tag('SELECT 1'), ready()]],
  ['with a reported setting', [tag('SELECT 1'), message(Backend.parameterStatus, 'a\x00b\x00'), ready()]],
  ['with an error', [message(Backend.error, 'M\x00'), ready()]],
  ['of SET', [tag('SET'), ready()]],
  ['of START TRANSACTION', [tag('START TRANSACTION'), ready()]],
  ['of DISCARD ALL', [tag('DISCARD ALL'), ready()]],
  ['of DEALLOCATE', [tag('DEALLOCATE'), ready()]],
  ['of DECLARE CURSOR', [tag('DECLARE CURSOR'), ready()]],
  ['of LISTEN', [tag('LISTEN'), ready()]],
  ['of RESET', [tag('RESET'), ready()]],
  ['of PREPARE', [tag('PREPARE'), ready()]],
  ['of COPY', [tag('COPY 3'), ready()]],
  ['of a suspended portal', [bound, row, message(Backend.portalSuspended), ready()]],
  ['of an empty query', [message(Backend.emptyQuery), ready()]],
  ['in a transaction', [tag('SELECT 1'), ready('T')]],
  ['in a failed transaction', [tag('SELECT 1'), ready('E')]],
  ['with a tag that is too long', [tag(`SELECT ${'1'.repeat(60)}`), ready()]],
  ['that is cut in its tag', [described, tag('SELECT 1').subarray(0, 9)]],
  ['that lacks its end', [described, row, tag('SELECT 1')]],
  ['that begins in the middle of a message', [row.subarray(3), tag('SELECT 1'), ready()]],
  ['with ParseComplete twice', [parsed, parsed, tag('SELECT 1'), ready()]],
  ['with a description twice', [described, described, tag('SELECT 1'), ready()]],
  ['with NoData that has something in it', [message(Backend.noData, 'x'), tag('SELECT 1'), ready()]],
] as const)('an answer is not plain %s', (_which, messages) => {
  expect(look(...messages)).toBe(notPlain);
});

test('an answer is not plain when its lengths are wrong', () => {
  const whole = Buffer.concat([parsed, bound, described, row, tag('SELECT 1'), ready()]);
  for (let at = 1; at < whole.length; at++) {
    const isLength = [parsed, bound, described, row, tag('SELECT 1'), ready()].some((_, index, all) => {
      const start = all.slice(0, index).reduce((sum, { length }) => sum + length, 0);
      return at > start && at <= start + 4;
    });
    for (const value of [0, 1, 3, 5, 0x7f, 0x80, 0xff]) {
      const bent = Buffer.from(whole);
      bent.writeUInt8(value, at);
      if (isLength && !bent.equals(whole)) expect(plainAnswer(bent, 0, bent.length)).toBe(notPlain);
    }
  }
});

test('a plain answer consists of whole messages, in the right order', () => {
  const piece = fc.constantFrom(
    ...[parsed, bound, described, noData, row, row, tag('SELECT 1'), tag('SET'), ready(), ready('T')],
    message(Backend.notice, 'M\x00'),
  );
  const byte = fc.record({ at: fc.nat(), value: fc.nat(255) });
  const answer = fc.tuple(fc.array(piece, { maxLength: 7 }), fc.array(byte, { maxLength: 2 }), fc.boolean());
  fc.assert(
    fc.property(answer, ([pieces, bends, ends]) => {
      const bytes = Buffer.concat([...pieces, ...(ends ? [tag('SELECT 1'), ready()] : [])]);
      for (const { at, value } of bends) if (bytes.length > 0) bytes[at % bytes.length] = value;
      const parts = plainAnswer(bytes, 0, bytes.length);
      const types = typesOf(bytes);
      const isPlain = /^1?2?[Tn]?D*CZ$/.test(types ?? '');
      if (parts !== notPlain) {
        expect(types).toMatch(/^1?2?[Tn]?D*CZ$/);
        expect(types?.includes('1')).toBe((parts & parseComplete) !== 0);
        expect(types?.includes('2')).toBe((parts & bindComplete) !== 0);
        expect(/[Tn]/.test(types as string)).toBe((parts & description) !== 0);
      } else if (isPlain && bends.length === 0) {
        // Such an answer changes the session, or a transaction is open.
        expect(bytes.includes('SET\x00') || bytes.at(-1) !== 0x49).toBe(true);
      }
    }),
    { numRuns: 5_000 },
  );
});

/** The letters of all messages; undefined where these are no whole messages. */
function typesOf(bytes: Buffer): string | undefined {
  let letters = '';
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < 5) return undefined;
    letters += String.fromCharCode(bytes.readUInt8(at));
    const length = bytes.readInt32BE(at + 1);
    if (length < 4) return undefined;
    at += 1 + length;
  }
  return at === bytes.length ? letters : undefined;
}
