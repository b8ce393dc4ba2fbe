/** Steps over bytes that the quick looks share with the tokenizer. */
import { ByteKind, byteKinds, point } from './bytes.js';

/** Makes a capital letter of ASCII a small one. */
export const toLower = 0x20;

export function endOfSpace(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && byteKinds[bytes[at] as number] === ByteKind.space) at++;
  return at;
}

/** End of the digits and points of a number. */
export function endOfDigits(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && (byteKinds[bytes[at] as number] === ByteKind.digit || bytes[at] === point)) at++;
  return at;
}

/** A parenthesis opens behind some space: a name before it is that of a function. */
export function isBeforeParenthesis(bytes: Buffer, start: number, end: number): boolean {
  const at = endOfSpace(bytes, start, end);
  return at < end && byteKinds[bytes[at] as number] === ByteKind.open;
}

/** Compares bytes with a word in lower case. */
export function isWord(bytes: Buffer, start: number, end: number, word: Buffer): boolean {
  if (end - start !== word.length) return false;
  for (let at = 0; at < word.length; at++)
    if (((bytes[start + at] as number) | toLower) !== word[at]) return false;
  return true;
}
