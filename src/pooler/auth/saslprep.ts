/**
 * Prepares a password for SCRAM, so that it is the same however it was typed. As in PostgreSQL, a password is checked before it
 * is normalized, and one that may not be prepared is used unchanged.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import {
  isAmong,
  leftToRight,
  mappedToNothing,
  otherSpaces,
  prohibited,
  rightToLeft,
} from './saslprep-tables.js';

export function preparePassword(password: string | Buffer): Buffer {
  const bytes = typeof password === 'string' ? Buffer.from(password) : password;
  if (isAscii(bytes) || !isUtf8(bytes)) return bytes;
  const mapped = mapCharacters(bytes.toString());
  if (mapped.length === 0 || !mayBePrepared(mapped)) return bytes;
  const text = mapped.map((codePoint) => String.fromCodePoint(codePoint)).join('');
  return Buffer.from(text.normalize('NFKC'));
}

function mapCharacters(text: string): number[] {
  const mapped: number[] = [];
  for (const character of text) {
    const codePoint = character.codePointAt(0) as number;
    if (isAmong(otherSpaces, codePoint)) mapped.push(0x20);
    else if (!isAmong(mappedToNothing, codePoint)) mapped.push(codePoint);
  }
  return mapped;
}

function mayBePrepared(codePoints: readonly number[]): boolean {
  if (codePoints.some((codePoint) => isAmong(prohibited, codePoint))) return false;
  if (!codePoints.some((codePoint) => isAmong(rightToLeft, codePoint))) return true;
  return (
    !codePoints.some((codePoint) => isAmong(leftToRight, codePoint)) &&
    isAmong(rightToLeft, codePoints[0] as number) &&
    isAmong(rightToLeft, codePoints.at(-1) as number)
  );
}
