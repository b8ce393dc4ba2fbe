/** Tokens of a text by UTF-16 index, and lists in parentheses. */
import { Token, Tokenizer } from '../../sql/tokenizer.js';

export { Token } from '../../sql/tokenizer.js';

export interface Tok {
  readonly token: Token;
  readonly start: number;
  readonly end: number;
  /** A keyword or name without quotes in capitals; of other tokens, the first character. */
  readonly word: string;
  /** Open parentheses and brackets around it; a parenthesis itself counts as outside. */
  readonly depth: number;
}

const firstBeyondAscii = 0x80;
const highByte = 0xc3;

/** One byte for each UTF-16 unit: beyond ASCII, all characters are letters to PostgreSQL's scanner. */
export function scannable(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= firstBeyondAscii) bytes[at] = highByte;
  return bytes;
}

/** Tokens of `[start, end)`, up to one that can't be read. */
export function tokensOf(text: string, start: number, end: number): Tok[] {
  const tokenizer = new Tokenizer(scannable(text.slice(start, end)), 0, end - start, 'literal');
  const found: Tok[] = [];
  let depth = 0;
  while (tokenizer.next() !== Token.end && tokenizer.token !== Token.unreadable) {
    const { token } = tokenizer;
    const from = start + tokenizer.start;
    const to = start + tokenizer.end;
    const word = token === Token.word ? text.slice(from, to).toUpperCase() : (text[from] as string);
    if (word === ')' || word === ']') depth--;
    found.push({ token, start: from, end: to, word, depth });
    if (word === '(' || word === '[') depth++;
  }
  return found;
}

/** Tokens `[first, last]` by their place in the list of tokens. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

/** Items between commas, from the token `first` up to the end of its depth or to the token before `end`. */
export function itemsFrom(tokens: readonly Tok[], first: number, end = tokens.length): Range[] {
  const depth = tokens[first]?.depth ?? 0;
  const items: Range[] = [];
  let from = first;
  let at = first;
  for (; at < end && (tokens[at] as Tok).depth >= depth; at++) {
    const token = tokens[at] as Tok;
    if (token.depth !== depth || token.word !== ',') continue;
    items.push({ first: from, last: at - 1 });
    from = at + 1;
  }
  if (from < at) items.push({ first: from, last: at - 1 });
  return items;
}

/** The parenthesis that closes the one at `open`; the last token when none does. */
export function closeOf(tokens: readonly Tok[], open: number): number {
  const depth = tokens[open]?.depth;
  for (let at = open + 1; at < tokens.length; at++) if (tokens[at]?.depth === depth) return at;
  return tokens.length - 1;
}

/** The first of a row of words at one depth; -1 where there is none. */
export function findWords(
  tokens: readonly Tok[],
  words: readonly string[],
  { first, last }: Range = { first: 0, last: tokens.length - 1 },
  depth = tokens[first]?.depth ?? 0,
): number {
  for (let at = first; at + words.length - 1 <= last; at++)
    if (tokens[at]?.depth === depth && words.every((word, step) => tokens[at + step]?.word === word))
      return at;
  return -1;
}

export function isName(tok: Tok | undefined): boolean {
  return tok?.token === Token.word || tok?.token === Token.quotedName;
}

/** The last token of the dotted name that begins at `first`. */
export function endOfName(tokens: readonly Tok[], first: number): number {
  let last = first;
  while (tokens[last + 1]?.word === '.' && isName(tokens[last + 2])) last += 2;
  return last;
}
