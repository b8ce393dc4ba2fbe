/**
 * Finds the messages in a stream of bytes that comes in chunks, cut anywhere. It looks at headers only, copies only what
 * must be collected, and makes no object for a message: its fields hold the current message until the next step.
 */
import { InvariantError } from '../kernel/errors.js';
import { copyBytes, copyOf, int32At } from './bytes.js';
import { ProtocolViolationError } from './errors.js';
import type { ScanRules } from './scan-rules.js';

const nothing = Buffer.alloc(0);

/** A buffer to collect in never begins smaller, unless the message is. */
const smallestCollection = 256;

/**
 * ```
 * scanner.push(chunk, 0, bytesRead);
 * while (scanner.next()) {
 *   // scanner.type, scanner.size: which message. scanner.source from scanner.start to scanner.end: a piece of it.
 * }
 * ```
 *
 * A message comes as one piece, or as several, of which the first has at least the header (`isFirst`) and the last ends
 * the message (`isLast`). The pieces, one after the other, are exactly the bytes that were pushed. A piece is part of the
 * chunk, unless it had to be collected across chunks: then `source` is another buffer. Both are good until the next call.
 */
export class MessageScanner {
  // Set by next(). Read only; plain fields, because these cost least.
  /** The type byte; 0 for the first packet of a client, which has none. */
  type = 0;
  /** Bytes of the whole message, header included. */
  size = 0;
  source: Buffer = nothing;
  start = 0;
  end = 0;
  isFirst = false;
  isLast = false;

  #rules: ScanRules;
  #chunk: Buffer = nothing;
  #at = 0;
  #limit = 0;
  /** Bytes of the present message that are yet to come, after a piece of it was found. -1: never more, after a failure. */
  #remaining = 0;
  /** The collected part of a message whose first piece is not complete. */
  #collection: Buffer = nothing;
  #collected = 0;
  #failure: ProtocolViolationError | undefined;

  constructor(rules: ScanRules) {
    this.#rules = rules;
  }

  get rules(): ScanRules {
    return this.#rules;
  }

  /** The piece is a whole message. */
  get isWhole(): boolean {
    return this.isFirst && this.isLast;
  }

  /** Bytes of the chunk behind the present piece. */
  get unread(): number {
    return this.#limit - this.#at;
  }

  /** All bytes so far were whole messages, and none are collected: a good place to end. */
  get isBetweenMessages(): boolean {
    return this.#remaining === 0 && this.#collected === 0;
  }

  /** Bytes of memory that it holds for itself, across chunks. */
  get heldBytes(): number {
    return this.#collection.length;
  }

  /** Changes the rules from the next message on: after the first packet, or after authentication. */
  use(rules: ScanRules): void {
    if (!this.isBetweenMessages)
      throw new InvariantError('The rules of a scanner were changed inside a message.');
    this.#rules = rules;
  }

  /** The next bytes of the stream: those of `chunk` from `start` to `end`. The chunk must not change until next() returns false. */
  push(chunk: Buffer, start = 0, end: number = chunk.length): void {
    if (this.#at !== this.#limit) {
      throw new InvariantError(
        `A chunk was pushed while ${this.unread} bytes of the one before were unread.`,
      );
    }
    if (start < 0 || end > chunk.length || start > end) {
      throw new InvariantError(`Bytes ${start} to ${end} of a chunk of ${chunk.length} were pushed.`);
    }
    this.#chunk = chunk;
    this.#at = start;
    this.#limit = end;
    // The last piece of the chunk before may still be noted here.
    this.start = this.end = 0;
  }

