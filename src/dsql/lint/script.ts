/**
 * Splits a text as psql does: statements by their semicolons, lines that begin with a backslash, and rows behind COPY ... FROM stdin.
 *
 * A text that can't be read, such as an open quote, ends at the next semicolon at the end of a line, so that the statements behind it are still seen.
 */
import { Token, Tokenizer } from '../../sql/tokenizer.js';
import { byteOrderMark } from './positions.js';
import { scannable } from './tokens.js';

export interface StatementPiece {
  readonly kind: 'statement';
  /** From the first token to the last one, without the semicolon. */
  readonly start: number;
  readonly end: number;
  /** Behind the semicolon; `end` where there is none. */
  readonly terminated: number;
  /** Rows of COPY ... FROM stdin that stand behind it. */
  readonly data: CopyData | undefined;
}

export interface CopyData {
  readonly start: number;
  /** Where the line `\.` begins. */
  readonly end: number;
  /** Behind the line `\.`. */
  readonly terminated: number;
}

export type Piece =
  | StatementPiece
  | { readonly kind: 'meta' | 'unreadable'; readonly start: number; readonly end: number };

export function splitScript(text: string): Piece[] {
  return [...new Splitter(text).pieces()];
}

const copyIn = /^COPY\b[^;]*\bFROM\s+STDIN\b/i;
const recovery = /;[ \t]*\r?\n/g;

class Splitter {
  readonly #text: string;
  readonly #bytes: Buffer;

  constructor(text: string) {
    this.#text = text;
    this.#bytes = scannable(text);
  }

  *pieces(): Generator<Piece> {
    let at = this.#text.startsWith(byteOrderMark) ? 1 : 0;
    while (at < this.#text.length) {
      const found = this.#next(at);
      yield* found.pieces;
      at = found.resume;
    }
  }

  #next(from: number): { pieces: Piece[]; resume: number } {
    const text = this.#text;
    const tokens = new Tokenizer(this.#bytes, from, text.length, 'literal');
    const nesting = new Nesting();
    let start = -1;
    let end = from;
    for (;;) {
      const token = tokens.next();
      const body = { kind: 'statement' as const, start, end };
      const whole = (terminated: number): Piece[] =>
        start < 0 ? [] : [{ ...body, terminated, data: undefined }];
      if (token === Token.end) return { pieces: whole(end), resume: text.length };
      if (token === Token.unreadable) return this.#unreadable(end, whole(end));
      if (token === Token.semicolon && nesting.isFlat) {
        const terminated = tokens.end;
        if (start < 0) return { pieces: [], resume: terminated };
        const data = copyIn.test(text.slice(start, end)) ? this.#copyData(terminated) : undefined;
        return { pieces: [{ ...body, terminated, data }], resume: data?.terminated ?? terminated };
      }
      if (start < 0) start = tokens.start;
      end = tokens.end;
      nesting.see(token, token === Token.word ? text.slice(tokens.start, tokens.end).toLowerCase() : '');
    }
  }

  /** A backslash outside of quotes begins a command of psql. */
  #unreadable(behind: number, before: Piece[]): { pieces: Piece[]; resume: number } {
    const text = this.#text;
    const tokens = new Tokenizer(this.#bytes, behind, text.length, 'literal');
    tokens.next();
    const start = tokens.start > behind ? tokens.start : skipSpace(text, behind);
    if (text[start] === '\\') {
      const line = text.indexOf('\n', start);
      const end = line < 0 ? text.length : line;
      const isReturn = text[end - 1] === '\r';
      return { pieces: [...before, { kind: 'meta', start, end: isReturn ? end - 1 : end }], resume: end };
    }
    recovery.lastIndex = start + 1;
    const found = recovery.exec(text);
    const end = found === null ? text.length : found.index + 1;
    const from = (before[0]?.start ?? start) as number;
    return { pieces: [{ kind: 'unreadable', start: Math.min(from, start), end }], resume: end };
  }

  #copyData(behind: number): CopyData | undefined {
    const text = this.#text;
    const line = text.indexOf('\n', behind);
    if (line < 0 || text.slice(behind, line).trim() !== '') return undefined;
    const start = line + 1;
    const last = /^\\\.[ \t]*\r?$/gm;
    last.lastIndex = start;
    const found = last.exec(text);
    if (found === null) return undefined;
    return { start, end: found.index, terminated: found.index + found[0].length };
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text[at] as string)) at++;
  return at;
}

/** Semicolons inside of parentheses and of BEGIN ATOMIC ... END do not end a statement. */
class Nesting {
  #parentheses = 0;
  #blocks = 0;
  #heads: string[] = [];

  get isFlat(): boolean {
    return this.#parentheses <= 0 && this.#blocks === 0;
  }

  see(token: Token, word: string): void {
    if (token === Token.open) this.#parentheses++;
    if (token === Token.close) this.#parentheses--;
    if (token !== Token.word) return;
    if (this.#heads.length < 4) this.#heads.push(word);
    if (this.#parentheses > 0 || !this.#isRoutine()) return;
    if (word === 'begin' || (word === 'case' && this.#blocks > 0)) this.#blocks++;
    else if (word === 'end' && this.#blocks > 0) this.#blocks--;
  }

  #isRoutine(): boolean {
    return /^create( or replace)? (function|procedure)\b/.test(this.#heads.join(' '));
  }
}
