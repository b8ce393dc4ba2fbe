/**
 * An SQL text with its constants taken out, as pg_stat_statements shows it: `select * from t where id = ?`. It has no
 * part of a string or a number, so that everyone who may see statistics may see it.
 */
import { Token, Tokenizer } from './tokenizer.js';

/** In characters; longer texts are cut. */
const longestText = 1_000;
/** Limit in bytes: only the beginning of longer texts is read. */
const longestLook = 16_384;
const comma = 0x2c;
/** The first two bits of a byte within a character of UTF-8. */
const [withinCharacter, firstBits] = [0x80, 0xc0];

/** Replaces the end of a text that is long or can't be tokenized. */
const cut = ' ...';

/**
 * Comments are left out, space is one blank, a list of constants or parameters is its first and `...`. The result has at
 * most `longestText` characters and `cut`.
 */
export function normalizedText(bytes: Buffer, start: number, end: number): string {
  const limit = Math.min(end, start + longestLook);
  const tokens = new Tokenizer(bytes, start, limit, 'unknown');
  const list = new ConstantList();
  /** Semicolons are left out at the end. */
  let semicolons = '';
  let lastEnd = start;
  for (let token = tokens.next(); token !== Token.end; token = tokens.next()) {
    if (token === Token.unreadable) return cutText(list.text);
    const blank = tokens.start > lastEnd && (list.text !== '' || semicolons !== '') ? ' ' : '';
    lastEnd = tokens.end;
    if (token === Token.semicolon) {
      if (semicolons.length < longestText) semicolons += `${blank};`;
      continue;
    }
    if (semicolons !== '') list.add(semicolons, false, false);
    semicolons = '';
    const isConstant = token === Token.string || token === Token.number;
    const room = longestText - list.text.length - blank.length;
    const isLong = (isConstant ? 1 : tokens.end - tokens.start) > room;
    if (isLong && isConstant) return cutText(list.text);
    if (isLong) return cutText(list.text + blank + beginning(tokens, room));
    const written = isConstant ? '?' : bytes.toString('utf8', tokens.start, tokens.end);
    const isComma = token === Token.symbol && bytes[tokens.start] === comma;
    list.add(blank + written, isConstant || token === Token.parameter, isComma);
  }
  return limit < end ? cutText(list.text) : list.text;
}

function cutText(text: string): string {
  return (text.slice(0, longestText).trimEnd() + cut).trimStart();
}

/** The token's first bytes, as many as there is room for. Does not end within a character. */
function beginning({ bytes, start }: Tokenizer, room: number): string {
  let end = start + Math.max(room, 0);
  while (end > start && ((bytes[end] as number) & firstBits) === withinCharacter) end--;
  return bytes.toString('utf8', start, end);
}

/** Writes a text, and of `?, ?, ?` in it only the first, and `...`. */
class ConstantList {
  #text = '';
  /** The text ends with a constant or a list of them. */
  #isOpen = false;
  /** The list has more than its first item. */
  #isShortened = false;
  /** The comma behind the list; empty where there is none. */
  #comma = '';

  get text(): string {
    return this.#text + this.#comma;
  }

  add(written: string, isItem: boolean, isComma: boolean): void {
    const isBehindComma = this.#comma !== '';
    if (this.#isOpen && isComma && !isBehindComma) {
      this.#comma = written;
      return;
    }
    if (this.#isOpen && isItem && isBehindComma) {
      if (!this.#isShortened) this.#text += ', ...';
      this.#isShortened = true;
    } else {
      this.#text += this.#comma + written;
      this.#isOpen = isItem;
      this.#isShortened = false;
    }
    this.#comma = '';
  }
}