  /** True if these bytes, if not pushed, are exactly one whole message. */
  isWholeMessage(chunk: Buffer, start: number, end: number): boolean {
    const { headerBytes, longestLength } = this.#rules;
    if ((this.#remaining | this.#collected) !== 0 || end - start < headerBytes) return false;
    const length = end - start - headerBytes + 4;
    const type = headerBytes === 5 ? (chunk[start] as number) : 0;
    return length <= (longestLength[type] as number) && int32At(chunk, start + headerBytes - 4) === length;
  }

  /** Goes to the next piece; false when the chunk has no more. Throws a ProtocolViolationError, then and on every later call. */
  next(): boolean {
    if ((this.#remaining | this.#collected) !== 0) return this.#resume();
    const rules = this.#rules;
    const start = this.#at;
    const available = this.#limit - start;
    if (available < rules.headerBytes) return this.#collectHeader(available);

    const chunk = this.#chunk;
    let lengthAt = start;
    let type = 0;
    if (rules.headerBytes === 5) type = chunk[lengthAt++] as number;
    // Signed, so that a length that is too large becomes negative, and is refused.
    const length = int32At(chunk, lengthAt);
    if (length < 4 || length > (rules.longestLength[type] as number)) throw this.#refuse(type, length);

    const size = length + rules.headerBytes - 4;
    this.type = type;
    this.size = size;
    if (size <= available) {
      this.source = chunk;
      this.start = start;
      this.#at = this.end = start + size;
      this.isFirst = true;
      this.isLast = true;
      return true;
    }
    const needed = this.#firstPieceOf(type, size);
    if (needed > available) return this.#collect(available, needed);
    this.#found(chunk, start, this.#limit, true);
    return true;
  }

  /** Bytes of the present piece and of the chunk behind it. */
  get ahead(): number {
    return this.end - this.start + this.unread;
  }

  /**
   * Ends the work on this chunk early: copies the current piece and all bytes behind it, `ahead` bytes, to the beginning
   * of `target`, to be pushed again later. The scanner returns to its state before that piece.
   */
  takeBack(target: Buffer): void {
    const piece = this.end - this.start;
    copyBytes(this.source, this.start, this.end, target, 0);
    copyBytes(this.#chunk, this.#at, this.#limit, target, piece);
    if (piece > 0) this.#remaining = this.isFirst ? 0 : this.#remaining + piece;
    this.#forget();
  }

  /**
   * Like `takeBack()`, without a copy: a view of `chunk`, which nobody may write to again. Undefined, and nothing is taken back,
   * where the present piece is not in that chunk.
   */
  viewBack(chunk: Buffer | undefined): Buffer | undefined {
    if (chunk === undefined || this.#chunk !== chunk || this.source !== chunk) return undefined;
    const rest = chunk.subarray(this.start, this.#limit);
    const piece = this.end - this.start;
    if (piece > 0) this.#remaining = this.isFirst ? 0 : this.#remaining + piece;
    this.#forget();
    return rest;
  }

  /**
   * Ends the work on this chunk before its end: all behind the present piece, to be pushed later. A copy, unless the chunk is
   * `own`, which nobody may write to again.
   */
  takeRest(own?: Buffer): Buffer {
    const chunk = this.#chunk;
    const rest = chunk === own ? chunk.subarray(this.#at, this.#limit) : copyOf(chunk, this.#at, this.#limit);
    this.#forget();
    return rest;
  }

  /** Continues inside a message, for `next()`. */
  #resume(): boolean {
    if (this.#failure !== undefined) throw this.#failure;
    const available = this.#limit - this.#at;
    if (available === 0) return this.#exhausted();
    if (this.#remaining === 0) return this.#collectOn();
    this.#found(this.#chunk, this.#at, this.#at + Math.min(available, this.#remaining), false);
    return true;
  }

  /** Reports bytes of the chunk as a piece that is not a whole message. */
  #found(source: Buffer, start: number, end: number, isFirst: boolean): void {
    this.source = source;
    this.start = start;
    this.end = end;
    this.isFirst = isFirst;
    this.#remaining = (isFirst ? this.size : this.#remaining) - (end - start);
    this.isLast = this.#remaining === 0;
    if (source === this.#chunk) this.#at = end;
  }

  #collectHeader(available: number): boolean {
    if (available === 0) return this.#exhausted();
    const rules = this.#rules;
    const type = rules.headerBytes === 5 ? (this.#chunk[this.#at] as number) : 0;
    // A type that does not exist is refused without waiting for its length.
    if (rules.longestLength[type] === 0) throw this.#refuse(type, 4);
    return this.#collect(available, rules.headerBytes);
  }

  /** The first piece is cut: copies its beginning into a separate buffer, which grows with the bytes that really arrive. */
  #collect(available: number, needed: number): boolean {
    this.#collection = Buffer.allocUnsafe(Math.min(needed, Math.max(smallestCollection, available)));
    this.#copy(available);
    return this.#exhausted();
  }

  #collectOn(): boolean {
    const { headerBytes } = this.#rules;
    if (this.#collected < headerBytes && !this.#copyUpTo(headerBytes)) return this.#exhausted();
    const header = this.#collection;
    const type = headerBytes === 5 ? (header[0] as number) : 0;
    const length = int32At(header, headerBytes - 4);
    if (length < 4 || length > (this.#rules.longestLength[type] as number)) throw this.#refuse(type, length);
    this.type = type;
    this.size = length + headerBytes - 4;
    const needed = this.#firstPieceOf(type, this.size);
    if (!this.#copyUpTo(needed)) return this.#exhausted();
    const collection = this.#collection;
    this.#collection = nothing;
    this.#collected = 0;
    this.#found(collection, 0, needed, true);
    return true;
  }

  /** Collects up to `needed` bytes; false if the chunk ends before. */
  #copyUpTo(needed: number): boolean {
    const missing = needed - this.#collected;
    const available = Math.min(missing, this.#limit - this.#at);
    const total = this.#collected + available;
    if (total > this.#collection.length) {
      const grown = Buffer.allocUnsafe(Math.min(needed, Math.max(smallestCollection, 2 * total)));
      this.#collection.copy(grown, 0, 0, this.#collected);
      this.#collection = grown;
    }
    this.#copy(available);
    return available === missing;
  }

  #copy(bytes: number): void {
    this.#chunk.copy(this.#collection, this.#collected, this.#at, this.#at + bytes);
    this.#collected += bytes;
    this.#at += bytes;
  }

  #firstPieceOf(type: number, size: number): number {
    const { wholeUpTo, head } = this.#rules;
    return size <= (wholeUpTo[type] as number) ? size : Math.min(size, head[type] as number);
  }

  /** Leaves no piece, and drops the reference to the chunk. */
  #exhausted(): false {
    this.#forget();
    return false;
  }

  #forget(): void {
    this.#chunk = nothing;
    this.source = nothing;
    this.#at = this.#limit = 0;
    this.start = this.end = 0;
  }

  #refuse(type: number, length: number): ProtocolViolationError {
    const rules = this.#rules;
    const longest = rules.longestLength[type] as number;
    const name = rules.nameOf(type);
    const text =
      longest === 0
        ? `A ${rules.direction} message (${name}) came that is not expected here.`
        : `${name} says that its length is ${length}; it must be from 4 to ${longest}.`;
    this.#collection = nothing;
    this.#collected = 0;
    this.#remaining = -1;
    this.#forget();
    this.#failure = new ProtocolViolationError(text);
    return this.#failure;
  }
}
