// Every kind of message is read as it was built.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as fixed from '../../src/wire/fixed-messages.js';
import { BindView, ParseView } from '../../src/wire/frontend-views.js';
import { writeBind, writeParse } from '../../src/wire/frontend-writers.js';
import { Backend, backendName, Frontend, frontendName } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { isCommandTag, writeCommandComplete } from '../../src/wire/rows.js';
import { readReadyForQuery } from '../../src/wire/session-messages.js';
import { SqlState } from '../../src/wire/sql-states.js';
import { readStartupPacket } from '../../src/wire/startup-packet.js';
import { kinds } from './message-kinds.js';

/** One writer for all, as in a pooler: nothing of an earlier message may show in a later one. */
const writer = new MessageWriter(16);

describe.each(kinds)('$name', ({ any, direction, type, write, read }) => {
  test('a message is read as it was built, wherever in a buffer it is', () => {
    fc.assert(
      fc.property(any, fc.nat(9), fc.nat(9), (fields, before, after) => {
        writer.clear();
        write(writer, fields);
        const size = writer.length;
        // Bytes that would be taken for more of the message, if anyone looked there.
        const source = Buffer.concat([
          Buffer.alloc(before, 0xff),
          writer.buffer.subarray(0, size),
          Buffer.alloc(after, 0),
        ]);
        expect(read(source, before, before + size)).toEqual(fields);
      }),
    );
  });

  test('a message begins with its type, where it has one, and its length', () => {
    fc.assert(
      fc.property(any, (fields) => {
        writer.clear();
        write(writer, fields);
        const message = writer.take();
        const header = direction === 'startup' ? 4 : 5;
        if (direction !== 'startup') expect(message[0]).toBe(type);
        expect(message.readInt32BE(header - 4)).toBe(message.length - (header - 4));
      }),
      { numRuns: 20 },
    );
  });
});

test('every type byte that has a body has been built and read above', () => {
  const empty = [fixed.sync, fixed.flush, fixed.terminate, fixed.copyDone].map((message) => message[0]);
  const tested = kinds.filter(({ direction }) => direction === 'frontend').map(({ type }) => type);
  expect(new Set([...empty, ...tested])).toEqual(new Set(Object.values(Frontend)));
  const {
    parseComplete,
    bindComplete,
    closeComplete,
    noData,
    portalSuspended,
    emptyQueryResponse,
    copyDone,
  } = fixed;
  const emptyFromServer = [
    ...[parseComplete, bindComplete, closeComplete, noData, portalSuspended, emptyQueryResponse, copyDone],
  ].map((message) => message[0]);
  const testedFromServer = kinds.filter(({ direction }) => direction === 'backend').map(({ type }) => type);
  expect(new Set([...emptyFromServer, ...testedFromServer])).toEqual(new Set(Object.values(Backend)));
});

test('messages without a body are their type and a length of 4', () => {
  const { encryptionAccepted, encryptionRefused, ...messages } = fixed;
  expect(encryptionAccepted.toString()).toBe('S');
  expect(encryptionRefused.toString()).toBe('N');
  const hex = Object.fromEntries(
    Object.entries(messages).map(([name, bytes]) => [name, bytes.toString('hex')]),
  );
  expect(hex).toEqual({
    sync: '5300000004',
    flush: '4800000004',
    terminate: '5800000004',
    copyDone: '6300000004',
    parseComplete: '3100000004',
    bindComplete: '3200000004',
    closeComplete: '3300000004',
    noData: '6e00000004',
    portalSuspended: '7300000004',
    emptyQueryResponse: '4900000004',
    authenticationOk: '520000000800000000',
    readyIdle: '5a0000000549',
    readyInTransaction: '5a0000000554',
    readyFailed: '5a0000000545',
    sslRequest: '0000000804d2162f',
    gssEncRequest: '0000000804d21630',
  });
});

test('requests for encryption are told apart', () => {
  expect(readStartupPacket(fixed.sslRequest, 0, 8)).toEqual({ kind: 'ssl' });
  expect(readStartupPacket(fixed.gssEncRequest, 0, 8)).toEqual({ kind: 'gssenc' });
});

test('a startup packet of another major version is read as far as its version, so that it can be refused', () => {
  const old = Buffer.from('0000000a00020000ffff', 'hex');
  expect(readStartupPacket(old, 0, old.length)).toMatchObject({ kind: 'startup', major: 2, minor: 0 });
});

test('the key of a statement is the same only for the same text and parameter types', () => {
  const keyOf = (text: string | Buffer, parameterTypes: number[], name: string): string => {
    writeParse(writer, { name, text, parameterTypes });
    const message = writer.take();
    return new ParseView().read(message, 0, message.length).statementKey();
  };
  expect(keyOf('select $1', [23], 'a')).toBe(keyOf('select $1', [23], 'b'));
  expect(keyOf('select $1', [23], 'a')).not.toBe(keyOf('select $1', [20], 'a'));
  expect(keyOf('select $1', [23], 'a')).not.toBe(keyOf('select $1', [], 'a'));
  expect(keyOf('select $1', [23], 'a')).not.toBe(keyOf('select $2', [23], 'a'));
  // Neither is UTF-8, and both would be decoded as the same replacement character.
  expect(keyOf(Buffer.from([0xff]), [], '')).not.toBe(keyOf(Buffer.from([0xfe]), [], ''));
});

test('the names of a Bind are read from its first piece, when the rest is not there', () => {
  writeBind(writer, { portal: 'p', statement: 's1', values: [Buffer.alloc(1_000)] });
  const message = writer.take();
  const bind = new BindView().read(message, 0, 20);
  expect([bind.portalKey(), bind.nameKey(), bind.size]).toEqual(['p', 's1', message.length]);
  expect(bind.isUnnamed).toBe(false);
});

test('a command tag is recognised without being decoded', () => {
  writeCommandComplete(writer, 'DISCARD ALL');
  const message = writer.take();
  const is = (tag: string) => isCommandTag(message, 0, message.length, tag);
  expect([is('DISCARD ALL'), is('DISCARD AL'), is('DISCARD ALL '), is('DISCARD ALX')]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

test('the state after a query is the byte of ReadyForQuery', () => {
  const status = [fixed.readyIdle, fixed.readyInTransaction, fixed.readyFailed].map((message) =>
    String.fromCharCode(readReadyForQuery(message, 0, message.length)),
  );
  expect(status).toEqual(['I', 'T', 'E']);
});

test('messages have names for texts, and unknown ones their byte', () => {
  expect([frontendName(0x42), frontendName(0x7a), backendName(0x44), backendName(1)]).toEqual([
    'Bind',
    'type 0x7a',
    'DataRow',
    'type 0x01',
  ]);
});

test('SQLSTATEs are five characters, and no two names have the same', () => {
  const states = Object.values(SqlState);
  for (const state of states) expect(state).toMatch(/^[0-9A-Z]{5}$/);
  expect(new Set(states).size).toBe(states.length);
});
