/**
 * A number shared by texts that differ only in constants and space, computed in one quick look. It is a key to earlier
 * findings about such a text, and fails closed: if a quick look can't tell a constant, there is no number.
 */
import { backslash, dash, dollar, doubleQuote, isNamePart, quote, slash, star } from './bytes.js';

const [digit0, digit9, point, space] = [0x30, 0x39, 0x2e, 0x20];
/** Represents a constant; no text contains it. */
const constant = 0x01;
/** The beginning of longer texts represents the whole, as it does in what is shown of them. */
const longestLook = 4_096;

/** Undefined for a text with comments, backslashes, dollar quotes, letters right behind a number, or a string behind a constant. */
export function textFingerprint(bytes: Buffer, start: number, end: number): number | undefined {
  const limit = Math.min(end, start + longestLook);
  let high = 0x811c9dc5;
  let low = 0x1000193;
  let previous = space;
  /** The last that was no space. */
  let last = space;
  let at = start;
  while (at < limit) {
    let byte = bytes[at] as number;
    if (byte <= space) {
      at++;
      if (previous === space) continue;
      byte = space;
    } else if (byte >= digit0 && byte <= digit9 && isNamePart[previous] !== 1 && previous !== dollar) {
      at++;
      while (at < limit && isNumberPart(bytes[at] as number)) at++;
      if (at < limit && isNamePart[bytes[at] as number] === 1) return undefined;
      byte = constant;
    } else if (byte === quote) {
      // A string may continue behind a line end, and strings behind a letter have their own rules.
      if (last === constant || isNamePart[previous] === 1) return undefined;
      at = endOfString(bytes, at + 1, limit);
      if (at === -1) return undefined;
      byte = constant;
    } else if (byte === doubleQuote) {
      const close = endOfName(bytes, at + 1, limit);
      if (close === -1) return undefined;
      for (; at < close; at++) {
        low = Math.imul(low ^ (bytes[at] as number), 0x01000193);
        high = Math.imul(high ^ (bytes[at] as number), 0x85ebca6b) ^ (high >>> 15);
      }
      previous = last = doubleQuote;
      continue;
    } else {
      if (byte === backslash || startsWhatIsSlow(byte, bytes[at + 1] as number)) return undefined;
      at++;
    }
    low = Math.imul(low ^ byte, 0x01000193);
    high = Math.imul(high ^ byte, 0x85ebca6b) ^ (high >>> 15);
    previous = byte;
    if (byte !== space) last = byte;
  }
  return (high & 0x1fffff) * 0x1_0000_0000 + (low >>> 0);
}

function isNumberPart(byte: number): boolean {
  return (byte >= digit0 && byte <= digit9) || byte === point;
}

/** Comments and dollar quotes. */
function startsWhatIsSlow(byte: number, next: number): boolean {
  if (byte === dash) return next === dash;
  if (byte === slash) return next === star;
  return byte === dollar && !(next >= digit0 && next <= digit9);
}

/** Behind the next double quote; -1 where there is none. */
function endOfName(bytes: Buffer, from: number, limit: number): number {
  for (let at = from; at < limit; at++) if (bytes[at] === doubleQuote) return at + 1;
  return -1;
}

function endOfString(bytes: Buffer, from: number, limit: number): number {
  for (let at = from; at < limit; at++) {
    const byte = bytes[at];
    if (byte === quote && bytes[at + 1] !== quote) return at + 1;
    if (byte === quote) at++;
    if (byte === backslash) return -1;
  }
  return -1;
}
