// The messages that are found do not depend on where the stream was cut, and memory is held only for what was asked for.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvariantError, PoolOptionsError } from '../../src/kernel/errors.js';
import { ProtocolViolationError } from '../../src/wire/errors.js';
import { flush, readyIdle, sslRequest, sync } from '../../src/wire/fixed-messages.js';
import { writeParse, writePassword, writeQuery } from '../../src/wire/frontend-writers.js';
import { MessageScanner } from '../../src/wire/message-scanner.js';
import { Backend, Frontend, tlsHandshakeByte } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { authenticationRules, backendRules, frontendRules, startupRules } from '../../src/wire/scan-rules.js';
import { writeStartup } from '../../src/wire/startup-packet.js';
import { bytesOf, freeTypes, headerOf, messageOf, note, type Scanned, scan } from './scanning.js';

const plain = frontendRules();
/** Of the four types, one comes whole, one has a head, one has both, one neither. */
const mixed = frontendRules({
  query: { wholeUpTo: 64 },
  parse: { head: 9 },
  bind: { wholeUpTo: 12, head: 8 },
});

const anyMessage = fc
  .tuple(fc.constantFrom(...freeTypes), fc.oneof(fc.nat(12), fc.nat(200)))
  .map(([type, size]) => messageOf(type, size));

test.each([
  ['Sync, Flush, Sync', plain, [sync, flush, sync]],
  ['a whole Query and Sync', mixed, [messageOf(Frontend.query, 3), sync]],
  ['a Parse with a head and Sync', mixed, [messageOf(Frontend.parse, 6), flush]],
  [
    'a Bind that is whole, another that is not',
    mixed,
    [messageOf(Frontend.bind, 2), messageOf(Frontend.bind, 4)],
  ],
  ['ReadyForQuery and ParseComplete', backendRules(), [readyIdle, messageOf(Backend.parseComplete, 0)]],
  ['two requests for encryption', startupRules, [sslRequest, sslRequest]],
])(
  'The messages in a stream are the same in every one of all possible cuts: %s',
  (_name, rules, messages) => {
    const stream = Buffer.concat(messages);
    expect(stream.length).toBeLessThanOrEqual(16);
    const expected = messages.map((message) => message.toString('hex'));
    for (let cutSet = 0; cutSet < 1 << (stream.length - 1); cutSet++) {
      const cuts: number[] = [];
      for (let at = 1; at < stream.length; at++) if ((cutSet >> (at - 1)) & 1) cuts.push(at);
      const found = scan(rules, stream, cuts);
      const hex = bytesOf(found.messages).map((message) => message.toString('hex'));
      if (hex.join() !== expected.join() || !found.scanner.isBetweenMessages) {
        expect({ cuts, hex }).toEqual({ cuts, hex: expected });
      }
    }
  },
);

test('The messages in a stream are the same wherever two cuts are', () => {
  const messages = [3, 60, 0, 30].map((size, index) => messageOf(freeTypes[index % 4] as number, size));
  const stream = Buffer.concat(messages);
  for (let first = 0; first <= stream.length; first++) {
    for (let second = first; second <= stream.length; second++) {
      const found = bytesOf(scan(mixed, stream, [first, second]).messages);
      if (found.length !== 4 || !Buffer.concat(found).equals(stream))
        expect({ first, second, found }).toBeUndefined();
    }
  }
});

