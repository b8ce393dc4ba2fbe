/**
 * Judges by its text alone if a statement may share its connection with queries of other callers.
 *
 * Only a text that is provably one statement, of a kind that can leave neither a transaction nor a changed session
 * behind, is 'shareable'. If the answer would depend on a server setting, a server version or an unfinished quote, it is
 * no: a wrong "no" costs a little speed, a wrong "yes" mixes the work of two callers. The text can't show what the
 * user's own functions, views and triggers do to the session. None of them can leave a transaction open.
 *
 * The text is read once, from left to right.
 */
import { effectOfFunction, effectOfName, mayBeDangerousName, type NameEffect } from './dangerous-names.js';
import { IntoWatch } from './into-watch.js';
import { explainWords, passingSets, statementOf } from './statements.js';
import { Token, Tokenizer } from './tokenizer.js';

/**
 * - `shareable`: one statement that leaves nothing behind.
 * - `transaction`: begins, ends or marks a transaction, alone or among others.
 * - `session`: changes the state of one session.
 * - `opaque`: reads the state of one session, or runs SQL that the text does not show.
 * - `unknown`: all others, and texts that could not be read to their end.
 *
 * A statement that is not shareable runs alone on a connection.
 */
export type StatementKind = 'shareable' | 'transaction' | 'session' | 'opaque' | 'unknown';

/** Verdicts by text, in two generations: when the young one is full, the old one is forgotten. */
const CACHED_LENGTH = 10_000;
/** Holds the bytes of a text while it is read. */
const SCRATCH = Buffer.alloc(3 * CACHED_LENGTH);
const GENERATION_TEXTS = 500;
const GENERATION_CHARACTERS = 500_000;
let young = new Map<string, StatementKind>();
let old = new Map<string, StatementKind>();
let youngCharacters = 0;

/** Judges `text`; equal texts are judged once as long as they are remembered. */
export function statementKind(text: string): StatementKind {
  if (typeof text !== 'string') return 'unknown';
  if (text.length > CACHED_LENGTH) return new Judgement(text).kind();
  let kind = young.get(text);
  if (kind !== undefined) return kind;
  kind = old.get(text) ?? new Judgement(text).kind();
  youngCharacters += text.length;
  if (young.size >= GENERATION_TEXTS || youngCharacters > GENERATION_CHARACTERS) {
    old = young;
    young = new Map();
    youngCharacters = text.length;
  }
  young.set(text, kind);
  return kind;
}

/** Meaning of the next word. Within the parentheses of an EXPLAIN are options or the statement itself. */
type Place =
  | 'start'
  | 'explain'
  | 'explain-parentheses'
  | 'prepare'
  | 'prepare-transaction'
  | 'create'
  | 'set'
  | 'set-local'
  | 'body';

const CREATE_WORDS: ReadonlySet<string> = new Set(['or', 'replace', 'global', 'local']);
const TEMPORARY_WORDS: ReadonlySet<string> = new Set(['temp', 'temporary', 'global', 'local']);
/** One reading of one text. */
class Judgement {
  readonly #tokens: Tokenizer;
  readonly #into = new IntoWatch();
  #place: Place = 'start';
  #parentheses = 0;
  #semicolon = false;
  #creating = false;
  #afterInto = false;
  #shareable = false;
  #doubt: boolean;
  #transaction = false;
  #session = false;
  #opaque = false;
  /** The last name, which is that of a function if a parenthesis follows. */
  #function: string | undefined;

  constructor(text: string) {
    this.#function = undefined;
    const isShort = text.length <= CACHED_LENGTH;
    const bytes = isShort ? SCRATCH : Buffer.from(text);
    this.#tokens = new Tokenizer(bytes, 0, isShort ? SCRATCH.write(text) : bytes.length, 'unknown');
    // The server's text ends at a NUL, whatever follows.
    this.#doubt = text.includes('\0');
  }

