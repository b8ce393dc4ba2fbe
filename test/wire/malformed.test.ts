// Malformed messages are refused with the typed error and 08P01, whatever is wrong with them, and nothing outside of them is read.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HeadgateError } from '../../src/kernel/errors.js';
import { ProtocolViolationError } from '../../src/wire/errors.js';
import { readPassword } from '../../src/wire/frontend-messages.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { type Kind, kinds } from './message-kinds.js';

const writer = new MessageWriter();
const rigid = kinds.filter(({ isElastic }) => !isElastic);

describe.each(rigid)('$name', (kind) => {
  test('a message is refused wherever it is cut', () => {
    fc.assert(
      fc.property(kind.any, (fields) => {
        const message = build(kind, fields);
        for (let cut = 0; cut < message.length; cut++) {
          expect(outcomeOf(kind, withLength(kind, message.subarray(0, cut)))).toMatchObject({
            violation: expect.any(String),
          });
        }
      }),
      { numRuns: 20 },
    );
  });

  test('a message is refused with anything behind its end', () => {
    fc.assert(
      fc.property(kind.any, fc.uint8Array({ minLength: 1, maxLength: 8 }), (fields, more) => {
        const message = Buffer.concat([build(kind, fields), more]);
        expect(outcomeOf(kind, withLength(kind, message))).toMatchObject({ violation: expect.any(String) });
      }),
    );
  });
});

describe.each(kinds)('$name with any byte changed', (kind) => {
  test('a message is read or refused, and is not judged by what is around it', () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom(0, 1, 0x7f, 0x80, 0xff));
    fc.assert(
      fc.property(
        kind.any,
        fc.array(change, { minLength: 1, maxLength: 3 }),
        fc.nat(),
        (fields, changes, cut) => {
          const message = build(kind, fields);
          const body = kind.direction === 'startup' ? 4 : 5;
          for (const [at, byte] of changes)
            if (message.length > body) message[body + (at % (message.length - body))] = byte;
          const cutMessage = withLength(
            kind,
            message.subarray(0, Math.max(body, message.length - (cut % 4))),
          );
          const alone = outcomeOf(kind, cutMessage);
          for (const around of [0, 0x41, 0xff]) expect(outcomeOf(kind, cutMessage, around)).toEqual(alone);
        },
      ),
    );
  });
});

