/** A text without comments, with a single space where any space was, and without what is around its first and last token. */
import { Token, Tokenizer } from './tokenizer.js';

/**
 * In time that grows with the length of the text; patterns may be tried on the result, since no two spaces are in a row but in quotes.
 * Semicolons at the end are left out. Undefined where the end of a token depends on the server's settings, or does not come. The text is ASCII.
 */
export function canonicalText(text: string): string | undefined {
  const bytes = Buffer.from(text, 'latin1');
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'unknown');
  const parts: string[] = [];
  let [end, kept] = [0, 0];
  for (let token = tokens.next(); token !== Token.end; token = tokens.next()) {
    if (token === Token.unreadable) return undefined;
    if (parts.length > 0 && tokens.start > end) parts.push(' ');
    parts.push(bytes.toString('latin1', tokens.start, tokens.end));
    end = tokens.end;
    if (token !== Token.semicolon) kept = parts.length;
  }
  return parts.slice(0, kept).join('');
}
