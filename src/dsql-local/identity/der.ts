/** Writes ASN.1 in DER, as far as certificates need it. */

const longestInteger = 0x7f;

function tagged(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

function lengthOf(length: number): Buffer {
  if (length <= longestInteger) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => tagged(0x30, ...parts);
export const set = (...parts: readonly Uint8Array[]): Buffer => tagged(0x31, ...parts);
export const octetString = (bytes: Uint8Array): Buffer => tagged(0x04, bytes);
export const utf8String = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
export const boolean = (value: boolean): Buffer => tagged(0x01, Buffer.from([value ? 0xff : 0]));

/** `[number]` around parts of their own. */
export const explicit = (number: number, ...parts: readonly Uint8Array[]): Buffer =>
  tagged(0xa0 | number, ...parts);

/** `[number]` in place of the tag of a string of bytes. */
export const implicit = (number: number, bytes: Uint8Array): Buffer => tagged(0x80 | number, bytes);

/** Not negative; `bytes` are the number's, highest first. */
export function unsigned(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const digits = first === -1 ? Buffer.from([0]) : Buffer.from(bytes.subarray(first));
  return tagged(0x02, (digits[0] ?? 0) > longestInteger ? Buffer.concat([Buffer.from([0]), digits]) : digits);
}

/** `unused`: bits at the end that do not count. */
export function bitString(bytes: Uint8Array, unused = 0): Buffer {
  return tagged(0x03, Buffer.from([unused]), bytes);
}

/** `oid('2.5.4.3')` */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((part) => {
    const groups = [part % 128];
    for (let higher = Math.floor(part / 128); higher > 0; higher = Math.floor(higher / 128))
      groups.unshift(0x80 | (higher % 128));
    return groups;
  });
  return tagged(0x06, Buffer.from(bytes));
}

/** To the second; RFC 5280 wants the short form until 2049. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  return date.getUTCFullYear() < 2050
    ? tagged(0x17, Buffer.from(digits.slice(2)))
    : tagged(0x18, Buffer.from(digits));
}
