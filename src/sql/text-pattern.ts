/**
 * A text without the values of its whole numbers and strings. Texts that match are read alike: by `isPlainStatement()`, by
 * `readStatement()` and for statistics. The comparison is exact, so nothing can be mistaken for the text.
 */
import { backslash, dollar, doubleQuote, firstHigh, isNamePart, point, quote } from './bytes.js';

const [digit0, digit9] = [0x30, 0x39];
/** In the place of values. Texts with these bytes have no pattern. */
const [number, string] = [0x01, 0x02];
/** Limit in bytes; longer texts have no pattern. */
const longest = 1_024;

export class TextPattern {
  readonly #bytes: Uint8Array;

  private constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Undefined for a text that is long, or has names in double quotes, backslashes or bytes beyond ASCII. */
  static of(text: Buffer, start: number, end: number): TextPattern | undefined {
    if (end - start > longest) return undefined;
    const bytes = Buffer.alloc(end - start);
    let size = 0;
    let at = start;
    while (at < end) {
      const byte = text[at] as number;
      if (byte <= string || byte >= firstHigh || byte === backslash || byte === doubleQuote) return undefined;
      if (byte === quote) {
        at = endOfString(text, at + 1, end);
        if (at === -1) return undefined;
        bytes[size++] = string;
        continue;
      }
      const valueEnd = isDigit(byte) ? endOfNumber(text, at, end) : at;
      const isValue =
        valueEnd > at && at > start && beginsValue(text[at - 1]) && endsValue(text, valueEnd, end);
      bytes[size++] = isValue ? number : byte;
      at = isValue ? valueEnd : at + 1;
    }
    return new TextPattern(bytes.subarray(0, size));
  }

  /** Bytes that the pattern takes. */
  get size(): number {
    return this.#bytes.length;
  }

  matches(text: Buffer, start: number, end: number): boolean {
    const bytes = this.#bytes;
    let at = start;
    for (let index = 0; index < bytes.length; index++) {
      const wanted = bytes[index] as number;
      if (at >= end) return false;
      if (wanted > string) {
        if (text[at] !== wanted) return false;
        at++;
      } else if (wanted === number) {
        const valueEnd = endOfNumber(text, at, end);
        if (valueEnd === at) return false;
        at = valueEnd;
      } else {
        if (text[at] !== quote) return false;
        at = endOfString(text, at + 1, end);
        if (at === -1) return false;
      }
    }
    return at === end;
  }
}

/** A number that is the same for all texts that match one pattern; 0 for a text that has no pattern. */
export function patternHash(text: Buffer, start: number, end: number): number {
  if (end - start > longest) return 0;
  let hash = 0;
  let at = start;
  while (at < end) {
    const byte = text[at] as number;
    if (byte === quote) {
      at = endOfString(text, at + 1, end);
      if (at === -1) return 0;
      hash = (Math.imul(hash, 31) + string) | 0;
    } else if (isDigit(byte) && at > start && beginsValue(text[at - 1])) {
      at = endOfNumber(text, at, end);
      hash = (Math.imul(hash, 31) + number) | 0;
    } else {
      at++;
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
  }
  // Texts that differ in one place must differ in the highest bits, too.
  return Math.imul(hash ^ (hash >>> 15), 0x9e3779b1);
}

function isDigit(byte: number): boolean {
  return byte >= digit0 && byte <= digit9;
}

function endOfNumber(text: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isDigit(text[at] as number)) at++;
  return at;
}

/** Digits that end here are a whole number. */
function endsValue(text: Buffer, at: number, end: number): boolean {
  const next = text[at] as number;
  return at === end || (next !== point && isNamePart[next] !== 1);
}

/** Digits behind this byte are a value, and not a part of a name, a parameter or a fraction. */
function beginsValue(previous: number | undefined): boolean {
  return previous !== undefined && previous !== point && previous !== dollar && isNamePart[previous] !== 1;
}

/** Behind the first quote; -1 where the string may mean something else under other settings, or does not end. */
function endOfString(text: Buffer, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = text[at] as number;
    if (byte === quote) return at + 1;
    if (byte === backslash || byte >= firstHigh || byte === 0) return -1;
  }
  return -1;
}
