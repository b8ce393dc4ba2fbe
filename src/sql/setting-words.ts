/**
 * Reads statements that set or show settings from their tokens: SET, RESET, SHOW, set_config(), and the statements that
 * tools send with them. Only a statement that is understood to its last token counts.
 */
import { isAsciiSafe, type LexicalSettings, tokenizerOf } from './lexical-settings.js';
import { settingOfWords } from './settings.js';
import { Token, type Tokenizer } from './tokenizer.js';

export type SettingWords =
  /** `value` undefined: DEFAULT, as RESET. */
  | {
      readonly kind: 'set';
      readonly name: string;
      readonly value: string | undefined;
      readonly isLocal: boolean;
    }
  | { readonly kind: 'reset'; readonly name: string }
  | { readonly kind: 'resetAll' }
  | { readonly kind: 'show'; readonly name: string }
  /** A SELECT with nothing but a call of set_config(). `value` undefined: the first parameter. */
  | {
      readonly kind: 'setConfig';
      readonly name: string;
      readonly value: string | undefined;
      readonly isLocal: boolean;
    }
  | { readonly kind: 'role'; readonly role: string | undefined; readonly isLocal: boolean }
  /** SET TRANSACTION, or for the session. Undefined: not given. */
  | {
      readonly kind: 'transaction';
      readonly isSession: boolean;
      readonly isolation: string | undefined;
      readonly isReadOnly: boolean | undefined;
      readonly isDeferrable: boolean | undefined;
    }
  /** set_config() for a row of pg_settings that is not there. */
  | { readonly kind: 'absent' }
  /** LOCK TABLE in ACCESS SHARE MODE. */
  | { readonly kind: 'lock' };

/** One statement of a text. `words` undefined: another kind of statement. */
export interface ReadStatement {
  readonly words: SettingWords | undefined;
  /** Its bytes, without comments around it and the semicolon. */
  readonly start: number;
  readonly end: number;
}

interface Piece {
  readonly token: Token;
  /** For a word or a quoted name in lower case; for a string its content; otherwise the source text. */
  readonly text: string;
}

const mostPieces = 20_000;
const mostStatements = 100;
const openings = new Set(['set', 'reset', 'show', 'select', 'lock']);

/**
 * The statements of the text from `start` to `end`; undefined if it can't be read, or if one of them is of another kind.
 * `lexical`: the settings with which the server reads the text.
 */
export function readSettingWords(
  source: Buffer,
  start: number,
  end: number,
  lexical: LexicalSettings,
): readonly ReadStatement[] | undefined {
  // Strings must mean what they look like.
  if (!isAsciiSafe(lexical) || !lexical.standardConformingStrings) return undefined;
  const tokens = tokenizerOf(source, start, end, lexical);
  if (tokens === undefined) return undefined;
  const found: ReadStatement[] = [];
  tokens.next();
  while (tokens.token !== Token.end) {
    if (tokens.token === Token.semicolon) {
      tokens.next();
      continue;
    }
    const statement = readStatement(tokens);
    if (statement?.words === undefined || found.length >= mostStatements) return undefined;
    found.push(statement);
  }
  return found.length === 0 ? undefined : found;
}

function readStatement(tokens: Tokenizer): ReadStatement | undefined {
  const { start, token } = tokens;
  if (token !== Token.word || !openings.has(tokens.name() ?? '')) return undefined;
  const pieces: Piece[] = [];
  let { end } = tokens;
  for (; !isOver(tokens); tokens.next()) {
    const piece = pieceOf(tokens);
    // A SELECT that sets nothing is recognised by its second or fourth token.
    if (piece === undefined || pieces.length >= mostPieces || !mayGoOn(pieces, piece)) return undefined;
    pieces.push(piece);
    end = tokens.end;
  }
  return { words: new WordReader(pieces).read(), start, end };
}

function isOver({ token }: Tokenizer): boolean {
  return token === Token.semicolon || token === Token.end;
}

function mayGoOn(pieces: readonly Piece[], next: Piece): boolean {
  if (pieces[0]?.text !== 'select') return true;
  if (pieces.length === 1) return next.text === 'pg_catalog' || next.text === 'set_config';
  return pieces.length !== 3 || pieces[1]?.text !== 'pg_catalog' || next.text === 'set_config';
}

