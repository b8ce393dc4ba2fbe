/** One statement of a script: its parse tree, its tokens, and edits of its text. */
import type { AlterTableCmd, ColumnDef, CreateStmt, Node } from 'libpg-query';
import type { ExaminedStatement } from '../../dialect/examiner.js';
import { type Body, bodyOf, type NodeKind } from '../../dialect/parse-tree.js';
import type { Profile } from '../../dialect/profile.js';
import type { Edit } from './mapped-text.js';
import type { StatementPiece } from './script.js';
import { endOfName, isName, itemsFrom, type Range, type Tok, tokensOf } from './tokens.js';

export class StatementView {
  #tokens: Tok[] | undefined;
  #isAscii: boolean | undefined;

  constructor(
    /** Text of the whole script. */
    readonly text: string,
    readonly piece: StatementPiece,
    readonly examined: ExaminedStatement,
    readonly profile: Profile,
    readonly newline: string,
  ) {}

  get node(): Node | undefined {
    return this.examined.node;
  }

  get source(): string {
    return this.text.slice(this.piece.start, this.piece.end);
  }

  get tokens(): readonly Tok[] {
    this.#tokens ??= tokensOf(this.text, this.piece.start, this.piece.end);
    return this.#tokens;
  }

  body<K extends NodeKind>(kind: K): Body<K> | undefined {
    return bodyOf(this.node, kind);
  }

