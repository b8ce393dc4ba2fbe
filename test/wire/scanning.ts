// Runs a scanner the way a socket does: chunk after chunk in one read buffer, which is overwritten each time.
import { ProtocolViolationError } from '../../src/wire/errors.js';
import { MessageScanner } from '../../src/wire/message-scanner.js';
import { Frontend } from '../../src/wire/message-types.js';
import { MessageWriter } from '../../src/wire/message-writer.js';
import type { ScanRules } from '../../src/wire/scan-rules.js';

export interface Scanned {
  readonly type: number;
  readonly size: number;
  /** The pieces, copied. */
  readonly pieces: Buffer[];
  /** Whether its last piece came. */
  isComplete: boolean;
}

export interface Scan {
  readonly messages: Scanned[];
  readonly violation: string | undefined;
  readonly scanner: MessageScanner;
  /** The most memory that the scanner held between two chunks. */
  readonly heldBytes: number;
}

/** Cuts come in any order; each is an offset in the stream where a chunk ends. */
export function scan(rules: ScanRules, stream: Buffer, cuts: readonly number[]): Scan {
  const scanner = new MessageScanner(rules);
  const messages: Scanned[] = [];
  const readBuffer = Buffer.alloc(stream.length + 3);
  let heldBytes = 0;
  let violation: string | undefined;
  const ends = [...cuts].sort((a, b) => a - b).concat(stream.length);
  let from = 0;
  try {
    for (const end of ends) {
      readBuffer.fill(0xee);
      stream.copy(readBuffer, 3, from, end);
      scanner.push(readBuffer, 3, 3 + end - from);
      while (scanner.next()) note(scanner, messages);
      heldBytes = Math.max(heldBytes, scanner.heldBytes);
      from = end;
    }
  } catch (error) {
    if (!(error instanceof ProtocolViolationError)) throw error;
    violation = error.message;
  }
  return { messages, violation, scanner, heldBytes };
}

/** Adds the scanner's present piece to what was found; says so if it does not follow from the pieces before. */
export function note(scanner: MessageScanner, messages: Scanned[]): void {
  const { type, size, source, start, end, isFirst, isLast } = scanner;
  const piece = Buffer.from(source.subarray(start, end));
  if (piece.length === 0) throw new Error('A piece is empty.');
  if (isFirst) messages.push({ type, size, pieces: [], isComplete: false });
  const message = messages.at(-1);
  if (message === undefined || message.isComplete || message.type !== type || message.size !== size)
    throw new Error('A piece belongs to no message.');
  message.pieces.push(piece);
  message.isComplete = isLast;
  const found = message.pieces.reduce((sum, { length }) => sum + length, 0);
  if (isLast !== (found === size))
    throw new Error(`${found} of ${size} bytes are said to be ${isLast ? 'all' : 'not all'}.`);
}

/** The messages that were found, in whatever pieces they came. */
export function bytesOf(messages: readonly Scanned[]): Buffer[] {
  return messages.map(({ pieces }) => Buffer.concat(pieces));
}

/** A message of any type and body. */
export function messageOf(type: number, body: Buffer | number): Buffer {
  const writer = new MessageWriter();
  writer.begin(type);
  writer.bytes(typeof body === 'number' ? Buffer.alloc(body, 0x61) : body);
  writer.end();
  return writer.take();
}

/** The header of a message with this length word, and nothing behind it. */
export function headerOf(type: number, length: number): Buffer {
  const header = Buffer.alloc(5);
  header[0] = type;
  header.writeUInt32BE(length >>> 0, 1);
  return header;
}

/** Types whose body is free, for streams where only the boundaries matter. */
export const freeTypes = [Frontend.query, Frontend.parse, Frontend.bind, Frontend.copyData] as const;