function pieceOf(tokens: Tokenizer): Piece | undefined {
  const { token, bytes, start, end, isGlued, isBeyondAscii } = tokens;
  if (token === Token.unreadable || isGlued) return undefined;
  if (token === Token.word) return isBeyondAscii ? undefined : { token, text: tokens.name() as string };
  if (token === Token.quotedName) {
    const text = tokens.name();
    return text === undefined ? undefined : { token, text };
  }
  const text = bytes.toString('utf8', start, end);
  if (token !== Token.string) return { token, text };
  // E'...', U&'...', $$...$$ and strings that go on in the next line are left to the server.
  return /^'(?:[^'\\]|'')*'$/.test(text)
    ? { token, text: text.slice(1, -1).replaceAll("''", "'") }
    : undefined;
}

/** Newer than the PostgreSQL version of DSQL: clients that set it this way are prepared for servers without it. */
function isAbsent(setting: string): boolean {
  return setting === 'restrict_nonsystem_relation_kind';
}

class WordReader {
  readonly #pieces: readonly Piece[];
  #at = 0;

  constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces;
  }

  read(): SettingWords | undefined {
    const words = this.#read();
    return this.#at === this.#pieces.length ? words : undefined;
  }

  #read(): SettingWords | undefined {
    const [verb] = this.#pieces;
    this.#at = 1;
    switch (verb?.text) {
      case 'set':
        return this.#set();
      case 'reset':
        return this.#reset();
      case 'show': {
        const name = this.#takes('time', 'zone') ? 'timezone' : this.#name();
        return name === undefined || name === 'all' ? undefined : { kind: 'show', name };
      }
      case 'lock':
        return this.#lock();
      default:
        return this.#setConfig();
    }
  }

  #set(): SettingWords | undefined {
    if (this.#takes('session', 'characteristics', 'as', 'transaction')) return this.#modes(true);
    if (this.#takes('transaction')) return this.#modes(false);
    const isLocal = this.#takes('local');
    if (!isLocal) this.#takes('session');
    if (this.#takes('time', 'zone')) return this.#setTo('timezone', isLocal);
    if (this.#takes('role')) return this.#role(isLocal);
    const name = this.#name();
    if (name === undefined) return undefined;
    const byWords = settingOfWords(name);
    if (!this.#takes('to') && !this.#takes('='))
      // A role in words was handled before: this one is in quotes, which is an error.
      return byWords === undefined || byWords === 'role' ? undefined : this.#setTo(byWords, isLocal);
    return name === 'role' ? this.#role(isLocal) : this.#setTo(name, isLocal);
  }

  #setTo(name: string, isLocal: boolean): SettingWords | undefined {
    const values: string[] = [];
    do {
      const value = this.#value();
      if (value === undefined) return undefined;
      values.push(value);
    } while (this.#takes(','));
    const [only] = this.#pieces.slice(-1);
    const isDefault = values.length === 1 && only?.token === Token.word && only.text === 'default';
    return { kind: 'set', name, value: isDefault ? undefined : values.join(', '), isLocal };
  }

  #role(isLocal: boolean): SettingWords | undefined {
    const [piece] = this.#pieces.slice(this.#at);
    const role = this.#value();
    if (role === undefined) return undefined;
    const isNone = piece?.token === Token.word && (role === 'none' || role === 'default');
    return { kind: 'role', role: isNone ? undefined : role, isLocal };
  }

  #reset(): SettingWords | undefined {
    if (this.#takes('all')) return { kind: 'resetAll' };
    if (this.#takes('time', 'zone')) return { kind: 'reset', name: 'timezone' };
    const name = this.#name();
    if (name === undefined) return undefined;
    return name === 'role' ? { kind: 'role', role: undefined, isLocal: false } : { kind: 'reset', name };
  }

  #modes(isSession: boolean): SettingWords | undefined {
    let isolation: string | undefined;
    let isReadOnly: boolean | undefined;
    let isDeferrable: boolean | undefined;
    do {
      if (this.#takes('isolation', 'level')) {
        isolation = ['serializable', 'repeatable read', 'read committed', 'read uncommitted'].find((level) =>
          this.#takes(...level.split(' ')),
        );
        if (isolation === undefined) return undefined;
      } else if (this.#takes('read', 'only')) isReadOnly = true;
      else if (this.#takes('read', 'write')) isReadOnly = false;
      else if (this.#takes('deferrable')) isDeferrable = true;
      else if (this.#takes('not', 'deferrable')) isDeferrable = false;
      else return undefined;
    } while (this.#takes(',') || this.#at < this.#pieces.length);
    return { kind: 'transaction', isSession, isolation, isReadOnly, isDeferrable };
  }

  /** LOCK [TABLE] [ONLY] name [*], ... IN ACCESS SHARE MODE [NOWAIT]. */
  #lock(): SettingWords | undefined {
    this.#takes('table');
    do {
      this.#takes('only');
      if (this.#name(true) === undefined) return undefined;
      this.#takes('*');
    } while (this.#takes(','));
    if (!this.#takes('in', 'access', 'share', 'mode')) return undefined;
    this.#takes('nowait');
    return { kind: 'lock' };
  }

  /** SELECT set_config('name', 'value', false), for itself or for the setting that has this name. */
  #setConfig(): SettingWords | undefined {
    if (this.#takes('pg_catalog') && !this.#takes('.')) return undefined;
    if (!this.#takes('set_config', '(')) return undefined;
    // `name`, a column of pg_settings, is that of the row that is asked for.
    const isOfRow = this.#takes('name');
    let name = isOfRow ? undefined : this.#string();
    if ((name === undefined && !isOfRow) || !this.#takes(',')) return undefined;
    const isParameter = this.#takes('$1');
    const value = isParameter ? undefined : this.#string();
    if ((value === undefined && !isParameter) || !this.#takes(',')) return undefined;
    const isLocal = this.#boolean();
    if (isLocal === undefined || !this.#takes(')')) return undefined;
    if (this.#takes('from')) {
      if (this.#takes('pg_catalog') && !this.#takes('.')) return undefined;
      if (!this.#takes('pg_show_all_settings', '(', ')') && !this.#takes('pg_settings')) return undefined;
      if (!this.#takes('where', 'name', '=')) return undefined;
      const row = this.#string();
      if (row !== (name ?? row)) return undefined;
      if (row !== undefined && isAbsent(row)) return { kind: 'absent' };
      name = row;
    }
    return name === undefined ? undefined : { kind: 'setConfig', name: name.toLowerCase(), value, isLocal };
  }

  #string(): string | undefined {
    const piece = this.#pieces[this.#at];
    if (piece?.token !== Token.string) return undefined;
    this.#at++;
    return piece.text;
  }

  #boolean(): boolean | undefined {
    const piece = this.#pieces[this.#at++];
    return piece?.text === 'true' || piece?.text === 'false' ? piece.text === 'true' : undefined;
  }

  /** Takes all of these, or none. */
  #takes(...texts: readonly string[]): boolean {
    const isThere = texts.every((text, index) => {
      const piece = this.#pieces[this.#at + index];
      return piece?.text === text && piece.token !== Token.string && piece.token !== Token.quotedName;
    });
    if (isThere) this.#at += texts.length;
    return isThere;
  }

  /** Includes the qualifier before a point. */
  #name(isOfTable = false): string | undefined {
    let name: string | undefined;
    do {
      const piece = this.#pieces[this.#at];
      if (piece?.token !== Token.word && piece?.token !== Token.quotedName) return undefined;
      name = name === undefined ? piece.text : `${name}.${piece.text}`;
      this.#at++;
    } while (this.#takes('.'));
    return isOfTable || !/[^ -~]/.test(name) ? name : undefined;
  }

  #value(): string | undefined {
    const sign = this.#takes('-') ? '-' : this.#takes('+') ? '+' : '';
    const piece = this.#pieces[this.#at];
    const isNumber = piece?.token === Token.number;
    const isText =
      piece?.token === Token.word || piece?.token === Token.quotedName || piece?.token === Token.string;
    if (piece === undefined || !(isNumber || (isText && sign === '')) || /[^ -~]/.test(piece.text))
      return undefined;
    this.#at++;
    return sign === '-' ? `-${piece.text}` : piece.text;
  }
}
