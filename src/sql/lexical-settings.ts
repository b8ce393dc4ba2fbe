/**
 * The settings that decide where the tokens of a text end. PostgreSQL converts a text to the server's encoding before it reads
 * it: in some encodings a byte below 0x80, such as a backslash, is the second half of a character, and no token.
 */
import { backslash, firstHigh } from './bytes.js';
import { type Backslashes, Tokenizer } from './tokenizer.js';

export interface LexicalSettings {
  /** The server's report of `client_encoding`. */
  readonly clientEncoding: string;
  readonly standardConformingStrings: boolean;
  /** False while a change of these is under way: it is unknown which settings the server will read the text with. */
  readonly areSure: boolean;
}

/** All bytes of characters beyond ASCII are beyond ASCII, and none is converted to ASCII: test/sql/encodings-on-server.test.ts. */
const asciiSafe =
  /^(?:SQL_ASCII|UTF8|UNICODE|EUC_(?:JP|CN|KR|TW|JIS_2004)|LATIN(?:[1-9]|10)|ISO_8859_[5-8]|WIN(?:125[0-8]|866|874)|KOI8[RU])$/;

/** Length of a character that begins with a byte beyond ASCII, by that byte and the next one. */
type CharacterLength = (first: number, second: number) => number;

const sjis: CharacterLength = (first) => (first >= 0xa1 && first <= 0xdf ? 1 : 2);
const twoBytes: CharacterLength = () => 2;
const gb18030: CharacterLength = (_first, second) => (second >= 0x30 && second <= 0x39 ? 4 : 2);

/** PostgreSQL's mblen functions, which count whether or not the character exists. */
const lengths: ReadonlyMap<string, CharacterLength> = new Map([
  ['SJIS', sjis],
  ['SHIFT_JIS_2004', sjis],
  ['BIG5', twoBytes],
  ['GBK', twoBytes],
  ['UHC', twoBytes],
  ['GB18030', gb18030],
]);

/** True if a byte below 0x80 always is the ASCII character that it looks like. `isPlainStatement()` takes this as an argument. */
export function isAsciiSafe({ clientEncoding, areSure }: LexicalSettings): boolean {
  return areSure && asciiSafe.test(clientEncoding);
}

/** Reads the tokens of a text as the server will; undefined if that is not certain. */
export function tokenizerOf(
  source: Buffer,
  start: number,
  end: number,
  lexical: LexicalSettings,
): Tokenizer | undefined {
  // A NUL ends the server's text, whatever follows.
  if (has(source, 0, start, end)) return undefined;
  const backslashes: Backslashes = lexical.standardConformingStrings ? 'literal' : 'escape';
  const tokens = new Tokenizer(source, start, end, backslashes);
  if (isAsciiSafe(lexical)) return tokens;
  const firstBeyond = findHigh(source, start, end);
  if (!lexical.areSure) return firstBeyond < end || has(source, backslash, start, end) ? undefined : tokens;
  if (firstBeyond === end) return tokens;
  const lengthOf = lengths.get(lexical.clientEncoding);
  if (lengthOf === undefined) return undefined;
  const masked = maskCharacters(source.subarray(start, end), firstBeyond - start, lexical, lengthOf);
  return masked && new Tokenizer(masked, 0, masked.length, backslashes);
}

function findHigh(source: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && (source[at] as number) < firstHigh) at++;
  return at;
}

function has(source: Buffer, byte: number, start: number, end: number): boolean {
  return source.subarray(start, end).includes(byte);
}

/** A copy in which all bytes of characters beyond ASCII are beyond ASCII; undefined if the last one is cut off. */
function maskCharacters(
  text: Buffer,
  firstBeyond: number,
  { clientEncoding }: LexicalSettings,
  lengthOf: CharacterLength,
): Buffer | undefined {
  const masked = Buffer.from(text);
  for (let at = firstBeyond; at < masked.length; ) {
    const first = masked[at] as number;
    if (first < firstHigh) {
      at++;
      continue;
    }
    const second = masked[at + 1] as number;
    const next = at + lengthOf(first, second);
    if (next > masked.length || isAsciiCharacter(clientEncoding, first, second)) return undefined;
    for (let each = at; each < next; each++) masked[each] = (masked[each] as number) | firstHigh;
    at = next;
  }
  return masked;
}

/** PostgreSQL converts two characters of SHIFT_JIS_2004 to a backslash and a tilde. */
function isAsciiCharacter(encoding: string, first: number, second: number): boolean {
  return encoding === 'SHIFT_JIS_2004' && first === 0x81 && (second === 0x5f || second === 0xb0);
}