test.each([
  ['StartupMessage', '0003', 'The startup packet is too short (bytes needed: 4, left: 2).'],
  ['StartupMessage', '00030000', 'The startup packet has a text without an end.'],
  ['StartupMessage', '00030000 7500', 'The startup packet has a text without an end.'],
  ['StartupMessage', '00030000 7500 7600', 'The startup packet has a text without an end.'],
  ['StartupMessage', '00030000 7500 7600 00 00', 'The startup packet is too long (bytes left over: 1).'],
  ['StartupMessage', '04d2162f 00', 'The startup packet is too long (bytes left over: 1).'],
  ['CancelRequest', '04d2162e 0000', 'The startup packet is too short (bytes needed: 4, left: 2).'],
  ['CancelRequest', '04d2162e 00000001', 'The startup packet has a cancel key of 0 bytes.'],
  ['CancelRequest', '04d2162e 00000001 ffffff', 'The startup packet has a cancel key of 3 bytes.'],
  [
    'CancelRequest',
    `04d2162e 00000001 ${'00'.repeat(257)}`,
    'The startup packet has a cancel key of 257 bytes.',
  ],
  ['Query', '', 'Query has a text without an end.'],
  ['Query', '4100 4100', 'Query has a wrong length (bytes expected: 7, present: 9).'],
  ['Parse', '00', 'Parse has a text without an end.'],
  ['Parse', '00 00', 'Parse is too short (bytes needed: 2, left: 0).'],
  ['Parse', '00 00 0001', 'Parse has a wrong length (bytes expected: 13, present: 9).'],
  ['Parse', '00 00 ffff 00000017', 'Parse has a wrong length (bytes expected: 262149, present: 13).'],
  ['Bind', '00 41', 'Bind has a text without an end.'],
  ['Bind', '00 00 ffff 0000', 'Bind is too short for its count (65535; bytes left: 2).'],
  ['Bind', '00 00 0000 0001 fffffffe', 'Bind has a value of length -2.'],
  ['Bind', '00 00 0000 0001 80000000', 'Bind has a value of length -2147483648.'],
  ['Bind', '00 00 0000 0001 7fffffff 41', 'Bind is too short (bytes needed: 2147483647, left: 1).'],
  ['Bind', '00 00 0000 0000 0000 00', 'Bind is too long (bytes left over: 1).'],
  ['Describe', '', 'Describe is too short (bytes needed: 1, left: 0).'],
  ['Describe', '58 00', 'Describe is about neither a statement nor a portal: its kind is 88.'],
  ['Close', '53 41', 'Close has a text without an end.'],
  ['Close', '53 00 00', 'Close has a wrong length (bytes expected: 7, present: 8).'],
  ['Execute', '00 000000', 'Execute is too short (bytes needed: 4, left: 3).'],
  ['Execute', '00 00000000 00', 'Execute has a wrong length (bytes expected: 10, present: 11).'],
  [
    'FunctionCall',
    '00000001 0000 ffff 0000',
    'FunctionCall is too short for its count (65535; bytes left: 2).',
  ],
  ['CopyFail', '41', 'CopyFail has a text without an end.'],
  ['PasswordMessage', '', 'PasswordMessage has a text without an end.'],
  ['PasswordMessage', '41 00 42 00', 'PasswordMessage is too long (bytes left over: 2).'],
  ['SASLInitialResponse', '41 00 fffffffe', 'SASLInitialResponse has a value of length -2.'],
  [
    'SASLInitialResponse',
    '41 00 00000002 41',
    'SASLInitialResponse is too short (bytes needed: 2, left: 1).',
  ],
  ['Authentication', '0000', 'Authentication is too short (bytes needed: 4, left: 2).'],
  ['Authentication', '00000000 00', 'Authentication is too long (bytes left over: 1).'],
  ['Authentication', '00000005 000000', 'Authentication is too short (bytes needed: 4, left: 3).'],
  ['Authentication', '0000000a 41 00', 'Authentication has a text without an end.'],
  ['Authentication', '0000000a 41 00 00 00', 'Authentication is too long (bytes left over: 1).'],
  ['BackendKeyData', '00000001 000000', 'BackendKeyData has a key of 3 bytes.'],
  ['BackendKeyData', `00000001 ${'00'.repeat(257)}`, 'BackendKeyData has a key of 257 bytes.'],
  ['ParameterStatus', '41 00 42', 'ParameterStatus has a text without an end.'],
  ['ReadyForQuery', '', 'ReadyForQuery has an unknown status (none; bytes: 5).'],
  ['ReadyForQuery', '58', 'ReadyForQuery has an unknown status (88; bytes: 6).'],
  ['RowDescription', 'ffff', 'RowDescription is too short for its count (65535; bytes left: 0).'],
  ['RowDescription', `0001 ${'41'.repeat(19)}`, 'RowDescription has a text without an end.'],
  ['DataRow', '8000', 'DataRow is too short for its count (32768; bytes left: 0).'],
  ['DataRow', '0001 fffffff0', 'DataRow has a value of length -16.'],
  ['DataRow', '0001 00000005 41', 'DataRow is too short (bytes needed: 5, left: 1).'],
  ['CommandComplete', '41 00 00', 'CommandComplete is too long (bytes left over: 1).'],
  ['ErrorResponse', '', 'ErrorResponse or NoticeResponse is too short (bytes needed: 1, left: 0).'],
  ['ErrorResponse', '53 4100', 'ErrorResponse or NoticeResponse is too short (bytes needed: 1, left: 0).'],
  ['NoticeResponse', '53 41', 'ErrorResponse or NoticeResponse has a text without an end.'],
  ['NoticeResponse', '00 00', 'ErrorResponse or NoticeResponse is too long (bytes left over: 1).'],
  [
    'ParameterDescription',
    '0002 00000000',
    'ParameterDescription is too short for its count (2; bytes left: 4).',
  ],
  ['NotificationResponse', '00000001 41 00', 'NotificationResponse has a text without an end.'],
  ['CopyInResponse', '00 ffff', 'CopyResponse is too short for its count (65535; bytes left: 0).'],
  ['FunctionCallResponse', 'fffffffd', 'FunctionCallResponse has a value of length -3.'],
  [
    'NegotiateProtocolVersion',
    '00030000 ffffffff',
    'NegotiateProtocolVersion is too short for its count (-1; bytes left: 0).',
  ],
  [
    'NegotiateProtocolVersion',
    '00030000 7fffffff',
    'NegotiateProtocolVersion is too short for its count (2147483647; bytes left: 0).',
  ],
])('%s with the body "%s" is refused: %s', (name, hex, text) => {
  const kind = kinds.find((candidate) => candidate.name === name) as Kind;
  const body = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  const header = Buffer.alloc(kind.direction === 'startup' ? 4 : 5, kind.type);
  expect(outcomeOf(kind, withLength(kind, Buffer.concat([header, body])))).toEqual({ violation: text });
});

test('a violation has the SQLSTATE that a client is told, and a code', () => {
  const error = new ProtocolViolationError('why');
  expect(error).toBeInstanceOf(HeadgateError);
  expect([error.code, error.sqlState, error.message]).toEqual(['HG_PROTOCOL_VIOLATION', '08P01', 'why']);
});

test('a violation in a password message does not tell the password', () => {
  const message = Buffer.from('p\0\0\0\x0ehunter2-ab');
  expect(() => readPassword(message, 0, message.length)).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('hunter') }),
  );
});

function build(kind: Kind, fields: unknown): Buffer {
  writer.clear();
  kind.write(writer, fields);
  return writer.take();
}

/** The length word says what is there, as a scanner makes sure of; so only the body is to be judged. */
function withLength(kind: Kind, message: Buffer): Buffer {
  const copy = Buffer.from(message);
  const at = kind.direction === 'startup' ? 0 : 1;
  if (copy.length >= at + 4) copy.writeInt32BE(copy.length - at, at);
  return copy;
}

/** What reading answers, or the text of the violation; anything else that is thrown fails the test. */
function outcomeOf(kind: Kind, message: Buffer, around?: number): unknown {
  const margin = around === undefined ? 0 : 7;
  const side = Buffer.alloc(margin, around);
  const source = Buffer.concat([side, message, side]);
  try {
    return { fields: kind.read(source, margin, margin + message.length) };
  } catch (error) {
    if (error instanceof ProtocolViolationError) return { violation: error.message };
    // Bytes that say "cancel" or "ssl" make another packet of it; that is for the startup kinds to tell.
    if (error instanceof Error && error.message.startsWith('It was read as '))
      return { otherwise: error.message };
    throw error;
  }
}
