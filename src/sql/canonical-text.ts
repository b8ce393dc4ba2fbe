/** A text without comments, with a single space for any space, and trimmed at both ends. */
import { Token, Tokenizer } from './tokenizer.js';

/**
 * Takes time linear in the length of the text. Patterns may be matched against the result, since it has no two spaces in
 * a row outside of quotes. Semicolons at the end are left out. Undefined if the end of a token depends on the server's
 * settings, or is missing. The text must be ASCII.
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