test('The messages in a stream are the same in any cuts of any stream, and those that are wanted whole come whole', () => {
  fc.assert(
    fc.property(
      fc.array(anyMessage, { maxLength: 12 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (messages, cuts) => {
        const stream = Buffer.concat(messages);
        const found = scan(
          mixed,
          stream,
          cuts.map((cut) => cut % (stream.length + 1)),
        );
        expect(bytesOf(found.messages)).toEqual(messages);
        expect(found.scanner.isBetweenMessages).toBe(true);
        for (const { type, size, pieces } of found.messages) {
          if (size <= (mixed.wholeUpTo[type] as number)) expect(pieces).toHaveLength(1);
          expect(pieces[0]?.length).toBeGreaterThanOrEqual(Math.min(size, mixed.head[type] as number));
        }
      },
    ),
  );
});

test('The messages in a stream are the same bytes whether they were collected or not', () => {
  const writer = new MessageWriter();
  writeParse(writer, { name: 's', text: 'select 1' });
  const parse = writer.take();
  const whole = frontendRules({ parse: { wholeUpTo: 100 } });
  for (let cut = 0; cut <= parse.length; cut++) {
    expect(scan(whole, parse, [cut]).messages[0]?.pieces).toEqual([parse]);
  }
});

test('The messages in a stream are part of the chunk unless they had to be collected', () => {
  const chunk = Buffer.concat([sync, messageOf(Frontend.query, 20), messageOf(Frontend.copyData, 20)]);
  const scanner = new MessageScanner(mixed);
  scanner.push(chunk, 0, 40);
  const starts: number[] = [];
  while (scanner.next()) {
    expect(scanner.source).toBe(chunk);
    starts.push(scanner.start);
  }
  expect(starts).toEqual([0, 5, 30]);
  expect(scanner.heldBytes).toBe(0);
  expect(scanner.isBetweenMessages).toBe(false);
});

test('The messages in a stream leave nothing of the chunk behind once it is read', () => {
  const scanner = new MessageScanner(plain);
  scanner.push(sync);
  while (scanner.next());
  expect([scanner.source.length, scanner.start, scanner.end, scanner.unread]).toEqual([0, 0, 0, 0]);
});

test('The messages in a stream can be a gigabyte long, and take no memory', () => {
  const scanner = new MessageScanner(plain);
  const chunk = Buffer.alloc(1 << 20);
  let bytes = 0;
  scanner.push(headerOf(Frontend.copyData, 0x3fff_fffe));
  while (scanner.next()) bytes += scanner.end - scanner.start;
  while (!scanner.isBetweenMessages) {
    scanner.push(chunk, 0, Math.min(chunk.length, scanner.size - bytes));
    while (scanner.next()) bytes += scanner.end - scanner.start;
    expect(scanner.heldBytes).toBe(0);
  }
  expect(bytes).toBe(0x3fff_ffff);
  expect(scanner.isLast).toBe(true);
});

test('Memory is held in proportion to what arrived, not to what was announced', () => {
  const rules = frontendRules({ parse: { wholeUpTo: 1 << 20 } });
  const scanner = new MessageScanner(rules);
  const chunk = Buffer.alloc(1_000);
  scanner.push(headerOf(Frontend.parse, 1_000_003));
  expect(scanner.next()).toBe(false);
  expect(scanner.heldBytes).toBeLessThanOrEqual(256);
  for (let received = 1_000; received < 1_000_000; received += 1_000) {
    scanner.push(chunk);
    expect(scanner.next()).toBe(false);
    expect(scanner.heldBytes).toBeLessThanOrEqual(2 * (received + 5));
  }
  scanner.push(chunk);
  expect(scanner.next()).toBe(true);
  expect([scanner.isWhole, scanner.end - scanner.start, scanner.heldBytes]).toEqual([true, 1_000_004, 0]);
});

test('Memory is never held beyond what the rules allow', () => {
  fc.assert(
    fc.property(fc.array(anyMessage, { maxLength: 6 }), fc.nat(40), (messages, step) => {
      const stream = Buffer.concat(messages);
      const cuts = Array.from(
        { length: Math.floor(stream.length / (step + 1)) },
        (_, i) => (i + 1) * (step + 1),
      );
      expect(scan(mixed, stream, cuts).heldBytes).toBeLessThanOrEqual(64);
    }),
  );
});

test('Memory is not taken for messages that are not cut: scanning makes no garbage', () => {
  const messages = Array.from({ length: 1_000 }, (_, index) =>
    messageOf(freeTypes[index % 4] as number, index % 50),
  );
  const chunk = Buffer.concat(messages);
  const scanner = new MessageScanner(mixed);
  let checksum = 0;
  const pass = (): void => {
    scanner.push(chunk, 0, chunk.length);
    while (scanner.next()) checksum = (checksum + scanner.type + scanner.end) | 0;
  };
  for (let warmUp = 0; warmUp < 200; warmUp++) pass();
  // The smallest object is 16 bytes: for each message, 1.6 MB would be seen.
  const growth = Array.from({ length: 15 }, () => {
    const before = process.memoryUsage().heapUsed;
    for (let round = 0; round < 100; round++) pass();
    return process.memoryUsage().heapUsed - before;
  });
  const median = growth.sort((a, b) => a - b)[7] as number;
  expect(checksum).not.toBe(0);
  expect(median).toBeLessThan(400_000);
});

test.each([
  [
    '0',
    plain,
    headerOf(Frontend.query, 0),
    'Query says that its length is 0; it must be from 4 to 1073741822.',
  ],
  [
    '3',
    plain,
    headerOf(Frontend.query, 3),
    'Query says that its length is 3; it must be from 4 to 1073741822.',
  ],
  [
    '-1',
    plain,
    headerOf(Frontend.bind, -1),
    'Bind says that its length is -1; it must be from 4 to 1073741822.',
  ],
  [
    '2^31',
    plain,
    headerOf(Frontend.bind, 2 ** 31),
    'Bind says that its length is -2147483648; it must be from 4 to 1073741822.',
  ],
  [
    '1 GiB',
    plain,
    headerOf(Frontend.query, 2 ** 30),
    'Query says that its length is 1073741824; it must be from 4 to 1073741822.',
  ],
  [
    '5, of a message without a body',
    plain,
    headerOf(Frontend.sync, 5),
    'Sync says that its length is 5; it must be from 4 to 4.',
  ],
  [
    '10001, of a name',
    plain,
    headerOf(Frontend.close, 10_001),
    'Close says that its length is 10001; it must be from 4 to 10000.',
  ],
  [
    '6, of a state',
    backendRules(),
    headerOf(Backend.readyForQuery, 6),
    'ReadyForQuery says that its length is 6; it must be from 4 to 5.',
  ],
  [
    '265, of a key',
    backendRules(),
    headerOf(Backend.backendKeyData, 265),
    'BackendKeyData says that its length is 265; it must be from 4 to 264.',
  ],
  [
    '10005, of a startup packet',
    startupRules,
    Buffer.from('00002715', 'hex'),
    'StartupMessage says that its length is 10005; it must be from 4 to 10004.',
  ],
  [
    'that is really TLS',
    startupRules,
    Buffer.from([tlsHandshakeByte, 3, 1, 0]),
    'StartupMessage says that its length is 369295616; it must be from 4 to 10004.',
  ],
  [
    '65536, of a password',
    authenticationRules,
    headerOf(Frontend.password, 65_536),
    'Password says that its length is 65536; it must be from 4 to 65535.',
  ],
])('A length of %s is refused in any cuts, after what came before it', (_name, rules, header, text) => {
  const isStartup = rules === startupRules;
  const before = isStartup ? sslRequest : rules.direction === 'backend' ? readyIdle : sync;
  const good = rules === authenticationRules ? messageOf(Frontend.password, 2) : before;
  const stream = Buffer.concat([good, header]);
  for (let cut = 0; cut <= stream.length; cut++) {
    const found = scan(rules, stream, [cut]);
    expect(bytesOf(found.messages)).toEqual([good]);
    expect(found.violation).toBe(text);
    expect(found.scanner.heldBytes).toBe(0);
  }
});

test('A length up to the limit that the rules give is accepted, and one more is not', () => {
  const rules = frontendRules({ query: { longest: 100 } });
  expect(scan(rules, messageOf(Frontend.query, 95), []).messages).toHaveLength(1);
  expect(scan(rules, messageOf(Frontend.query, 96), []).violation).toBe(
    'Query says that its length is 100; it must be from 4 to 99.',
  );
});

test('A violation is seen in the first byte of a type that does not exist', () => {
  const scanner = new MessageScanner(plain);
  scanner.push(Buffer.from('z'));
  expect(() => scanner.next()).toThrow(
    new ProtocolViolationError('A frontend message (type 0x7a) came that is not expected here.'),
  );
});

test('A violation is the same in any cuts', () => {
  const stream = Buffer.concat([sync, headerOf(0x7a, 4)]);
  const violations = Array.from({ length: 10 }, (_, cut) => scan(plain, stream, [cut]).violation);
  expect(new Set(violations).size).toBe(1);
});

test('A violation is for ever: where the next message begins is not known', () => {
  const scanner = new MessageScanner(plain);
  scanner.push(headerOf(Frontend.query, 3));
  expect(() => scanner.next()).toThrow(ProtocolViolationError);
  scanner.push(sync);
  expect(() => scanner.next()).toThrow('Query says that its length is 3');
  expect(scanner.isBetweenMessages).toBe(false);
});

test('A violation is a password before it is asked for, and anything else while it is', () => {
  expect(scan(plain, messageOf(Frontend.password, 3), []).violation).toContain('(Password)');
  expect(scan(authenticationRules, sync, []).violation).toContain('(Sync)');
});

test('A session goes from the startup packet to authentication to messages, in one chunk or byte by byte', () => {
  const writer = new MessageWriter();
  writeStartup(writer, { version: 0x0003_0000, parameters: [['user', 'ann']] });
  writePassword(writer, 'secret');
  writeQuery(writer, 'select 1');
  const stream = writer.take();
  for (const step of [stream.length, 7, 1]) {
    const scanner = new MessageScanner(startupRules);
    const types: number[] = [];
    for (let at = 0; at < stream.length; at += step) {
      scanner.push(stream, at, Math.min(at + step, stream.length));
      while (scanner.next()) {
        if (scanner.isFirst) types.push(scanner.type);
        if (scanner.type === 0) scanner.use(authenticationRules);
        if (scanner.type === Frontend.password) scanner.use(plain);
      }
    }
    expect(types).toEqual([0, Frontend.password, Frontend.query]);
    expect(scanner.rules).toBe(plain);
  }
});

test('A session shows what is behind a request for encryption, which must be nothing', () => {
  const scanner = new MessageScanner(startupRules);
  scanner.push(Buffer.concat([sslRequest, Buffer.from([0x16])]));
  expect(scanner.next()).toBe(true);
  expect(scanner.unread).toBe(1);
});

/** What `takeBack()` gives, in memory of which only so much belongs to it. */
function takenBack(scanner: MessageScanner): Buffer {
  const memory = Buffer.alloc(scanner.ahead + 3, 0xee);
  const bytes = scanner.ahead;
  scanner.takeBack(memory);
  expect(memory.subarray(bytes)).toEqual(Buffer.alloc(3, 0xee));
  return memory.subarray(0, bytes);
}

function restBy(method: string, scanner: MessageScanner, chunk: Buffer): Buffer {
  if (method === 'takeRest') return scanner.takeRest();
  if (method === 'takeRest of its own') return scanner.takeRest(chunk);
  const view = method === 'viewBack' ? scanner.viewBack(chunk) : undefined;
  return view ?? takenBack(scanner);
}

describe('Work on a chunk can be ended early', () => {
  const messages = [0, 60, 3, 8].map((size, index) => messageOf(freeTypes[index % 4] as number, size));
  const stream = Buffer.concat(messages);

  test.each(['takeBack', 'viewBack', 'takeRest', 'takeRest of its own'] as const)(
    'with %s at any piece, in any cut, and nothing is lost',
    (method) => {
      for (let cut = 0; cut <= stream.length; cut++) {
        for (let stopAt = 1; stopAt <= 6; stopAt++) {
          const scanner = new MessageScanner(mixed);
          const found: Scanned[] = [];
          let seen = 0;
          for (const chunk of [stream.subarray(0, cut), stream.subarray(cut)]) {
            let pushed: Buffer = Buffer.from(chunk);
            scanner.push(pushed);
            while (scanner.next()) {
              if (++seen !== stopAt) {
                note(scanner, found);
                continue;
              }
              if (method.startsWith('takeRest')) note(scanner, found);
              const rest = restBy(method, scanner, pushed);
              expect(scanner.unread).toBe(0);
              pushed = rest;
              scanner.push(rest);
            }
          }
          expect(bytesOf(found)).toEqual(messages);
        }
      }
    },
  );

  test('without a copy of a chunk that is kept', () => {
    const scanner = new MessageScanner(plain);
    const chunk = Buffer.concat([sync, flush, sync]);
    scanner.push(chunk);
    scanner.next();
    scanner.next();
    const rest = scanner.viewBack(chunk) as Buffer;
    expect(rest).toEqual(Buffer.concat([flush, sync]));
    expect([rest.buffer, rest.byteOffset]).toEqual([chunk.buffer, chunk.byteOffset + sync.length]);
  });

  test('before the first piece, when there is none to take back', () => {
    const scanner = new MessageScanner(plain);
    scanner.push(sync);
    scanner.next();
    scanner.push(flush);
    expect(takenBack(scanner)).toEqual(flush);
    expect(scanner.isBetweenMessages).toBe(true);
  });

  test('and then has nothing to give a second time', () => {
    const scanner = new MessageScanner(plain);
    scanner.push(Buffer.concat([sync, flush]));
    scanner.next();
    expect(takenBack(scanner)).toEqual(Buffer.concat([sync, flush]));
    expect(takenBack(scanner)).toHaveLength(0);
    expect(scanner.takeRest()).toHaveLength(0);
    expect(scanner.next()).toBe(false);
  });
});

const query = messageOf(Frontend.query, 20);
const isWhole = (bytes: Buffer, scanner = new MessageScanner(plain)): boolean =>
  scanner.isWholeMessage(Buffer.concat([sync, bytes, sync]), sync.length, sync.length + bytes.length);

test('Bytes that are yet to be pushed are one whole message when their length says so', () => {
  expect(isWhole(query)).toBe(true);
  expect(isWhole(sync)).toBe(true);
});

test('Bytes that are yet to be pushed are one whole message and not when there is less or more of them, or the rules refuse the message', () => {
  for (let length = 0; length < query.length; length++)
    expect(isWhole(query.subarray(0, length))).toBe(false);
  expect(isWhole(Buffer.concat([query, sync]))).toBe(false);
  expect(isWhole(messageOf(0x7f, 20))).toBe(false);
  const narrow = frontendRules({ query: { longest: 20 } });
  expect(isWhole(query, new MessageScanner(narrow))).toBe(false);
});

test('Bytes that are yet to be pushed are one whole message and not when they go on with a message that has begun', () => {
  for (let length = 1; length < query.length; length++) {
    const scanner = new MessageScanner(plain);
    scanner.push(query.subarray(0, length));
    while (scanner.next());
    expect(isWhole(query, scanner)).toBe(false);
  }
});

test('A scanner that is used wrongly says so', () => {
  const scanner = new MessageScanner(plain);
  scanner.push(sync);
  expect(() => scanner.push(sync)).toThrow(InvariantError);
  scanner.next();
  expect(() => scanner.push(sync, 3, 9)).toThrow(InvariantError);
  scanner.push(sync, 0, 2);
  scanner.next();
  expect(() => scanner.use(mixed)).toThrow(InvariantError);
});

test('A scanner that is used wrongly is refused rules that make no sense, all at once', () => {
  const rules = { query: { longest: 3 }, bnd: {}, bind: { wholeUpto: 3, head: 1.5 } };
  expect(() => frontendRules(rules as object)).toThrow(PoolOptionsError);
  try {
    frontendRules(rules as object);
  } catch (error) {
    expect((error as PoolOptionsError).problems.map(({ path }) => path).sort()).toEqual([
      'bind.head',
      'bind.wholeUpto',
      'bnd',
      'query.longest',
    ]);
  }
});
