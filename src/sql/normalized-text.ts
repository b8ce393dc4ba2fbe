/**
 * An SQL text with its constants taken out, as pg_stat_statements shows it: `select * from t where id = ?`. It has no
 * part of a string or a number, so that everyone who may see statistics may see it.
 */
import { Token, Tokenizer } from './tokenizer.js';

/** Longer texts are cut. */
const longestText = 1_000;
const comma = 0x2c;

/** Replaces the end of a text that can't be tokenized. */
const cut = ' ...';

/** Comments are left out, space is one blank, a list of constants or parameters is its first and `...`. */
export function normalizedText(bytes: Buffer, start: number, end: number): string {
  const tokens = new Tokenizer(bytes, start, end, 'unknown');
  const list = new ConstantList();
  let text = '';
  let lastEnd = start;
  for (let token = tokens.next(); token !== Token.end; token = tokens.next()) {
    if (token === Token.unreadable || text.length > longestText) return `${text}${cut}`.trimStart();
    const hasBlank = tokens.start > lastEnd && text !== '';
    lastEnd = tokens.end;
    const isConstant = token === Token.string || token === Token.number;
    const written = isConstant ? '?' : bytes.toString('utf8', tokens.start, tokens.end);
    const isComma = token === Token.symbol && bytes[tokens.start] === comma;
    const isItem = isConstant || token === Token.parameter;
    text = list.add(text, hasBlank ? ` ${written}` : written, isItem, isComma);
  }
  return text.replace(/[\s;]+$/, '');
}

/** Follows `?, ?, ?`, of which only the first is kept. */
class ConstantList {
  /** Length of the text after the first constant of the list; -1 outside of one. */
  #kept = -1;
  #isBehindComma = false;

  add(text: string, written: string, isItem: boolean, isComma: boolean): string {
    if (isItem) {
      if (this.#kept !== -1 && this.#isBehindComma) {
        this.#isBehindComma = false;
        const first = text.slice(0, this.#kept);
        return `${first}, ...`;
      }
      this.#kept = text.length + written.length;
      this.#isBehindComma = false;
      return text + written;
    }
    if (isComma && this.#kept !== -1 && !this.#isBehindComma) {
      this.#isBehindComma = true;
      return text + written;
    }
    this.#kept = -1;
    this.#isBehindComma = false;
    return text + written;
  }
}
