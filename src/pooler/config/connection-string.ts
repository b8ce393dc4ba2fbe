/** Connection strings: `key=value` pairs as in libpq and PgBouncer, or a URL. */
import { Misread } from './config-problems.js';

const longest = 65_536;

/** The pairs of `host=db port=5432 password='it''s'`. Throws `Misread`, and never repeats a value. */
export function parsePairs(text: string): Map<string, string> {
  if (text.length > longest) throw new Misread(`is longer than ${longest} characters`);
  const pairs = new Map<string, string>();
  let at = endOf(/\s*/y, text, 0);
  while (at < text.length) {
    const keyEnd = endOf(/[^=\s]*/y, text, at);
    const key = text.slice(at, keyEnd);
    const valueStart = endOf(/\s*=\s*/y, text, keyEnd);
    if (key === '' || valueStart === keyEnd)
      throw new Misread(`must be key=value pairs, and is not at its character ${at + 1}`);
    const isQuoted = text[valueStart] === "'";
    const valueEnd = endOf(isQuoted ? /'(?:[^']|'')*'/y : /\S*/y, text, valueStart);
    const value = text.slice(valueStart, valueEnd);
    if (value === '' && isQuoted) throw new Misread(`has a quote without its end, in ${key}`);
    const meant = isQuoted ? value.slice(1, -1).replaceAll("''", "'") : value;
    if (meant === '') throw new Misread(`has no value for ${key}`);
    pairs.set(key, meant);
    at = endOf(/\s*/y, text, valueEnd);
  }
  return pairs;
}

/** End of the match that begins at `from`; `from` itself where there is none. */
function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

/** `postgres://user:password@host:5432/dbname?sslmode=require` as pairs. */
function parseUrl(text: string): Map<string, string> {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new Misread('is not a URL such as postgres://user@host:5432/dbname');
  }
  const pairs = new Map<string, string>();
  const put = (key: string, value: string): void => {
    if (value !== '') pairs.set(key, decoded(value));
  };
  put('host', url.hostname.replace(/^\[|\]$/g, ''));
  put('port', url.port);
  put('user', url.username);
  put('password', url.password);
  put('dbname', url.pathname.slice(1));
  for (const [key, value] of url.searchParams) if (value !== '') pairs.set(key, value);
  return pairs;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Misread('has a % that is not followed by two hexadecimal digits');
  }
}

/** Either form. */
export function parseConnection(text: string): Map<string, string> {
  return /^postgres(?:ql)?:\/\//i.test(text) ? parseUrl(text) : parsePairs(text);
}
