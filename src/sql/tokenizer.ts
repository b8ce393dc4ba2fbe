/**
 * The tokens of an SQL text, as PostgreSQL's scanner (scan.l) reads them, byte by byte in one pass.
 *
 * A text is unreadable from the point where a token's end depends on the server's version, a quote or comment is never
 * closed, or a byte occurs that no statement has. Letters behind a number without a space are a name up to PostgreSQL
 * 14, and an error or part of the number later: they are read as a name, and `isGlued` is set.
 */
import {
  ampersand,
  ByteKind,
  backslash,
  byteKinds,
  carriageReturn,
  dash,
  dollar,
  doubleQuote,
  firstHigh,
  isNamePart,
  isNameStart,
  lineFeed,
  plus,
  point,
  quote,
  slash,
  star,
} from './bytes.js';
import { toLower } from './scan.js';
import { decodeUnicodeName } from './unicode-name.js';

export const Token = {
  end: 0,
  unreadable: 1,
  /** A keyword or a name without quotes. */
  word: 2,
  quotedName: 3,
  string: 4,
  number: 5,
  parameter: 6,
  /** One byte of punctuation or of an operator. */
  symbol: 7,
  semicolon: 8,
  open: 9,
  close: 10,
} as const;

export type Token = (typeof Token)[keyof typeof Token];

/** Meaning of a backslash in a string without a letter before it. If unknown, a quote behind a backslash makes a text unreadable. */
export type Backslashes = 'literal' | 'escape' | 'unknown';

const nowhere = -1;
/** PostgreSQL sets no limit, but no text needs more, and searching for a long one takes long. */
const longestTag = 63;
const letterB = 0x62;
const letterE = 0x65;
const letterU = 0x75;
const letterX = 0x78;

export class Tokenizer {
  readonly bytes: Buffer;
  /** The last token, and where it begins and ends. */
  token: Token = Token.end;
  start: number;
  end: number;
  /** A name follows a number or a parameter without a space. */
  isGlued = false;
  /** The last word has bytes beyond ASCII. */
  isBeyondAscii = false;
  /** The last quoted name is in the form U&"...". */
  isUnicodeName = false;
  readonly #limit: number;
  readonly #backslashes: Backslashes;

  constructor(bytes: Buffer, start: number, end: number, backslashes: Backslashes) {
    this.bytes = bytes;
    this.start = this.end = start;
    this.#limit = end;
    this.#backslashes = backslashes;
  }

  /** Goes to the next token. Nothing follows Token.end and Token.unreadable. */
  next(): Token {
    if (this.token === Token.unreadable) return this.token;
    const at = this.#skipBlanks(this.end);
    if (at === nowhere) return this.#unreadable();
    this.start = at;
    if (at >= this.#limit) return this.#found(Token.end, this.#limit);
    switch (byteKinds[this.bytes[at] as number]) {
      case ByteKind.letter:
      case ByteKind.high:
        return this.#word(at);
      case ByteKind.digit:
        return this.#number(at);
      case ByteKind.quote:
        return this.bytes[at] === quote
          ? this.#string(at + 1, this.#backslashes)
          : this.#quotedName(at + 1, false);
      case ByteKind.dollar:
        return this.#dollar(at);
      case ByteKind.symbol:
        return this.bytes[at] === point && this.#kindAt(at + 1) === ByteKind.digit
          ? this.#number(at)
          : this.#found(Token.symbol, at + 1);
      case ByteKind.dash:
      case ByteKind.slash:
        return this.#found(Token.symbol, at + 1);
      case ByteKind.semicolon:
        return this.#found(Token.semicolon, at + 1);
      case ByteKind.open:
        return this.#found(Token.open, at + 1);
      case ByteKind.close:
        return this.#found(Token.close, at + 1);
      default:
        return this.#unreadable();
    }
  }

  /** The word or quoted name in lower case; undefined if it is spelled in code points that can't be decoded. */
  name(): string | undefined {
    if (this.token === Token.word) return this.bytes.toString('latin1', this.start, this.end).toLowerCase();
    const from = this.start + (this.isUnicodeName ? 3 : 1);
    const inside = this.bytes.toString('latin1', from, this.end - 1).replaceAll('""', '"');
    return (this.isUnicodeName ? decodeUnicodeName(inside) : inside)?.toLowerCase();
  }

  /** Name of a word beyond ASCII on a Turkish server, which folds a capital I with a dot to the letter of ASCII. */
  foldedName(): string {
    return (this.name() as string).replaceAll(/[\x80-\xff]+/g, 'i');
  }

  #found(token: Token, end: number): Token {
    this.token = token;
    this.end = end;
    return token;
  }

