/** Takes a text apart into its statements. */
import { endOfSpace } from './scan.js';
import { Token, Tokenizer } from './tokenizer.js';

/** The first `most`, without comments and empty statements; undefined if the end of one can't be determined for sure. */
export function statementsOf(text: string, most = Number.POSITIVE_INFINITY): readonly string[] | undefined {
  const bytes = Buffer.from(text);
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'unknown');
  const statements: string[] = [];
  /** Text of the statement up to `from`; no comments between `from` and the last token. */
  let statement = '';
  let from = 0;
  for (let end = 0; ; end = tokens.end) {
    const token = tokens.next();
    if (token === Token.unreadable) return undefined;
    if (endOfSpace(bytes, end, tokens.start) < tokens.start) {
      statement += `${bytes.toString('utf8', from, end)} `;
      from = tokens.start;
    }
    if (token !== Token.semicolon && token !== Token.end) continue;
    statement += bytes.toString('utf8', from, tokens.start);
    if (statement.trim() !== '') statements.push(statement.trim());
    if (token === Token.end || statements.length >= most) return statements;
    statement = '';
    from = tokens.end;
  }
}
