// A million random and mutated messages: nothing is thrown but the typed error, nothing hangs, nothing is lost, and memory
// is held within its limits. HEADGATE_SEED=<seed> plays the same ones again.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ProtocolViolationError } from '../../src/wire/errors.js';
import { BindView, ParseView, TargetView } from '../../src/wire/frontend-views.js';
import { MessageScanner } from '../../src/wire/message-scanner.js';
import { Frontend } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import { writeRenamed } from '../../src/wire/rename-statement.js';
import {
  authenticationRules,
  backendRules,
  frontendRules,
  type ScanRules,
  startupRules,
} from '../../src/wire/scan-rules.js';
import { seededRandom } from '../support/seeded-random.js';
import { type Kind, kinds } from './message-kinds.js';
import { MutatedStream, makeCorpus } from './mutations.js';

const messagesInAll = 1_000_000;
const random = seededRandom();

/** What an attacker could make a scanner hold. */
const largestCollection = 512;

/** Streams of different phases of a connection, with the kinds of messages that belong there. */
const phases: readonly { readonly kinds: readonly Kind[]; readonly rules: readonly ScanRules[] }[] = [
  { kinds: kinds.filter(({ direction }) => direction === 'startup'), rules: [startupRules] },
  { kinds: kinds.filter(({ type }) => type === Frontend.password), rules: [authenticationRules] },
  {
    kinds: kinds.filter(({ direction, type }) => direction === 'frontend' && type !== Frontend.password),
    rules: [
      frontendRules(),
      frontendRules({
        query: { wholeUpTo: largestCollection },
        parse: { wholeUpTo: largestCollection, longest: largestCollection },
        bind: { wholeUpTo: 40, head: 30 },
        functionCall: { wholeUpTo: largestCollection },
        describe: { wholeUpTo: largestCollection },
      }),
    ],
  },
  {
    kinds: kinds.filter(({ direction }) => direction === 'backend'),
    rules: [
      backendRules(),
      backendRules({
        readyForQuery: { wholeUpTo: 6 },
        error: { wholeUpTo: largestCollection, head: 40 },
        parameterStatus: { wholeUpTo: largestCollection },
        dataRow: { wholeUpTo: 20 },
        rowDescription: { wholeUpTo: largestCollection },
      }),
    ],
  },
];

const newName = Buffer.from('renamed');
const views = new Map<number, ParseView | BindView | TargetView>([
  [Frontend.parse, new ParseView()],
  [Frontend.bind, new BindView()],
  [Frontend.describe, new TargetView('Describe')],
  [Frontend.close, new TargetView('Close')],
]);
const writer = new MessageWriter();
const found = Buffer.alloc(1 << 16);
const tally = { messages: 0, bytes: 0, pieces: 0, read: 0, refused: 0, renamed: 0, brokenStreams: 0 };

const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0; // Of half a million errors that nobody prints.
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

test(`${messagesInAll} random and mutated messages do no harm`, () => {
  const streams = phases.map((phase) => ({
    rules: phase.rules,
    stream: new MutatedStream(random, phase.rules[0]?.headerBytes ?? 5, makeCorpus(phase.kinds, random.seed)),
    readers: readersOf(phase.kinds),
  }));
  while (tally.messages < messagesInAll) {
    const { rules, stream, readers } = random.pick(streams);
    stream.renew();
    try {
      play(stream, random.pick(rules), readers);
    } catch (error) {
      const hex = stream.bytes.toString('hex', 0, stream.length);
      throw new Error(`Play it again with HEADGATE_SEED=${random.seed}; the stream was ${hex}`, {
        cause: error,
      });
    }
  }
  console.log(`fuzz of wire/: ${JSON.stringify(tally)}, HEADGATE_SEED=${random.seed}`);
  // Otherwise it would be a test of nothing.
  expect(Math.min(tally.read, tally.refused, tally.renamed)).toBeGreaterThan(messagesInAll / 50);
  expect(tally.brokenStreams).toBeGreaterThan(1_000);
}, 120_000);

type Readers = ReadonlyMap<number, readonly Kind['read'][]>;

function readersOf(kinds: readonly Kind[]): Readers {
  const readers = new Map<number, Kind['read'][]>();
  for (const { type, read } of kinds) readers.set(type, [...(readers.get(type) ?? []), read]);
  return readers;
}

/** Feeds one stream in chunks of any size and reads all that is found; throws when anything is not as promised. */
function play(stream: MutatedStream, rules: ScanRules, readers: Readers): void {
  const scanner = new MessageScanner(rules);
  const largestHeld = rules === startupRules || rules === authenticationRules ? 65_536 : largestCollection;
  const largestChunk = random.pick([3, 30, 300, 3_000]);
  let foundBytes = 0;
  let steps = 0;
  try {
    for (let at = 0; at < stream.length; ) {
      const end = Math.min(stream.length, at + 1 + random.below(largestChunk));
      scanner.push(stream.bytes, at, end);
      while (scanner.next()) {
        foundBytes += scanner.source.copy(found, foundBytes, scanner.start, scanner.end);
        if (scanner.isFirst) tally.messages++;
        readPiece(scanner, readers);
        if (++steps > 2 * stream.length) throw new Error('It does not get on.');
      }
      if (scanner.heldBytes > largestHeld) throw new Error(`It holds ${scanner.heldBytes} bytes.`);
      at = end;
    }
    if (scanner.isBetweenMessages && foundBytes !== stream.length) throw new Error('Bytes were lost.');
  } catch (error) {
    if (!(error instanceof ProtocolViolationError)) throw error;
    tally.brokenStreams++;
  }
  tally.pieces += steps;
  tally.bytes += foundBytes;
  if (found.compare(stream.bytes, 0, foundBytes, 0, foundBytes) !== 0)
    throw new Error('Other bytes were found than came.');
}

function readPiece(scanner: MessageScanner, readers: Readers): void {
  const { type, source, start, end } = scanner;
  if (scanner.isWhole) {
    for (const read of readers.get(type) ?? []) tolerate(() => read(source, start, end));
  }
  const view = scanner.isFirst && (scanner.isWhole || type === Frontend.bind) ? views.get(type) : undefined;
  if (view !== undefined && readers.has(Frontend.query))
    tolerate(() => rename(view.read(source, start, end)));
}

/** A violation is as good an answer as a value. So is a startup packet of another kind. */
function tolerate(read: () => unknown): void {
  try {
    read();
    tally.read++;
  } catch (error) {
    if (!(error instanceof ProtocolViolationError) && !(error as Error).message.startsWith('It was read as '))
      throw error;
    tally.refused++;
  }
}

function rename(view: ParseView | BindView | TargetView): void {
  const { size, start, end } = view;
  const change = newName.length - (view.nameEnd - view.nameStart);
  writer.clear();
  writeRenamed(writer, view, newName);
  const again = view.read(writer.buffer, 0, writer.length);
  if (again.name() !== 'renamed' || again.size !== size + change || writer.length !== end - start + change)
    throw new Error('The renamed message is another.');
  tally.renamed++;
}
