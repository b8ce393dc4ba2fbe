/**
 * Tells reads from other plain statements, and finds statements that differ only in their literals. Both in one pass
 * over the bytes of a text that `isPlainStatement()` has accepted: it has no comments, backslashes or dollar quotes.
 *
 * A read is a SELECT, VALUES or WITH without a locking clause, without a part that writes, and without a call of a
 * function that is not in `read-functions.ts`. Views, operators, casts and row security may call functions that the text
 * does not show.
 */
import { ByteKind, byteKinds, doubleQuote, firstHigh, isNamePart, point, quote } from './bytes.js';
import { isReadFunction, mayPrecedeParenthesis } from './read-functions.js';
import { endOfDigits, isBeforeParenthesis, toLower } from './scan.js';
import { wordsOf } from './statements.js';

/** FNV-1a. */
const basis = 0x811c9dc5;
const prime = 0x01000193;
const literal = 0x3f;

/** Words that occur in no read; FOR begins a locking clause. */
const writing: ReadonlySet<string> = new Set(['for', 'into', ...wordsOf(({ writes }) => writes === true)]);
/** By the first letter, in lower case. */
const mayWrite = new Uint8Array(256);
for (const word of writing) mayWrite[word.charCodeAt(0)] = 1;
const openings: ReadonlySet<string> = new Set(wordsOf(({ mayRead }) => mayRead === true));

/** The reading of a text. The same object is used for every text. */
export class StatementReading {
  isRead = false;
  /** Equal for texts that differ only in space, case and literals; other texts may have the same. */
  fingerprint = 0;
}

const reading = new StatementReading();

/** Reads a plain statement. The result is good until the next call. */
export function readStatement(bytes: Buffer, start: number, end: number): Readonly<StatementReading> {
  let hash = basis;
  let isRead = true;
  let isFirst = true;
  let at = start;
  while (at < end) {
    const byte = bytes[at] as number;
    const kind = byteKinds[byte];
    if (kind === ByteKind.space) {
      at++;
      continue;
    }
    if (kind === ByteKind.letter || kind === ByteKind.high) {
      const wordEnd = endOfWord(bytes, at, end);
      for (let i = at; i < wordEnd; i++) hash = Math.imul(hash ^ ((bytes[i] as number) | toLower), prime);
      hash = Math.imul(hash ^ toLower, prime);
      isRead &&= isFirst ? isOneOf(openings, bytes, at, wordEnd) : isReadWord(bytes, at, wordEnd, end);
      isFirst = false;
      at = wordEnd;
    } else if (kind === ByteKind.digit) {
      at = endOfDigits(bytes, at, end);
      hash = Math.imul(hash ^ literal, prime);
    } else if (kind === ByteKind.quote) {
      const closing = endOfQuoted(bytes, at, end);
      if (byte === quote) hash = Math.imul(hash ^ literal, prime);
      else {
        for (let i = at; i < closing; i++) hash = Math.imul(hash ^ (bytes[i] as number), prime);
        isRead &&= !isBeforeParenthesis(bytes, closing, end);
      }
      at = closing;
    } else {
      hash = Math.imul(hash ^ byte, prime);
      at++;
    }
  }
  reading.isRead = isRead && !isFirst;
  reading.fingerprint = hash >>> 0;
  return reading;
}

function endOfWord(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isNamePart[bytes[at] as number] === 1) at++;
  return at;
}

/** The position behind the closing quote. Two in a row begin another piece of the same literal, which makes no difference here. */
function endOfQuoted(bytes: Buffer, start: number, end: number): number {
  const closing = bytes.indexOf(bytes[start] === doubleQuote ? doubleQuote : quote, start + 1);
  return closing === -1 || closing >= end ? end : closing + 1;
}

function isReadWord(bytes: Buffer, start: number, wordEnd: number, end: number): boolean {
  if (mayWrite[(bytes[start] as number) | toLower] === 1 && isOneOf(writing, bytes, start, wordEnd))
    return false;
  if (!isBeforeParenthesis(bytes, wordEnd, end)) return true;
  const word = wordOf(bytes, start, wordEnd);
  if (word === undefined) return false;
  if (mayPrecedeParenthesis(word)) return true;
  // A schema may have its own functions of these names.
  return !isQualified(bytes, start) && isReadFunction(word);
}

/** True if a point precedes the name. */
function isQualified(bytes: Buffer, start: number): boolean {
  let at = start - 1;
  while (at >= 0 && byteKinds[bytes[at] as number] === ByteKind.space) at--;
  return bytes[at] === point;
}

function isOneOf(words: ReadonlySet<string>, bytes: Buffer, start: number, end: number): boolean {
  const word = wordOf(bytes, start, end);
  return word !== undefined && words.has(word);
}

/** In lower case; undefined for a word that a server may fold differently. */
function wordOf(bytes: Buffer, start: number, end: number): string | undefined {
  for (let at = start; at < end; at++) if ((bytes[at] as number) >= firstHigh) return undefined;
  return bytes.toString('latin1', start, end).toLowerCase();
}
