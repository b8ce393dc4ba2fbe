/** Kinds of bytes in PostgreSQL's scanner, outside of quotes and comments. */

export const lineFeed = 0x0a;
export const carriageReturn = 0x0d;
export const doubleQuote = 0x22;
export const dollar = 0x24;
export const ampersand = 0x26;
export const quote = 0x27;
export const star = 0x2a;
export const plus = 0x2b;
export const dash = 0x2d;
export const point = 0x2e;
export const slash = 0x2f;
export const backslash = 0x5c;
export const firstHigh = 0x80;

export const ByteKind = {
  /** Bytes that occur in no statement that PostgreSQL accepts: control characters, backslashes, braces. */
  other: 0,
  symbol: 1,
  space: 2,
  letter: 3,
  /** Beyond ASCII: part of names, whatever its class in Unicode. */
  high: 4,
  digit: 5,
  quote: 6,
  dash: 7,
  slash: 8,
  semicolon: 9,
  dollar: 10,
  open: 11,
  close: 12,
} as const;

export const byteKinds = new Uint8Array(256).fill(ByteKind.other);
byteKinds.fill(ByteKind.high, firstHigh);
// The vertical tab is a space since PostgreSQL 16, and a syntax error before.
byteKinds.fill(ByteKind.space, 9, 14);
byteKinds[0x20] = ByteKind.space;
byteKinds.fill(ByteKind.digit, 0x30, 0x3a);
for (const range of ['AZ', 'az', '__'])
  byteKinds.fill(ByteKind.letter, range.charCodeAt(0), range.charCodeAt(1) + 1);
for (const symbol of ',[].:+*%^<>=~!@#&|`?') byteKinds[symbol.charCodeAt(0)] = ByteKind.symbol;
byteKinds[quote] = byteKinds[doubleQuote] = ByteKind.quote;
byteKinds[dash] = ByteKind.dash;
byteKinds[slash] = ByteKind.slash;
byteKinds[dollar] = ByteKind.dollar;
byteKinds[0x28] = ByteKind.open;
byteKinds[0x29] = ByteKind.close;
byteKinds[0x3b] = ByteKind.semicolon;

/** Letters, digits, `$` and all beyond ASCII. */
export const isNamePart = new Uint8Array(256);
/** Letters and all beyond ASCII. */
export const isNameStart = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const kind = byteKinds[byte];
  isNameStart[byte] = kind === ByteKind.letter || kind === ByteKind.high ? 1 : 0;
  isNamePart[byte] = isNameStart[byte] === 1 || kind === ByteKind.digit || byte === dollar ? 1 : 0;
}
