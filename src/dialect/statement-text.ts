/** One statement's text: the parser's byte offsets, and edits on the way to the text that PostgreSQL runs. */
import { Tokenizer } from '../sql/tokenizer.js';

interface Edit {
  /** Byte offset in the whole text. */
  readonly at: number;
  readonly insert: string;
}

/** A whole text, which holds several statements. `masked` has as many bytes, and can be read by PostgreSQL's grammar. */
export class WholeText {
  /** Bytes of the masked text. */
  readonly bytes: Buffer;
  readonly isMasked: boolean;
  readonly #originalBytes: Buffer;
  readonly #isAscii: boolean;
  /** Index and byte offset of the last conversion, from which the next continues. */
  #lastByte = 0;
  #lastIndex = 0;

  constructor(
    readonly original: string,
    masked: string,
  ) {
    this.#originalBytes = Buffer.from(original);
    this.isMasked = masked !== original;
    this.bytes = this.isMasked ? Buffer.from(masked) : this.#originalBytes;
    this.#isAscii = this.#originalBytes.length === original.length;
  }

  /** UTF-16 index of a byte offset in the original. Linear over ascending offsets. */
  indexOf(byte: number): number {
    if (this.#isAscii) return byte;
    if (byte < this.#lastByte) this.#lastByte = this.#lastIndex = 0;
    this.#lastIndex += this.#originalBytes.toString('utf8', this.#lastByte, byte).length;
    this.#lastByte = byte;
    return this.#lastIndex;
  }
}

export class StatementText {
  readonly #whole: WholeText;
  readonly #startByte: number;
  readonly #endByte: number;
  readonly #start: number;
  readonly #end: number;
  readonly #edits: Edit[] = [];

  /** The first statement begins with the text; a later one with its first token. */
  constructor(whole: WholeText, startByte: number, endByte: number) {
    this.#whole = whole;
    this.#endByte = endByte;
    this.#startByte = startByte === 0 ? 0 : firstToken(whole.bytes, startByte, endByte);
    this.#start = whole.indexOf(this.#startByte);
    this.#end = whole.indexOf(endByte);
  }

  get source(): string {
    return this.#whole.original.slice(this.#start, this.#end);
  }

  get byteLength(): number {
    return this.#endByte - this.#startByte;
  }

  insert(at: number, text: string): void {
    this.#edits.push({ at, insert: text });
  }

  tokens(): Tokenizer {
    return this.tokensFrom(this.#startByte);
  }

  /** Tokens from a byte offset to the end of the statement. */
  tokensFrom(byte: number): Tokenizer {
    return new Tokenizer(this.#whole.bytes, byte, this.#endByte, 'literal');
  }

  /** Position for an ErrorResponse: characters of the statement, from 1. */
  positionOf(byte: number): number {
    const before = this.#whole.bytes.toString('utf8', this.#startByte, byte);
    return [...before].length + 1;
  }

  /** The text with its edits, and the conversion of ascending byte offsets to indexes in it. */
  finish(): { sql: string; indexOf: (byte: number) => number } {
    const edits = this.#edits.sort((a, b) => a.at - b.at);
    const isSource = edits.length === 0 && !this.#whole.isMasked;
    const sql = isSource ? this.source : this.#apply(edits);
    let applied = 0;
    let shift = -this.#start;
    const indexOf = (byte: number): number => {
      for (let edit = edits[applied]; edit !== undefined && edit.at <= byte; edit = edits[++applied])
        shift += edit.insert.length;
      return this.#whole.indexOf(byte) + shift;
    };
    return { sql, indexOf };
  }

  #apply(edits: readonly Edit[]): string {
    const { bytes } = this.#whole;
    let sql = '';
    let from = this.#startByte;
    for (const edit of edits) {
      sql += bytes.toString('utf8', from, edit.at) + edit.insert;
      from = edit.at;
    }
    return sql + bytes.toString('utf8', from, this.#endByte);
  }
}

function firstToken(bytes: Buffer, start: number, end: number): number {
  const tokens = new Tokenizer(bytes, start, end, 'literal');
  tokens.next();
  return tokens.start;
}