  #unreadable(): Token {
    return this.#found(Token.unreadable, this.#limit);
  }

  #kindAt(at: number): number {
    return at < this.#limit ? (byteKinds[this.bytes[at] as number] as number) : ByteKind.space;
  }

  /** Past space and comments; nowhere if a comment is not closed. */
  #skipBlanks(from: number): number {
    const { bytes } = this;
    const limit = this.#limit;
    let at = from;
    while (at < limit) {
      const kind = byteKinds[bytes[at] as number];
      if (kind === ByteKind.space) at++;
      else if (kind === ByteKind.dash && at + 1 < limit && bytes[at + 1] === dash) at = this.#endOfLine(at);
      else if (kind === ByteKind.slash && at + 1 < limit && bytes[at + 1] === star) {
        at = this.#endOfComment(at + 2);
        if (at === nowhere) return nowhere;
      } else break;
    }
    return at;
  }

  #endOfLine(from: number): number {
    let at = from;
    while (at < this.#limit && this.bytes[at] !== lineFeed && this.bytes[at] !== carriageReturn) at++;
    return at;
  }

  /** Comments nest. */
  #endOfComment(from: number): number {
    const { bytes } = this;
    const last = this.#limit - 1;
    let depth = 1;
    let at = from;
    while (at < last) {
      const byte = bytes[at];
      if (byte === star && bytes[at + 1] === slash) {
        at += 2;
        if (--depth === 0) return at;
      } else if (byte === slash && bytes[at + 1] === star) {
        at += 2;
        depth++;
      } else at++;
    }
    return nowhere;
  }

  #word(start: number): Token {
    const { bytes } = this;
    const limit = this.#limit;
    let beyond = 0;
    let at = start;
    while (at < limit && isNamePart[bytes[at] as number] === 1) beyond |= bytes[at++] as number;
    this.isBeyondAscii = beyond >= firstHigh;
    return at - start === 1 && at < limit ? this.#letter(start) : this.#found(Token.word, at);
  }

  /** One letter, which may belong to the quote behind it. The N of N'...' is a word of its own. */
  #letter(at: number): Token {
    const { bytes } = this;
    const letter = (bytes[at] as number) | toLower;
    if (bytes[at + 1] === quote) {
      if (letter === letterE)
        return this.#string(at + 2, this.#backslashes === 'unknown' ? 'unknown' : 'escape');
      if (letter === letterB || letter === letterX) return this.#string(at + 2, 'literal', false);
    } else if (letter === letterU && bytes[at + 1] === ampersand && at + 2 < this.#limit) {
      if (bytes[at + 2] === doubleQuote) return this.#quotedName(at + 3, true);
      // An error where backslashes escape.
      if (bytes[at + 2] === quote)
        return this.#backslashes === 'escape' ? this.#unreadable() : this.#string(at + 3, this.#backslashes);
    }
    return this.#found(Token.word, at + 1);
  }

  #number(start: number): Token {
    const { bytes } = this;
    let at = start;
    while (this.#kindAt(at) === ByteKind.digit || (at < this.#limit && bytes[at] === point)) at++;
    if (at < this.#limit && ((bytes[at] as number) | toLower) === letterE) {
      const sign = bytes[at + 1];
      const digits = at + (sign === plus || sign === dash ? 2 : 1);
      if (this.#kindAt(digits) === ByteKind.digit) {
        at = digits;
        while (this.#kindAt(at) === ByteKind.digit) at++;
      }
    }
    return this.#afterDigits(Token.number, at);
  }

  #afterDigits(token: Token, end: number): Token {
    const { bytes } = this;
    const limit = this.#limit;
    this.isGlued ||= end < limit && isNameStart[bytes[end] as number] === 1;
    // Servers disagree whether a `$` in what follows is part of a name or begins a string.
    for (let at = end; at < limit && isNamePart[bytes[at] as number] === 1; at++)
      if (bytes[at] === dollar) return this.#unreadable();
    return this.#found(token, end);
  }

  /** A parameter, or a string between `$tag$`. Tags beyond ASCII are refused: two of them can be equal once converted. */
  #dollar(start: number): Token {
    const { bytes } = this;
    const limit = this.#limit;
    let at = start + 1;
    if (this.#kindAt(at) === ByteKind.digit) {
      while (this.#kindAt(at) === ByteKind.digit) at++;
      return this.#afterDigits(Token.parameter, at);
    }
    while (this.#kindAt(at) === ByteKind.letter || this.#kindAt(at) === ByteKind.digit) at++;
    if (at >= limit || bytes[at] !== dollar || at - start > longestTag) return this.#unreadable();
    const tag = bytes.subarray(start, at + 1);
    // Other messages may be behind the text.
    const close = bytes.subarray(at + 1, limit).indexOf(tag);
    return close < 0 ? this.#unreadable() : this.#found(Token.string, at + 1 + close + tag.length);
  }

  #quotedName(from: number, isUnicode: boolean): Token {
    const { bytes } = this;
    const limit = this.#limit;
    this.isUnicodeName = isUnicode;
    for (let at = from; at < limit; at++) {
      if (bytes[at] !== doubleQuote) continue;
      if (at + 1 === limit || bytes[at + 1] !== doubleQuote) return this.#found(Token.quotedName, at + 1);
      at++;
    }
    return this.#unreadable();
  }

  /** A string continues behind space with a line end in it. In bit strings, a doubled quote ends one and begins another. */
  #string(from: number, backslashes: Backslashes, hasDoubledQuotes = true): Token {
    let at = this.#endOfSegment(from, backslashes, hasDoubledQuotes);
    while (at !== nowhere) {
      const more = this.#continuation(at);
      if (more === nowhere) return this.#found(Token.string, at);
      at = this.#endOfSegment(more, backslashes, hasDoubledQuotes);
    }
    return this.#unreadable();
  }

  #endOfSegment(from: number, backslashes: Backslashes, hasDoubledQuotes: boolean): number {
    const { bytes } = this;
    const limit = this.#limit;
    let at = from;
    while (at < limit) {
      const byte = bytes[at];
      if (byte === quote) {
        if (!hasDoubledQuotes || at + 1 >= limit || bytes[at + 1] !== quote) return at + 1;
        at += 2;
      } else if (byte === backslash && backslashes !== 'literal') {
        if (backslashes === 'unknown' && at + 1 < limit && bytes[at + 1] === quote) return nowhere;
        at += 2;
      } else at++;
    }
    return nowhere;
  }

  /** Start of the next part of a string. Only line comments may be between two. */
  #continuation(from: number): number {
    const { bytes } = this;
    const limit = this.#limit;
    let hasLineEnd = false;
    let at = from;
    while (at < limit) {
      const byte = bytes[at] as number;
      if (byteKinds[byte] === ByteKind.space) {
        hasLineEnd ||= byte === lineFeed || byte === carriageReturn;
        at++;
      } else if (byte === dash && at + 1 < limit && bytes[at + 1] === dash) at = this.#endOfLine(at);
      else return byte === quote && hasLineEnd ? at + 1 : nowhere;
    }
    return nowhere;
  }
}
