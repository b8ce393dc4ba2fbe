/** Reads the tokens of a statement: its checksum, the names in it, and where it begins. */
import { createHash } from 'node:crypto';
import { Token, Tokenizer } from '../../sql/tokenizer.js';
import { decodeUnicodeName } from '../../sql/unicode-name.js';

/** PostgreSQL cuts longer names. */
const longestName = 63;

export function checksumOf(parts: readonly string[]): string {
  const hash = createHash('sha256');
  // A zero byte can't be in a statement.
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex');
}

/** Tokens without comments and spaces: a file may be formatted anew after it ran. */
export function tokensOf(sql: string): string {
  const bytes = Buffer.from(sql.replaceAll('\r\n', '\n'));
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'literal');
  const texts: string[] = [];
  for (let token = tokens.next(); token !== Token.end; token = tokens.next()) {
    if (token === Token.unreadable) return sql;
    const text = bytes.toString('utf8', tokens.start, tokens.end);
    texts.push(token === Token.word ? text.toLowerCase() : text);
  }
  return texts.join(' ');
}

/** All words and quoted names in lower case, keywords among them: more names than objects, and never fewer. */
export function namesIn(sql: string): string[] {
  const bytes = Buffer.from(sql);
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'literal');
  const names = new Set<string>();
  for (let token = tokens.next(); token !== Token.end && token !== Token.unreadable; token = tokens.next()) {
    if (token !== Token.word && token !== Token.quotedName) continue;
    const text = bytes.toString('utf8', tokens.start, tokens.end);
    names.add(cut((token === Token.word ? text : unquoted(text)).toLowerCase()));
  }
  return [...names];
}

function unquoted(text: string): string {
  const inside = text.slice(text.indexOf('"') + 1, -1).replaceAll('""', '"');
  return text.startsWith('"') ? inside : (decodeUnicodeName(inside) ?? inside);
}

function cut(name: string): string {
  const bytes = Buffer.from(name);
  return bytes.length <= longestName
    ? name
    : new TextDecoder().decode(bytes.subarray(0, longestName), { stream: true });
}

/** Without the comments before it. */
export function withoutHead(sql: string): string {
  const bytes = Buffer.from(sql);
  const tokens = new Tokenizer(bytes, 0, bytes.length, 'literal');
  tokens.next();
  return bytes.toString('utf8', tokens.start).trimEnd();
}

export function lineOf(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

const summaryLength = 100;

/** In one line, for people. */
export function summaryOf(sql: string): string {
  const line = sql.replaceAll(/\s+/g, ' ');
  return line.length > summaryLength ? `${line.slice(0, summaryLength - 3)}...` : line;
}
