/**
 * Recognises, straight from its bytes, the most frequent kind of statement: a single SELECT, INSERT, UPDATE, DELETE,
 * VALUES or WITH that leaves nothing in the session. The pooler checks every query, and can't afford a string of each.
 *
 * A quick look before `readTextEffects()`, which returns 'nothing' for every plain text, under every lexical setting. A
 * text that is not plain, such as one with a comment, may still be harmless.
 */
import {
  ampersand,
  ByteKind,
  backslash,
  byteKinds,
  dash,
  firstHigh,
  isNamePart,
  quote,
  star,
} from './bytes.js';
import { effectOfFunction, effectOfName, mayBeDangerousName } from './dangerous-names.js';
import { endOfDigits, endOfSpace, isBeforeParenthesis } from './scan.js';
import { wordsOf } from './statements.js';

const toLower = 0x20;
/** The words that a plain statement begins with. */
const openingWords = wordsOf(({ isQuick }) => isQuick === true);
const longestOpening = Math.max(...openingWords.map(({ length }) => length));
/** Words as numbers: five bits for each letter. */
const openings = openingWords.map(packedWord);
const [insert, into, merge] = ['insert', 'into', 'merge'].map(packedWord);
const letterI = 0x69;

/** Letters, digits and `$`. A server may fold a letter beyond ASCII to one of ASCII. */
const isPlainPart = new Uint8Array(256);
for (let byte = 0; byte < firstHigh; byte++) isPlainPart[byte] = isNamePart[byte] as number;

/** Bytes inside quotes that need a look: quotes, and those whose meaning depends on settings. */
const stopsInside = new Uint8Array(256).fill(1, firstHigh);
for (const byte of [quote, 0x22, backslash, 0]) stopsInside[byte] = 1;

/**
 * `isAsciiSafe`: the session is known to have an encoding in which a byte below 0x80 is what it looks like
 * (`isAsciiSafe()` of lexical-settings.ts). Without that, no text with a byte beyond ASCII is plain.
 */
export function isPlainStatement(bytes: Buffer, start: number, end: number, isAsciiSafe = false): boolean {
  const opening = endOfSpace(bytes, start, end);
  let at = endOfName(bytes, opening, end);
  if (at - opening > longestOpening || !isOpening(packed(bytes, opening, at))) return false;
  while (at >= 0 && at < end)
    at =
      byteKinds[bytes[at] as number] === ByteKind.space
        ? at + 1
        : endOfToken(bytes, at, end, opening, isAsciiSafe);
  return at >= 0;
}

/** End of the token that begins here; -1 when the statement is not plain, or it is not certain. */
function endOfToken(bytes: Buffer, at: number, end: number, opening: number, isAsciiSafe: boolean): number {
  switch (byteKinds[bytes[at] as number]) {
    case ByteKind.symbol:
    case ByteKind.open:
    case ByteKind.close:
      return at + 1;
    case ByteKind.letter:
      return endOfPlainWord(bytes, at, end, opening);
    case ByteKind.digit:
      return endOfNumber(bytes, at, end);
    case ByteKind.quote:
      return endOfQuoted(bytes, at, end, isAsciiSafe);
    case ByteKind.dash:
      return bytes[at + 1] === dash ? -1 : at + 1;
    case ByteKind.slash:
      return bytes[at + 1] === star ? -1 : at + 1;
    case ByteKind.semicolon:
      return isBlank(bytes, at + 1, end) ? end : -1;
    case ByteKind.dollar:
      // A parameter, or else a string in dollars.
      return byteKinds[bytes[at + 1] as number] === ByteKind.digit ? endOfNumber(bytes, at + 1, end) : -1;
    default:
      return -1;
  }
}

function endOfName(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isPlainPart[bytes[at] as number] === 1) at++;
  return at;
}

function endOfPlainWord(bytes: Buffer, start: number, end: number, opening: number): number {
  const at = endOfName(bytes, start, end);
  if (at < end && (bytes[at] as number) >= firstHigh) return -1;
  if (
    at - start === 4 &&
    ((bytes[start] as number) | toLower) === letterI &&
    packed(bytes, start, at) === into
  )
    return isBehindInsert(bytes, start, opening) ? at : -1;
  return mayBeDangerousName(bytes, start, at) && !isPlainName(bytes, start, at, at, end) ? -1 : at;
}

/** The INTO is that of an INSERT or MERGE where a statement may begin. Elsewhere these may be names: SELECT 1 AS insert INTO t. */
function isBehindInsert(bytes: Buffer, start: number, opening: number): boolean {
  const end = endBefore(bytes, start, opening);
  const verb = packed(bytes, Math.max(end - 6, opening), end);
  const length = verb === insert ? 6 : packed(bytes, Math.max(end - 5, opening), end) === merge ? 5 : 0;
  if (length === 0) return false;
  const before = endBefore(bytes, end - length, opening);
  return before === opening || byteKinds[bytes[before - 1] as number] === ByteKind.open;
}

/** Skips space backwards. */
function endBefore(bytes: Buffer, end: number, opening: number): number {
  let at = end;
  while (at > opening && byteKinds[bytes[at - 1] as number] === ByteKind.space) at--;
  return at;
}

function isPlainName(bytes: Buffer, start: number, nameEnd: number, tokenEnd: number, end: number): boolean {
  const name = bytes.toString('latin1', start, nameEnd).toLowerCase();
  return (
    (isBeforeParenthesis(bytes, tokenEnd, end) ? effectOfFunction(name) : effectOfName(name)) === undefined
  );
}

/** Versions of PostgreSQL disagree about a name behind a number without a space. */
function endOfNumber(bytes: Buffer, start: number, end: number): number {
  const at = endOfDigits(bytes, start, end);
  return at < end && isNamePart[bytes[at] as number] === 1 ? -1 : at;
}

/** A string or a name in quotes. U&"..." can spell any name by its code points. */
function endOfQuoted(bytes: Buffer, start: number, end: number, isAsciiSafe: boolean): number {
  const mark = bytes[start];
  let at = start + 1;
  for (; at < end; at++) {
    const byte = bytes[at] as number;
    if (stopsInside[byte] === 0) continue;
    if (byte === mark) break;
    if (byte === backslash || byte === 0 || (byte >= firstHigh && !isAsciiSafe)) return -1;
  }
  if (at >= end || bytes[start - 1] === ampersand) return -1;
  if (mark === quote) return at + 1;
  // A doubled quote belongs to the name, of which only a part would be looked up.
  if (at + 1 < end && bytes[at + 1] === mark) return -1;
  return mayBeDangerousName(bytes, start + 1, at) && !isPlainName(bytes, start + 1, at, at + 1, end)
    ? -1
    : at + 1;
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const kind = byteKinds[bytes[at] as number];
    if (kind !== ByteKind.space && kind !== ByteKind.semicolon) return false;
  }
  return true;
}

function isOpening(word: number): boolean {
  for (let index = 0; index < openings.length; index++) if (openings[index] === word) return true;
  return false;
}

function packedWord(word: string): number {
  return packed(Buffer.from(word), 0, word.length);
}

function packed(bytes: Buffer, start: number, end: number): number {
  let word = 0;
  for (let at = start; at < end; at++) {
    const letter = ((bytes[at] as number) | toLower) - 0x60;
    if (letter < 1 || letter > 26) return 0;
    word = (word << 5) | letter;
  }
  return word;
}