  /** Place in the script of a byte offset of the parser. */
  indexOf(byte: number): number {
    const { source } = this;
    this.#isAscii ??= Buffer.byteLength(source) === source.length;
    if (this.#isAscii) return this.piece.start + byte;
    return this.piece.start + Buffer.from(source).toString('utf8', 0, byte).length;
  }

  /** The token at the byte offset of the parser; -1 where none begins there. */
  tokenAt(byte: number | undefined): number {
    if (byte === undefined) return -1;
    const index = this.indexOf(byte);
    return this.tokens.findIndex(({ start }) => start === index);
  }

  sourceOf({ first, last }: Range): string {
    return this.text.slice(this.tokens[first]?.start, this.tokens[last]?.end);
  }

  placeOf({ first, last }: Range): { start: number; end: number } {
    return {
      start: this.tokens[first]?.start ?? this.piece.start,
      end: this.tokens[last]?.end ?? this.piece.end,
    };
  }

  /** Tokens and the white space before them. */
  without({ first, last }: Range): Edit {
    const { start, end } = this.placeOf({ first, last });
    let from = start;
    while (from > this.piece.start && /\s/.test(this.text[from - 1] as string)) from--;
    // A line comment before the tokens still needs its line end.
    const line = this.text.slice(this.text.lastIndexOf('\n', from - 1) + 1, from);
    return { start: line.includes('--') ? start : from, end, text: '' };
  }

  replace(range: Range, text: string): Edit {
    return { ...this.placeOf(range), text };
  }

  after(token: number, text: string): Edit {
    const { end } = this.placeOf({ first: token, last: token });
    return { start: end, end, text };
  }

  before(token: number, text: string): Edit {
    const { start } = this.placeOf({ first: token, last: token });
    return { start, end: start, text };
  }

  atEnd(text: string): Edit {
    return { start: this.piece.end, end: this.piece.end, text };
  }

  /** One item of a list, and its comma; comments between them stay. */
  withoutItem(items: readonly Range[], index: number): Edit[] {
    const item = items[index] as Range;
    if (index > 0) return [this.without({ first: item.first - 1, last: item.first - 1 }), this.without(item)];
    const edits = [this.replace(item, '')];
    if (items.length === 1) return edits;
    const comma = this.placeOf({ first: item.last + 1, last: item.last + 1 });
    const space = /^\s*/.exec(this.text.slice(comma.end, comma.end + 200))?.[0].length ?? 0;
    return [...edits, { start: comma.start, end: comma.end + space, text: '' }];
  }

  /** The statement with its semicolon, and its lines where nothing else is on them. */
  withoutAll(): Edit {
    const { text } = this;
    let { start, terminated: end } = this.piece;
    const line = text.lastIndexOf('\n', start - 1) + 1;
    const rest = /^[ \t]*(?:\r?\n|$)/.exec(text.slice(end, end + 200))?.[0];
    if (rest !== undefined && text.slice(line, start).trim() === '') {
      start = line;
      end += rest.length;
    }
    return { start, end, text: '' };
  }

  replaceAll(statements: readonly string[]): Edit {
    if (statements.length === 0) return this.withoutAll();
    return { start: this.piece.start, end: this.piece.end, text: statements.join(this.#separator) };
  }

  /** Statements behind this one. */
  append(statements: readonly string[]): Edit[] {
    if (statements.length === 0) return [];
    const { end } = this.piece;
    return [{ start: end, end, text: statements.map((sql) => `${this.#separator}${sql}`).join('') }];
  }

  /** Drizzle sends the text between two of its comments at once, and DSQL takes one DDL statement at a time. */
  get #separator(): string {
    const mark = '--> statement-breakpoint';
    return `;${this.text.includes(mark) ? mark : ''}${this.newline}`;
  }

  /** Elements of CREATE TABLE's list, in the order of the parse tree's. */
  tableItems(): Range[] {
    return this.listAt(this.tokens.findIndex(({ word }) => word === '('));
  }

  /** Items of the list in the parentheses that `open` begins. */
  listAt(open: number): Range[] {
    return open < 0 || this.tokens[open + 1]?.word === ')' ? [] : itemsFrom(this.tokens, open + 1);
  }

  /** The name of ALTER TABLE's table as it is written, and the tokens of its commands. */
  alterTable(): { table: string; commands: Range[]; name: Range } {
    const { tokens } = this;
    let at = 2;
    for (const word of ['ASYNC', 'IF', 'EXISTS', 'ONLY'])
      if (tokens[at]?.word === word && (word !== 'ASYNC' || this.examined.isAsync)) at++;
    const isParenthesised = tokens[at]?.word === '(';
    if (isParenthesised) at++;
    const name = { first: at, last: endOfName(tokens, at) };
    let from = name.last + (isParenthesised ? 2 : 1);
    if (tokens[from]?.word === '*') from++;
    return { table: this.sourceOf(name), commands: itemsFrom(tokens, from), name };
  }

  /** The tokens of a command of ALTER TABLE. */
  commandRange(command: AlterTableCmd): Range | undefined {
    const commands = this.body('AlterTableStmt')?.cmds ?? [];
    const index = commands.findIndex((node) => bodyOf(node, 'AlterTableCmd') === command);
    return index < 0 ? undefined : this.alterTable().commands[index];
  }

  /** CREATE TABLE's or ADD COLUMN's tokens of a column. */
  columnRange(column: ColumnDef): Range | undefined {
    const table: CreateStmt | undefined = this.body('CreateStmt');
    if (table) {
      const index = (table.tableElts ?? []).findIndex((node) => bodyOf(node, 'ColumnDef') === column);
      return this.tableItems()[index];
    }
    const command = (this.body('AlterTableStmt')?.cmds ?? [])
      .map((node) => bodyOf(node, 'AlterTableCmd'))
      .find((found) => bodyOf(found?.def, 'ColumnDef') === column);
    const range = command && this.commandRange(command);
    if (range === undefined) return undefined;
    let first = range.first + 1;
    for (const word of ['COLUMN', 'IF', 'NOT', 'EXISTS']) if (this.tokens[first]?.word === word) first++;
    return { first, last: range.last };
  }

  /** The tokens of a column's type. */
  typeRange(column: ColumnDef): Range | undefined {
    const range = this.columnRange(column);
    const first = this.tokenAt(column.typeName?.location);
    if (range === undefined || first < 0) return undefined;
    const starts = [column.collClause?.location, ...constraintsOf(column).map(({ location }) => location)];
    const ends = starts.map((location) => this.tokenAt(location)).filter((token) => token > first);
    for (const word of ['STORAGE', 'COMPRESSION', 'COLLATE']) {
      const at = this.tokens.findIndex(
        (token, index) =>
          index > first &&
          index <= range.last &&
          token.word === word &&
          token.depth === this.tokens[first]?.depth,
      );
      if (at >= 0) ends.push(at);
    }
    return { first, last: Math.min(range.last, ...ends.map((end) => end - 1)) };
  }

  /** A keyword in the style of the one that it replaces. */
  like(token: number, word: string): string {
    const tok = this.tokens[token];
    const isUpper = tok !== undefined && this.text.slice(tok.start, tok.end) === tok.word;
    return isUpper ? word.toUpperCase() : word;
  }

  /** Text of the name that begins at a token. */
  nameAt(first: number): string {
    return isName(this.tokens[first]) ? this.sourceOf({ first, last: endOfName(this.tokens, first) }) : '';
  }
}

export function constraintsOf(column: ColumnDef) {
  return (column.constraints ?? [])
    .map((node) => bodyOf(node, 'Constraint'))
    .filter((constraint) => constraint !== undefined);
}
