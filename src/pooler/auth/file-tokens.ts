/**
 * The way in which pg_hba.conf and pg_ident.conf are written: fields between blanks, lists with commas, names in double
 * quotes, comments from # on, a backslash at the end of a line that goes on.
 */
import type { FileProblem } from './file-problem.js';

export interface Token {
  readonly text: string;
  /** In quotes, no word and no sign has a meaning of its own. */
  readonly isQuoted: boolean;
}

/** The tokens of a field: several where there are commas. */
export type Field = readonly [Token, ...Token[]];

export interface FieldLine {
  /** Where it begins, counted from 1. */
  readonly line: number;
  readonly fields: readonly Field[];
}

/** Blanks, a comma, a comment, or a token: pieces in quotes (a quote inside is written twice) and without, in any order. */
const piece = /([^\S\n]+)|(,)|(#.*)|((?:"(?:[^"]|"")*"|[^\s,#"]+)+)/y;

/** The lines that are not empty. A line that can't be read is a problem, and left out. */
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

/** Or what is wrong. */
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
