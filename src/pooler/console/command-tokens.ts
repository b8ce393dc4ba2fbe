/** Splits a console text into statements and words, as SQL does: with quotes, comments and semicolons. */
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
/** Ends at a space, a quote, a sign or a comment. */
const word = /(?:(?!--|\/\*)[^\s;='"])+/y;
const quoted = { '"': /"([^"]*(?:""[^"]*)*)"(?!")/y, "'": /'([^']*(?:''[^']*)*)'(?!')/y } as const;
const commentMark = /\/\*|\*\//g;

/** Statements of the text, without the empty ones. */
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

/** Comments can be nested. */
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
