/**
 * Syntax of pg_hba.conf and pg_ident.conf: fields between blanks, lists with commas, names in double quotes, comments from #
 * on, and a backslash at the end of a continued line.
 */
import type { FileProblem } from './file-problem.js';

export interface Token {
  readonly text: string;
  /** In quotes, no word and no character is special. */
  readonly isQuoted: boolean;
}

/** Tokens of a field: several where there are commas. */
export type Field = readonly [Token, ...Token[]];

export interface FieldLine {
  /** Line number of its beginning, counted from 1. */
  readonly line: number;
  readonly fields: readonly Field[];
}

/** Blanks, a comma, a comment, or a token: pieces in quotes (a quote inside is written twice) and without, in any order. */
const piece = /([^\S\n]+)|(,)|(#.*)|((?:"(?:[^"]|"")*"|[^\s,#"])+)/y;

/** The non-empty lines. A malformed line is reported as a problem and left out. */
export function readFields(text: string, problems: FileProblem[]): FieldLine[] {
  const lines: FieldLine[] = [];
  for (const { line, content } of joinedLines(text)) {
    const fields = readLine(content);
    if (typeof fields === 'string') problems.push({ line, message: fields });
    else if (fields.length > 0) lines.push({ line, fields });
  }
  return lines;
}

function joinedLines(text: string): { readonly line: number; readonly content: string }[] {
  const joined: { readonly line: number; content: string }[] = [];
  let goesOn = false;
  for (const [index, raw] of text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .entries()) {
    const last = joined.at(-1);
    const content = raw.replace(/\\$/, '');
    if (goesOn && last !== undefined) last.content += content;
    else joined.push({ line: index + 1, content });
    goesOn = raw.endsWith('\\');
  }
  return joined;
}

/** The fields, or the problem. */
function readLine(content: string): Field[] | string {
  const fields: [Token, ...Token[]][] = [];
  let afterComma = false;
  piece.lastIndex = 0;
  while (piece.lastIndex < content.length) {
    const match = piece.exec(content);
    if (match === null) return 'a quote is not closed';
    const [, , comma, comment, token] = match;
    if (comment !== undefined) break;
    if (comma !== undefined) {
      if (afterComma || fields.length === 0) return 'a comma stands where a name was expected';
      afterComma = true;
    } else if (token !== undefined) {
      const last = fields.at(-1);
      if (afterComma && last !== undefined) last.push(readToken(token));
      else fields.push([readToken(token)]);
      afterComma = false;
    }
  }
  return afterComma ? 'the line ends with a comma' : fields;
}

function readToken(token: string): Token {
  const text = token.replace(/"((?:[^"]|"")*)"/g, (_, inside: string) => inside.replaceAll('""', '"'));
  return { text, isQuoted: token.startsWith('"') };
}
