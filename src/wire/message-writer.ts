/** Builds any number of messages in one buffer, which grows as needed and is used again, so that they go out in one write. */
import { copyBytes, findZero, putInt32 } from './bytes.js';
import { UnsendableMessageError } from './errors.js';
import { headerBytes } from './message-types.js';

/** The largest message that PostgreSQL accepts. */
const largestMessage = 0x3fff_ffff;
/** A text of up to this many characters gets space for the worst case, which is faster than counting its bytes. */
const shortText = 1_024;
/** A buffer that grew beyond this is not kept. */
const largestKept = 65_536;

/**
 * ```
 * writeParse(writer, { name: 's1', text: 'select $1', parameterTypes: [23] });
 * writeSync(writer);
 * socket.write(writer.take());
 * ```
 */
export class MessageWriter {
  readonly #initialBytes: number;
  #buffer: Buffer;
  /** Bytes of finished messages. A message that was begun and not finished is not among them. */
  #length = 0;
  #at = 0;

  constructor(initialBytes = 1_024) {
    this.#initialBytes = Math.max(initialBytes, 16);
    this.#buffer = Buffer.allocUnsafe(this.#initialBytes);
  }

  /** Bytes of finished messages. */
  get length(): number {
    return this.#length;
  }

  /** The finished messages are its first `length` bytes, until the next call of anything here. */
  get buffer(): Buffer {
    return this.#buffer;
  }

  /** Forgets what was written, and reuses the buffer: earlier receivers of it must be done with it. */
  clear(): void {
    this.#length = this.#at = 0;
    if (this.#buffer.length > largestKept) this.#buffer = Buffer.allocUnsafe(this.#initialBytes);
  }

  /** Hands the finished messages over; nothing written later touches them. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length);
    this.#length = this.#at = 0;
    this.#buffer = Buffer.allocUnsafe(this.#initialBytes);
    return taken;
  }

  /** Appends finished messages, such as those of a scanner's chunk. */
  append(source: Buffer, start = 0, end: number = source.length): void {
    this.#at = this.#length;
    this.bytes(source, start, end);
    this.#length = this.#at;
  }

  /** Begins a message, in place of one that was begun and never finished. */
  begin(type: number): void {
    this.#at = this.#length;
    this.#reserve(headerBytes);
    this.#buffer[this.#at] = type;
    this.#at += headerBytes;
  }

  /** Finishes the message. `missing`: number of its bytes that follow from elsewhere. */
  end(missing = 0): void {
    const size = this.#at - this.#length + missing;
    if (size > largestMessage) throw new UnsendableMessageError(`A message of ${size} bytes is too large.`);
    putInt32(this.#buffer, this.#length + 1, size - 1);
    this.#length = this.#at;
  }

  /** Begins the first packet of a client, which has no type byte. */
  beginStartup(): void {
    this.#at = this.#length;
    this.#reserve(4);
    this.#at += 4;
  }

  endStartup(): void {
    putInt32(this.#buffer, this.#length, this.#at - this.#length);
    this.#length = this.#at;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#buffer[this.#at++] = value;
  }

  int16(value: number): void {
    this.#reserve(2);
    this.#buffer[this.#at++] = value >>> 8;
    this.#buffer[this.#at++] = value;
  }

  int32(value: number): void {
    this.#reserve(4);
    putInt32(this.#buffer, this.#at, value);
    this.#at += 4;
  }

  /** The number of items that follow. */
  count(count: number): void {
    if (count > 0xffff)
      throw new UnsendableMessageError(`A message can't count more than 65535; these are ${count}.`);
    this.int16(count);
  }

  /** A text, and the zero byte that ends it; a buffer if its encoding must be kept. */
  text(text: string | Buffer): void {
    if (typeof text === 'string') {
      if (text.includes('\0')) throw zeroInText();
      this.#encode(text);
    } else {
      if (findZero(text, 0, text.length) !== -1) throw zeroInText();
      this.bytes(text, 0, text.length);
    }
    this.byte(0);
  }

  bytes(source: Buffer, start = 0, end: number = source.length): void {
    this.#reserve(end - start);
    copyBytes(source, start, end, this.#buffer, this.#at);
    this.#at += end - start;
  }

  /** A length and this many bytes; a length of -1 for null. */
  value(value: string | Buffer | null): void {
    if (value === null) {
      this.int32(-1);
    } else if (typeof value === 'string') {
      this.int32(0);
      const from = this.#at;
      this.#encode(value);
      putInt32(this.#buffer, from - 4, this.#at - from);
    } else {
      this.int32(value.length);
      this.bytes(value, 0, value.length);
    }
  }

  #encode(text: string): void {
    this.#reserve(text.length <= shortText ? 3 * text.length : Buffer.byteLength(text));
    this.#at += this.#buffer.write(text, this.#at, 'utf8');
  }

  #reserve(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(grown, 0, 0, this.#at);
    this.#buffer = grown;
  }
}

function zeroInText(): UnsendableMessageError {
  return new UnsendableMessageError('A text with a zero byte in it would end there.');
}
