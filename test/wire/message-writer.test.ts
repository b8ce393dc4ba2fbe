// Messages built one after the other in one buffer, and what can't be built.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { writeAuthentication } from '../../src/wire/authentication.js';
import { writeError } from '../../src/wire/error-fields.js';
import { UnsendableMessageError } from '../../src/wire/errors.js';
import { readyIdle, sync } from '../../src/wire/fixed-messages.js';
import { writeBind, writeCopyData, writeParse, writeQuery } from '../../src/wire/frontend-writers.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { writeDataRow, writeRowDescription } from '../../src/wire/rows.js';
import { backendRules, frontendRules } from '../../src/wire/scan-rules.js';
import { writeBackendKeyData } from '../../src/wire/session-messages.js';
import { SqlState } from '../../src/wire/sql-states.js';
import { readStartupPacket, writeCancelRequest, writeStartup } from '../../src/wire/startup-packet.js';
import { kinds } from './message-kinds.js';
import { bytesOf, scan } from './scanning.js';

test('Messages follow each other in one buffer, however small it was at first', () => {
  const several = kinds
    .filter(({ direction }) => direction === 'backend')
    .map((kind) => kind.any.map((fields) => ({ kind, fields })));
  fc.assert(
    fc.property(fc.array(fc.oneof(...several), { maxLength: 20 }), fc.nat(40), (messages, initialBytes) => {
      const together = new MessageWriter(initialBytes);
      const alone = messages.map(({ kind, fields }) => {
        const writer = new MessageWriter();
        kind.write(writer, fields);
        kind.write(together, fields);
        return writer.take();
      });
      expect(bytesOf(scan(backendRules(), together.take(), []).messages)).toEqual(alone);
    }),
  );
});

test('Messages may be long texts in any script', () => {
  const text = 'añb→c😀'.repeat(5_000);
  const writer = new MessageWriter();
  writeQuery(writer, text);
  expect(writer.take().toString('utf8', 5)).toBe(`${text}\0`);
});

test('Messages may be others that are finished already', () => {
  const writer = new MessageWriter(16);
  writer.append(sync);
  writer.append(Buffer.concat([readyIdle, sync, readyIdle]), 6, 11);
  expect(writer.take()).toEqual(Buffer.concat([sync, sync]));
});

test('The buffer is used again after clear()', () => {
  const writer = new MessageWriter();
  writeQuery(writer, 'select 1');
  const { buffer } = writer;
  writer.clear();
  writeQuery(writer, 'select 2');
  expect(writer.buffer).toBe(buffer);
  expect(buffer.toString('utf8', 5, writer.length)).toBe('select 2\0');
});

test('The buffer is not kept when a large message made it grow', () => {
  const writer = new MessageWriter();
  writeCopyData(writer, Buffer.alloc(100_000));
  writer.clear();
  expect(writer.buffer.length).toBeLessThan(10_000);
});

test('The buffer is given away by take(): later messages do not touch it', () => {
  const writer = new MessageWriter();
  writeQuery(writer, 'select 1');
  const first = writer.take();
  writeQuery(writer, 'select 2');
  expect(first.toString('utf8', 5)).toBe('select 1\0');
  expect(writer.length).toBe(first.length);
});

const cases: [string, (writer: MessageWriter) => void, string][] = [
  ['a text with a zero byte', (w) => writeQuery(w, 'select 1\0; drop'), 'A text with a zero byte'],
  [
    'bytes of a text with a zero',
    (w) => writeParse(w, { name: Buffer.from('a\0b'), text: '' }),
    'A text with a zero byte',
  ],
  [
    'more parameters than can be counted',
    (w) => writeBind(w, { values: Array(65_536).fill(null) }),
    'these are 65536',
  ],
  ['more columns than can be counted', (w) => writeDataRow(w, Array(70_000).fill(null)), 'these are 70000'],
  ['a cancel key of 3 bytes', (w) => writeCancelRequest(w, 1, Buffer.alloc(3)), 'not 3'],
  [
    'a cancel key of 257 bytes',
    (w) => writeBackendKeyData(w, { processId: 1, secretKey: Buffer.alloc(257) }),
    'not 257',
  ],
  ['a salt of 5 bytes', (w) => writeAuthentication(w, { kind: 'md5', salt: Buffer.alloc(5) }), 'not 5'],
  [
    'a mechanism without a name',
    (w) => writeAuthentication(w, { kind: 'sasl', mechanisms: ['a', ''] }),
    'without a name',
  ],
  [
    'a startup parameter without a name',
    (w) => writeStartup(w, { version: 196_608, parameters: [['', 'x']] }),
    'without a name',
  ],
  [
    'a startup packet that no server takes',
    (w) => writeStartup(w, { version: 196_608, parameters: [['user', 'x'.repeat(9_990)]] }),
    '10005 bytes is too large; 10004 are possible',
  ],
];

test.each(cases)(
  'What has no place in the protocol is refused, and nothing of it is written: %s',
  (_name, write, text) => {
    const writer = new MessageWriter();
    writer.append(sync);
    expect(() => write(writer)).toThrow(UnsendableMessageError);
    expect(() => write(writer)).toThrow(text);
    writer.append(sync);
    expect(writer.take()).toEqual(Buffer.concat([sync, sync]));
  },
);

test('What has no place in the protocol does not include what PostgreSQL can just take', () => {
  const writer = new MessageWriter();
  writeStartup(writer, { version: 196_608, parameters: [['user', 'x'.repeat(9_989)]] });
  expect(writer.length).toBe(10_004);
  expect(readStartupPacket(writer.buffer, 0, writer.length)).toMatchObject({ kind: 'startup' });
  writer.clear();
  writeBind(writer, { values: Array(65_535).fill(null) });
  expect(bytesOf(scan(frontendRules(), writer.take(), []).messages)).toHaveLength(1);
});

test('An error is laid out as PostgreSQL does it, severity twice', () => {
  const writer = new MessageWriter();
  writeError(writer, { severity: 'FATAL', code: SqlState.tooManyConnections, message: 'no', hint: 'wait' });
  expect(writer.take().toString('utf8', 5)).toBe('SFATAL\0VFATAL\0C53300\0Mno\0Hwait\0\0');
});

test('A column is a text of no table, unless more is said', () => {
  const writer = new MessageWriter();
  writeRowDescription(writer, [{ name: 'n' }]);
  expect(writer.take().toString('hex', 5)).toBe(
    '0001' + '6e00' + '00000000' + '0000' + '00000019' + 'ffff' + 'ffffffff' + '0000',
  );
});
