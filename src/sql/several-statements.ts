/** Takes a text apart into its statements. */
import { Token, Tokenizer } from './tokenizer.js';

/** Without comments, and without empty ones; undefined where it can't be told for sure where one ends. */
export function statementsOf(text: string): readonly string[] | undefined {
  const bytes = Buffer.from(text);
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'unknown');
  const statements: string[] = [];
  let statement = '';
  for (let end = 0; ; end = tokens.end) {
    const token = tokens.next();
    if (token === Token.unreadable) return undefined;
    statement += blanksBetween(bytes, end, tokens.start);
    if (token === Token.semicolon || token === Token.end) {
      statements.push(statement.trim());
      statement = '';
      if (token === Token.end) return statements.filter((each) => each !== '');
    } else statement += bytes.toString('utf8', tokens.start, tokens.end);
  }
}

/** As they are, or a space in place of comments. */
function blanksBetween(bytes: Buffer, start: number, end: number): string {
  if (start === end) return '';
  const blanks = bytes.toString('utf8', start, end);
  return blanks.trim() === '' ? blanks : ' ';
}
