/** Takes a text apart into its statements. */
import * as scan from './sql-scanner.js';

/** Without comments, and without empty ones; undefined where it can't be told for sure where one ends. */
export function statementsOf(text: string): readonly string[] | undefined {
  const statements: string[] = [];
  let statement = '';
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    const end = endOfToken(text, code, at);
    if (end === scan.NOWHERE) return undefined;
    if (code === scan.SEMICOLON) {
      statements.push(statement.trim());
      statement = '';
    } else statement += isComment(text, code, at) ? ' ' : text.slice(at, end);
    at = end;
  }
  statements.push(statement.trim());
  return statements.filter((each) => each !== '');
}

function isComment(text: string, code: number, at: number): boolean {
  const next = text.charCodeAt(at + 1);
  return (code === scan.DASH && next === scan.DASH) || (code === scan.SLASH && next === scan.STAR);
}

function endOfToken(text: string, code: number, at: number): number {
  if (isComment(text, code, at))
    return code === scan.DASH ? scan.endOfLine(text, at + 2) : scan.endOfComment(text, at + 2);
  if (scan.isNameStart(code)) return scan.endOfName(text, at);
  switch (code) {
    case scan.QUOTE:
      return scan.endOfString(text, at + 1);
    case scan.DOUBLE_QUOTE:
      return scan.endOfQuotedName(text, at + 1);
    case scan.DOLLAR:
      return scan.isDigit(text.charCodeAt(at + 1))
        ? scan.endOfNumber(text, at + 1)
        : scan.endOfDollarQuote(text, at);
    default:
      return scan.isDigit(code) ? scan.endOfNumber(text, at) : at + 1;
  }
}
