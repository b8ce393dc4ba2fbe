/**
 * Reads the body of one message from its beginning to its end. It never goes past that end: missing, surplus or invalid
 * bytes cause a ProtocolViolationError.
 */
import { findZero, int32At, uint16At } from './bytes.js';
import { ProtocolViolationError } from './errors.js';
import { headerBytes } from './message-types.js';

export class BodyReader {
  readonly #source: Buffer;
  readonly #end: number;
  readonly #kind: string;
  #at: number;

  /** `start` and `end` delimit the whole message; `kind` is its name, for texts. */
  constructor(kind: string, source: Buffer, start: number, end: number, header: number = headerBytes) {
    this.#kind = kind;
    this.#source = source;
    this.#end = end;
    this.#at = start + header;
    if (start < 0 || this.#at > end || end > source.length) throw this.violation('has no complete header');
  }

  /** Bytes that are not read yet. */
  get left(): number {
    return this.#end - this.#at;
  }

  byte(): number {
    return this.#source[this.#advance(1)] as number;
  }

  uint16(): number {
    return uint16At(this.#source, this.#advance(2));
  }

  int16(): number {
    return (this.uint16() << 16) >> 16;
  }

  int32(): number {
    return int32At(this.#source, this.#advance(4));
  }

  uint32(): number {
    return this.int32() >>> 0;
  }

  /** A text that ends with a zero byte. */
  text(): string {
    const from = this.#at;
    return this.#source.toString('utf8', from, this.#passText());
  }

  /** A text as a view of its bytes, without the zero. */
  textBytes(): Buffer {
    const from = this.#at;
    return this.#source.subarray(from, this.#passText());
  }

  /** A view of the next bytes: no copy. */
  bytes(count: number): Buffer {
    const from = this.#advance(count);
    return this.#source.subarray(from, from + count);
  }

  /** A length and this many bytes; null for a length of -1. */
  value(): Buffer | null {
    const length = this.int32();
    if (length === -1) return null;
    if (length < 0) throw this.violation(`has a value of length ${length}`);
    return this.bytes(length);
  }

  rest(): Buffer {
    return this.bytes(this.left);
  }

  /** A count, followed by this many items that `read` reads. `smallest` is the minimum size of one. */
  list<T>(count: number, smallest: number, read: () => T): T[] {
    // Before anything is made for them: a count is only a claim.
    if (count < 0 || count * smallest > this.left) {
      throw this.violation(`is too short for its count (${count}; bytes left: ${this.left})`);
    }
    const items: T[] = [];
    for (let index = 0; index < count; index++) items.push(read());
    return items;
  }

  /** The message must be over. */
  finish(): void {
    if (this.left > 0) throw this.violation(`is too long (bytes left over: ${this.left})`);
  }

  violation(what: string): ProtocolViolationError {
    return new ProtocolViolationError(`${this.#kind} ${what}.`);
  }

  /** The end of the text. */
  #passText(): number {
    const zero = findZero(this.#source, this.#at, this.#end);
    if (zero === -1) throw this.violation('has a text without an end');
    this.#at = zero + 1;
    return zero;
  }

  #advance(count: number): number {
    const from = this.#at;
    if (count > this.#end - from) {
      throw this.violation(`is too short (bytes needed: ${count}, left: ${this.#end - from})`);
    }
    this.#at = from + count;
    return from;
  }
}
