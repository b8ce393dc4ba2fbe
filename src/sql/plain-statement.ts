/**
 * Recognises, straight from its bytes, the plain statement that most queries are: a single SELECT, INSERT, UPDATE, DELETE,
 * VALUES or WITH that names nothing of the session. For those who see every query and can't afford a string of each.
 *
 * It is a quick look before `statementKind()`: what it calls plain is neither 'transaction' nor 'session' there. What it does
 * not, such as a text with a comment in it, may be harmless nevertheless.
 */
import { mayBeSessionName, touchOf } from './statement-kind.js';

const dash = 0x2d;
const star = 0x2a;
const ampersand = 0x26;
const quote = 0x27;
const doubleQuote = 0x22;
const dollar = 0x24;
const slash = 0x2f;
const point = 0x2e;
const backslash = 0x5c;

const Kind = {
  symbol: 0,
  space: 1,
  letter: 2,
  digit: 3,
  quote: 4,
  dash: 5,
  slash: 6,
  semicolon: 7,
  other: 8,
};

/** What a byte is outside of strings. All beyond ASCII belongs to names. */
const kinds = new Uint8Array(256).fill(Kind.symbol);
kinds.fill(Kind.letter, 0x80);
kinds.fill(Kind.space, 9, 14);
kinds[0x20] = Kind.space;
kinds.fill(Kind.digit, 0x30, 0x3a);
for (const range of ['AZ', 'az', '__']) kinds.fill(Kind.letter, range.charCodeAt(0), range.charCodeAt(1) + 1);
kinds[quote] = kinds[doubleQuote] = Kind.quote;
kinds[dash] = Kind.dash;
kinds[slash] = Kind.slash;
kinds[0x3b] = Kind.semicolon;
for (const code of [0, dollar, backslash]) kinds[code] = Kind.other;

/** The words that a plain statement begins with, five bits for each letter. */
const [select, insert, update, delete_, values, with_] = [
  'select',
  'insert',
  'update',
  'delete',
  'values',
  'with',
].map((word) => packed(Buffer.from(word), 0, word.length));
const longestOpening = 6;

/** Behind INTO they make a temporary table. */
const temporaryWords: ReadonlySet<string> = new Set(['temp', 'temporary', 'global', 'local']);
const temporaryInitials = new Uint8Array(256);
for (const initial of 'tTgGlL') temporaryInitials[initial.charCodeAt(0)] = 1;

export function isPlainStatement(bytes: Buffer, start: number, end: number): boolean {
  let at = start;
  while (at < end && kinds[bytes[at] as number] === Kind.space) at++;
  const opening = at;
  at = endOfName(bytes, at, end);
  if (at - opening > longestOpening || !isOpening(packed(bytes, opening, at))) return false;
  while (at >= 0 && at < end) at = endOfToken(bytes, at, end);
  return at >= 0;
}

/** Where the token that begins here ends; -1 when the statement is not plain, or it is not certain. */
function endOfToken(bytes: Buffer, at: number, end: number): number {
  switch (kinds[bytes[at] as number]) {
    case Kind.letter:
      return endOfPlainWord(bytes, at, end);
    case Kind.digit:
      return endOfNumber(bytes, at, end);
    case Kind.quote:
      return endOfQuoted(bytes, at, end);
    case Kind.dash:
      return bytes[at + 1] === dash ? -1 : at + 1;
    case Kind.slash:
      return bytes[at + 1] === star ? -1 : at + 1;
    case Kind.semicolon:
      return isBlank(bytes, at + 1, end) ? end : -1;
    case Kind.other:
      // A parameter, or else a string in dollars.
      return bytes[at] === dollar && kinds[bytes[at + 1] as number] === Kind.digit
        ? endOfNumber(bytes, at + 1, end)
        : -1;
    default:
      return at + 1;
  }
}

function endOfName(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isNamePart(bytes[at] as number)) at++;
  return at;
}

function isNamePart(byte: number): boolean {
  const kind = kinds[byte];
  return kind === Kind.letter || kind === Kind.digit || byte === dollar;
}

function endOfPlainWord(bytes: Buffer, start: number, end: number): number {
  const at = endOfName(bytes, start, end);
  const isSuspect =
    mayBeSessionName(bytes, start, at) || (temporaryInitials[bytes[start] as number] === 1 && at - start > 3);
  return isSuspect && !isPlainWord(bytes, start, at) ? -1 : at;
}

function isPlainWord(bytes: Buffer, start: number, end: number): boolean {
  const word = bytes.toString('latin1', start, end).toLowerCase();
  return touchOf(word) === undefined && !temporaryWords.has(word);
}

/** What follows a number without a space is read in different ways by different servers. */
function endOfNumber(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && (kinds[bytes[at] as number] === Kind.digit || bytes[at] === point)) at++;
  return at < end && isNamePart(bytes[at] as number) ? -1 : at;
}

/** A string or a name in quotes. A backslash in a string has a meaning that depends on settings. */
function endOfQuoted(bytes: Buffer, start: number, end: number): number {
  const mark = bytes[start];
  let at = start + 1;
  while (at < end && bytes[at] !== mark && bytes[at] !== backslash) at++;
  if (at >= end || bytes[at] === backslash) return -1;
  if (mark === quote) return at + 1;
  // U&"..." can spell any name by its code points.
  if (bytes[start - 1] === ampersand) return -1;
  const isSuspect = mayBeSessionName(bytes, start + 1, at);
  return isSuspect && !isPlainWord(bytes, start + 1, at) ? -1 : at + 1;
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const kind = kinds[bytes[at] as number];
    if (kind !== Kind.space && kind !== Kind.semicolon) return false;
  }
  return true;
}

function isOpening(word: number): boolean {
  return (
    word === select ||
    word === insert ||
    word === update ||
    word === delete_ ||
    word === values ||
    word === with_
  );
}

function packed(bytes: Buffer, start: number, end: number): number {
  let word = 0;
  for (let at = start; at < end; at++) {
    const letter = ((bytes[at] as number) | 0x20) - 0x60;
    if (letter < 1 || letter > 26) return 0;
    word = (word << 5) | letter;
  }
  return word;
}
