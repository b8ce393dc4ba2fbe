/**
 * Where the tokens of an SQL text end, by the rules of PostgreSQL's own scanner.
 *
 * Wherever that would depend on a server setting, a server version or an encoding, and where a quote is never
 * closed, the answer is NOWHERE and the reader must give up. Each function is linear in what it passes over.
 */

export const NOWHERE = -1;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
export const DOUBLE_QUOTE = 34;
export const DOLLAR = 36;
export const AMPERSAND = 38;
export const QUOTE = 39;
export const OPEN_PARENTHESIS = 40;
export const CLOSE_PARENTHESIS = 41;
export const STAR = 42;
export const DASH = 45;
export const POINT = 46;
export const SLASH = 47;
export const SEMICOLON = 59;
const BACKSLASH = 92;
const UNDERSCORE = 95;
/** PostgreSQL sets no limit, but nobody needs more. */
const LONGEST_TAG = 63;

export function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** 0 for `a` or `A` to 25 for `z` or `Z`; NOWHERE for all else. */
export function letterOf(text: string, at: number): number {
  const letter = (text.charCodeAt(at) | 32) - 97;
  return letter >= 0 && letter < 26 ? letter : NOWHERE;
}

/** All beyond ASCII belongs to names, even what Unicode calls a space. */
export function isNameStart(code: number): boolean {
  const lower = code | 32;
  return (lower >= 97 && lower <= 122) || code >= 128 || code === UNDERSCORE;
}

function isNamePart(code: number): boolean {
  return isNameStart(code) || (code >= 48 && code <= 57) || code === DOLLAR;
}

export function endOfName(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && isNamePart(text.charCodeAt(end))) end++;
  return end;
}

export function endOfNumber(text: string, at: number): number {
  let end = at;
  while (isDigit(text.charCodeAt(end)) || text.charCodeAt(end) === POINT) end++;
  return text.charCodeAt(end) === DOLLAR ? NOWHERE : end;
}

export function endOfLine(text: string, at: number): number {
  let end = at;
  while (end < text.length) {
    const code = text.charCodeAt(end);
    if (code === LINE_FEED || code === CARRIAGE_RETURN) break;
    end++;
  }
  return end;
}

export function endOfComment(text: string, at: number): number {
  let depth = 1;
  let end = at;
  while (end < text.length) {
    const code = text.charCodeAt(end);
    const next = text.charCodeAt(end + 1);
    if (code === STAR && next === SLASH) {
      end += 2;
      if (--depth === 0) return end;
    } else if (code === SLASH && next === STAR) {
      end += 2;
      depth++;
    } else {
      end++;
    }
  }
  return NOWHERE;
}

/**
 * A quote after a backslash ends the string or not, depending on the letter before it and on
 * standard_conforming_strings. All other strings end at the same place either way. A doubled quote may count as the
 * end of one string and the beginning of the next.
 */
export function endOfString(text: string, at: number): number {
  let end = at;
  while (end < text.length) {
    const code = text.charCodeAt(end);
    if (code === QUOTE) return end + 1;
    if (code === BACKSLASH) {
      if (text.charCodeAt(end + 1) === QUOTE) return NOWHERE;
      end++;
    }
    end++;
  }
  return NOWHERE;
}

export function endOfQuotedName(text: string, at: number): number {
  let end = text.indexOf('"', at);
  while (end !== NOWHERE && text.charCodeAt(end + 1) === DOUBLE_QUOTE) end = text.indexOf('"', end + 2);
  return end === NOWHERE ? NOWHERE : end + 1;
}

/** `$tag$...$tag$`; a lone `$` ends at once. Tags beyond ASCII are refused: two of them can differ here and be equal once encoded. */
export function endOfDollarQuote(text: string, at: number): number {
  let end = at + 1;
  while (isNameStart(text.charCodeAt(end)) || isDigit(text.charCodeAt(end))) {
    if (text.charCodeAt(end) >= 128 || end - at > LONGEST_TAG) return NOWHERE;
    end++;
  }
  if (text.charCodeAt(end) !== DOLLAR) return at + 1;
  const tag = text.slice(at, end + 1);
  const close = text.indexOf(tag, end + 1);
  return close === NOWHERE ? NOWHERE : close + tag.length;
}
