/** Cuts a text of the console into statements, and those into words, as SQL does: quotes, comments, semicolons. */
import { SqlState } from '../../wire/sql-states.js';
import { ConsoleError } from './console-error.js';

/**
 * - `word`: as it was written.
 * - `name`: was in double quotes; `string`: in single quotes. Without them, and what was doubled inside is single.
 * - `equals`: the sign.
 */
export interface Token {
  readonly kind: 'word' | 'name' | 'string' | 'equals';
  readonly text: string;
}

const space = /\s+|--[^\n]*/y;
/** Up to what ends a word: a space, a quote, a sign or a comment. */
const word = /(?:(?!--|\/\*)[^\s;='"])+/y;
const quoted = { '"': /"([^"]*(?:""[^"]*)*)"(?!")/y, "'": /'([^']*(?:''[^']*)*)'(?!')/y } as const;
const commentMark = /\/\*|\*\//g;

/** The statements of a text, those without a word left out. */
export function statementsOf(text: string): Token[][] {
  const statements: Token[][] = [];
  let statement: Token[] = [];
  let at = 0;
  const found = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  while (at < text.length) {
    if (found(space) !== null) continue;
    const sign = text[at] as string;
    if (text.startsWith('/*', at)) at = endOfComment(text, at);
    else if (sign === ';') {
      if (statement.length > 0) statements.push(statement);
      statement = [];
      at++;
    } else if (sign === '=') {
      statement.push({ kind: 'equals', text: sign });
      at++;
    } else if (sign === '"' || sign === "'") {
      const inside = found(quoted[sign])?.[1];
      if (inside === undefined) throw unended(`a ${sign} that is not closed`);
      statement.push({ kind: sign === '"' ? 'name' : 'string', text: inside.replaceAll(sign + sign, sign) });
    } else statement.push({ kind: 'word', text: found(word)?.[0] as string });
  }
  if (statement.length > 0) statements.push(statement);
  return statements;
}

/** They can be inside one another. */
function endOfComment(text: string, from: number): number {
  let depth = 0;
  commentMark.lastIndex = from;
  for (let mark = commentMark.exec(text); mark !== null; mark = commentMark.exec(text)) {
    depth += mark[0] === '/*' ? 1 : -1;
    if (depth === 0) return commentMark.lastIndex;
  }
  throw unended('a comment that does not end');
}

function unended(what: string): ConsoleError {
  return new ConsoleError(SqlState.syntaxError, `the command has ${what}`);
}