  kind(): StatementKind {
    const isUnderstood = this.#read();
    if (this.#session) return 'session';
    if (this.#opaque) return 'opaque';
    if (!isUnderstood) return 'unknown';
    if (this.#transaction) return 'transaction';
    return this.#shareable && !this.#doubt ? 'shareable' : 'unknown';
  }

  /** Reads all tokens; false as soon as the end of one can't be determined. */
  #read(): boolean {
    const tokens = this.#tokens;
    while (tokens.next() !== Token.end) {
      if (tokens.token === Token.unreadable) return false;
      if (this.#semicolon) this.#nextStatement();
      if (this.#function !== undefined) {
        if (tokens.token === Token.open) this.#note(effectOfFunction(this.#function));
        this.#function = undefined;
      }
      if (tokens.token === Token.symbol && this.#place === 'body') {
        this.#afterInto = false;
        this.#into.makesTable(tokens);
      } else if (tokens.token === Token.word) {
        // In the body of a function (BEGIN ATOMIC ...; END) a semicolon does not end the statement.
        if (this.#creating && tokens.name() === 'atomic') return false;
        this.#word();
      } else if (!this.#symbol()) return false;
    }
    return true;
  }

  #nextStatement(): void {
    this.#semicolon = false;
    this.#doubt = true;
    this.#creating = false;
    this.#place = 'start';
  }

  #word(): void {
    if (this.#place !== 'body') {
      this.#leadingWord(this.#tokens.name() as string);
      return;
    }
    const { bytes, start, end } = this.#tokens;
    const isAfterInto = this.#afterInto;
    this.#afterInto = this.#into.makesTable(this.#tokens);
    if (this.#afterInto) this.#doubt = true;
    if (this.#tokens.isBeyondAscii) this.#touch(this.#tokens.foldedName());
    else if (isAfterInto || mayBeDangerousName(bytes, start, end)) {
      const word = this.#tokens.name() as string;
      this.#touch(word);
      if (isAfterInto && TEMPORARY_WORDS.has(word)) this.#session = true;
    }
  }

  /** A word before the kind of statement is clear. */
  #leadingWord(word: string): void {
    this.#touch(word);
    if (this.#place === 'explain-parentheses') {
      if (statementOf(word).isReserved === true) this.#open(word);
    } else if (this.#place === 'prepare') {
      if (word !== 'transaction') this.#session = true;
      this.#place = word === 'transaction' ? 'prepare-transaction' : 'body';
    } else if (this.#place === 'prepare-transaction') {
      // A prepared statement of that name.
      this.#session = true;
      this.#place = 'body';
    } else if (this.#place === 'set') {
      const isPassing = passingSets.includes(word);
      if (isPassing) this.#transaction = true;
      else this.#session = true;
      this.#place = isPassing ? 'set-local' : 'body';
    } else if (this.#place === 'set-local') {
      this.#place = 'body';
    } else if (this.#place === 'create') {
      if (word === 'temp' || word === 'temporary') this.#session = true;
      if (!CREATE_WORDS.has(word)) this.#place = 'body';
    } else if (this.#place === 'start' || !explainWords.has(word)) {
      this.#open(word);
    }
  }

  #open(word: string): void {
    const { sharing } = statementOf(word);
    this.#place = 'body';
    this.#creating = sharing === 'create';
    this.#into.begin(word);
    this.#afterInto = false;
    if (sharing === 'shareable') this.#shareable = true;
    else if (sharing === 'transaction') this.#transaction = true;
    else if (sharing === 'session') this.#session = true;
    else if (sharing !== 'alone') this.#place = sharing;
  }

  /** Any token that is not a word. False for a name that is written in code points, which can spell any name. */
  #symbol(): boolean {
    const tokens = this.#tokens;
    const { token } = tokens;
    this.#afterInto = false;
    this.#into.makesTable(tokens);
    if (token === Token.open || token === Token.close) {
      if (this.#place === 'prepare-transaction') this.#session = true;
      this.#parenthesis(token === Token.open);
      return true;
    }
    if (token === Token.semicolon) this.#semicolon = true;
    if (this.#place === 'prepare' || this.#place === 'set') this.#session = true;
    if (this.#place === 'prepare-transaction') {
      if (token === Token.string) this.#transaction = true;
      else this.#session = true;
    }
    // A setting whose name begins with `local.`, `transaction.` or `constraints.`
    if (this.#place === 'set-local' && token === Token.symbol) this.#session = true;
    if (this.#place !== 'explain-parentheses') this.#place = 'body';
    if (token !== Token.quotedName) return true;
    if (tokens.isUnicodeName) return false;
    // A name with a quote in it is none of the listed ones.
    if (mayBeDangerousName(tokens.bytes, tokens.start + 1, tokens.end - 1))
      this.#touch(tokens.name() as string);
    return true;
  }

  #parenthesis(isOpen: boolean): void {
    if (this.#place === 'explain' && isOpen) {
      this.#place = 'explain-parentheses';
      this.#parentheses = 1;
    } else if (this.#place === 'explain-parentheses') {
      this.#parentheses += isOpen ? 1 : -1;
      if (this.#parentheses === 0) this.#place = 'explain';
    }
  }

  #touch(name: string): void {
    this.#function = name;
    this.#note(effectOfName(name));
  }

  #note(effect: NameEffect | undefined): void {
    const touch = effect?.touch;
    if (touch === 'session') this.#session = true;
    else if (touch === 'opaque') this.#opaque = true;
  }
}
