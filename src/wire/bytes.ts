/** The few things done with bytes on every message: numbers, the end of a text, short copies. */
// The global one is looked up anew at every use.
import { Buffer } from 'node:buffer';

/** Up to about this many bytes, a loop is faster than a call into Node. */
const searchByLoop = 64;
const copyByLoop = 48;

/** A signed 32-bit number. */
export function int32At(bytes: Buffer, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}

/** An unsigned 16-bit number: the form in which PostgreSQL reads every count. */
export function uint16At(bytes: Buffer, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

export function putInt32(bytes: Buffer, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** The first zero byte at or after `from` and before `end`; -1 if there is none. */
export function findZero(bytes: Buffer, from: number, end: number): number {
  const loopEnd = from + searchByLoop < end ? from + searchByLoop : end;
  for (let at = from; at < loopEnd; at++) if (bytes[at] === 0) return at;
  if (loopEnd >= end) return -1;
  const found = bytes.indexOf(0, loopEnd);
  return found < end ? found : -1;
}

/** Copies `from` to `end` of one buffer to `at` in another. */
export function copyBytes(source: Buffer, from: number, end: number, target: Buffer, at: number): void {
  if (end - from > copyByLoop) {
    // Without a view of a part, which Node would make.
    if (from === 0 && end === source.length) target.set(source, at);
    else source.copy(target, at, from, end);
    return;
  }
  for (let read = from, write = at; read < end; read++, write++) target[write] = source[read] as number;
}

/** A new buffer with a copy of these bytes. */
export function copyOf(source: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start);
  copyBytes(source, start, end, copy, 0);
  return copy;
}

/** True if the bytes of `source` between `from` and `end` equal those of `whole`. */
export function areSameBytes(whole: Buffer, source: Buffer, from: number, end: number): boolean {
  const length = end - from;
  if (whole.length !== length) return false;
  // Statements of the same length differ near their end more often than at the beginning.
  for (let at = length - 1; at >= 0; at--) if (whole[at] !== source[from + at]) return false;
  return true;
}
