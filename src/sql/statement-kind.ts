/**
 * Whether a statement may share its connection with other people's queries, judged by its text alone.
 *
 * Only a text that is provably one statement, of a kind that can leave neither a transaction nor a changed session
 * behind, is 'shareable'. Wherever the answer would depend on a server setting, a server version or an unfinished
 * quote, the answer is no: a wrong "no" costs a little speed, a wrong "yes" mixes two people's work.
 * What the text cannot show is what the user's own functions, views and triggers do to the session. None of them
 * can leave a transaction open.
 *
 * The text is read once, from left to right.
 */
import * as scan from './sql-scanner.js';

/**
 * - `shareable`: one statement that leaves nothing behind.
 * - `transaction`: begins, ends or marks a transaction, alone or among others.
 * - `session`: changes what belongs to one session.
 * - `opaque`: reads what belongs to one session, or runs SQL that the text does not show.
 * - `unknown`: all else, and what could not be read to its end.
 *
 * What is not shareable runs alone on a connection.
 */
export type StatementKind = 'shareable' | 'transaction' | 'session' | 'opaque' | 'unknown';

/** What the first word of a statement says; the last four need another word. */
type Opening = 'shareable' | 'transaction' | 'session' | 'explain' | 'prepare' | 'create' | 'set';

const OPENINGS: ReadonlyMap<string, Opening> = new Map<string, Opening>([
  ...openings('shareable', 'select insert update delete merge with values table show'),
  ...openings('transaction', 'begin start commit end rollback abort savepoint release'),
  ...openings(
    'session',
    'reset listen unlisten deallocate execute discard declare fetch move close load lock',
  ),
  ['explain', 'explain'],
  ['prepare', 'prepare'],
  ['create', 'create'],
  ['set', 'set'],
]);

function openings(opening: Opening, words: string): [string, Opening][] {
  return words.split(' ').map((word) => [word, opening]);
}

/** Names that change the session; pg_temp is the schema of its temporary tables. */
const SESSION_NAMES: ReadonlySet<string> = new Set(
  [
    'set_config setseed set_limit pg_temp http_set_curlopt http_reset_curlopt pg_backup_start pg_start_backup',
    'pg_create_logical_replication_slot pg_create_physical_replication_slot',
    'pg_copy_logical_replication_slot pg_copy_physical_replication_slot',
  ]
    .join(' ')
    .split(' '),
);

const SESSION_PREFIXES: readonly string[] = [
  'pg_advisory_',
  'pg_try_advisory_',
  'pg_temp_',
  'dblink_connect',
  'dblink_open',
  'hypopg_',
  'pgv_',
];

/** Names that read what an earlier query left in the session, run SQL that is hidden in a string, or strike backends. */
const OPAQUE_NAMES: ReadonlySet<string> = new Set(
  [
    // An UPDATE of the view pg_settings is a SET.
    'currval lastval pg_settings pg_drop_replication_slot pg_sync_replication_slots pg_backup_stop pg_stop_backup',
    'query_to_xml query_to_xmlschema query_to_xml_and_xmlschema cursor_to_xml cursor_to_xmlschema',
    'ts_stat ts_rewrite connectby pg_cancel_backend pg_terminate_backend',
  ]
    .join(' ')
    .split(' '),
);

const OPAQUE_PREFIXES: readonly string[] = [
  'pg_logical_slot_',
  'pg_replication_',
  'dblink',
  'postgres_fdw_',
  'crosstab',
];

/** Which three characters the names above begin with, so that most words need no closer look. */
const BEGINNINGS = new Uint8Array(27 ** 3);
for (const name of [...SESSION_NAMES, ...SESSION_PREFIXES, ...OPAQUE_NAMES, ...OPAQUE_PREFIXES])
  BEGINNINGS[beginningOf(name, 0)] = 1;
const SHORTEST_SESSION_NAME = 6;

/** Each letter is a digit in base 27, and all else is 26. */
function beginningOf(text: string, at: number): number {
  let beginning = 0;
  for (let index = at; index < at + 3; index++) {
    const letter = scan.letterOf(text, index);
    beginning = beginning * 27 + (letter === scan.NOWHERE ? 26 : letter);
  }
  return beginning;
}

/** Whether bytes that are a name may be one of those above. */
export function mayBeSessionName(bytes: Buffer, start: number, end: number): boolean {
  if (end - start < SHORTEST_SESSION_NAME) return false;
  let beginning = 0;
  for (let at = start; at < start + 3; at++) {
    const letter = ((bytes[at] as number) | 32) - 97;
    beginning = beginning * 27 + (letter >= 0 && letter < 26 ? letter : 26);
  }
  return BEGINNINGS[beginning] === 1;
}

const LETTER_I = 8;
const LETTER_M = 12;
const LETTER_U = 20;

/** What a name, in lower case, says about its statement. */
export function touchOf(name: string): 'session' | 'opaque' | undefined {
  // The _xact_ forms of advisory locks end with their statement.
  if (name.includes('advisory_xact_')) return undefined;
  const beginsName = (prefix: string): boolean => name.startsWith(prefix);
  if (SESSION_NAMES.has(name) || SESSION_PREFIXES.some(beginsName)) return 'session';
  if (OPAQUE_NAMES.has(name) || OPAQUE_PREFIXES.some(beginsName)) return 'opaque';
  return undefined;
}

/** Verdicts by text, in two generations: when the young one is full, the old one is forgotten. */
const CACHED_LENGTH = 10_000;
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

/** What the next word means. Within the parentheses of an EXPLAIN are options or the statement itself. */
type Place =
  | 'start'
  | 'explain'
  | 'explain-parentheses'
  | 'prepare'
  | 'create'
  | 'set'
  | 'set-local'
  | 'body';

const EXPLAIN_WORDS: ReadonlySet<string> = new Set(['analyze', 'analyse', 'verbose']);
const CREATE_WORDS: ReadonlySet<string> = new Set(['or', 'replace', 'global', 'local']);
const TEMPORARY_WORDS: ReadonlySet<string> = new Set(['temp', 'temporary', 'global', 'local']);
/** What a SET sets until the end of its transaction only. */
const TRANSACTION_SETTINGS: ReadonlySet<string> = new Set(['local', 'transaction', 'constraints']);
/** Reserved words, so that none of them can be the name of an option. */
const QUERY_IN_PARENTHESES: ReadonlySet<string> = new Set(['select', 'with', 'table']);

/** One reading of one text. */
class Judgement {
  readonly #text: string;
  #place: Place = 'start';
  #parentheses = 0;
  #semicolon = false;
  #creating = false;
  #afterInsert = false;
  #afterInto = false;
  #shareable = false;
  #doubt: boolean;
  #transaction = false;
  #session = false;
  #opaque = false;

  constructor(text: string) {
    this.#text = text;
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

  /** Reads all tokens; false as soon as it cannot be told where one ends. */
  #read(): boolean {
    const text = this.#text;
    let at = 0;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (scan.isSpace(code)) {
        at++;
      } else if (code === scan.DASH && text.charCodeAt(at + 1) === scan.DASH) {
        at = scan.endOfLine(text, at + 2);
      } else if (code === scan.SLASH && text.charCodeAt(at + 1) === scan.STAR) {
        at = scan.endOfComment(text, at + 2);
      } else {
        if (this.#semicolon) this.#nextStatement();
        at = scan.isNameStart(code) ? this.#word(at) : this.#symbol(code, at);
      }
      if (at === scan.NOWHERE) return false;
    }
    return true;
  }

  #nextStatement(): void {
    this.#semicolon = false;
    this.#doubt = true;
    this.#creating = false;
    this.#place = 'start';
  }

  #word(start: number): number {
    const end = scan.endOfName(this.#text, start);
    const glued = scan.isDigit(this.#text.charCodeAt(start - 1));
    if (this.#place === 'body') this.#bodyWord(start, end);
    else this.#leadingWord(this.#lower(start, end));
    // In the body of a function (BEGIN ATOMIC ...; END) a semicolon does not end the statement.
    if (this.#creating && this.#lower(start, end) === 'atomic') return scan.NOWHERE;
    // Where a name begins that follows a number without a space depends on the server's version.
    return glued && this.#text.slice(start, end).includes('$') ? scan.NOWHERE : end;
  }

  /** A word before it is clear what the statement is. */
  #leadingWord(word: string): void {
    this.#touch(word);
    if (this.#place === 'explain-parentheses') {
      if (QUERY_IN_PARENTHESES.has(word)) this.#open(word);
    } else if (this.#place === 'prepare') {
      if (word === 'transaction') this.#transaction = true;
      else this.#session = true;
      this.#place = 'body';
    } else if (this.#place === 'set') {
      if (TRANSACTION_SETTINGS.has(word)) this.#transaction = true;
      else this.#session = true;
      this.#place = word === 'local' ? 'set-local' : 'body';
    } else if (this.#place === 'set-local') {
      this.#place = 'body';
    } else if (this.#place === 'create') {
      if (word === 'temp' || word === 'temporary') this.#session = true;
      if (!CREATE_WORDS.has(word)) this.#place = 'body';
    } else if (this.#place === 'start' || !EXPLAIN_WORDS.has(word)) {
      this.#open(word);
    }
  }

  #open(word: string): void {
    const opening = OPENINGS.get(word);
    this.#place = 'body';
    this.#creating = opening === 'create';
    if (opening === 'shareable') this.#shareable = true;
    else if (opening === 'transaction') this.#transaction = true;
    else if (opening === 'session') this.#session = true;
    else if (opening !== undefined) this.#place = opening;
    this.#afterInsert = word === 'insert' || word === 'merge';
  }

  #bodyWord(start: number, end: number): void {
    const length = end - start;
    const initial = scan.letterOf(this.#text, start);
    const mayName = length >= SHORTEST_SESSION_NAME && BEGINNINGS[beginningOf(this.#text, start)] === 1;
    const mayInsert = length <= 6 && (initial === LETTER_I || initial === LETTER_M);
    const afterInsert = this.#afterInsert;
    this.#afterInsert = false;
    if (!mayName && !mayInsert && !this.#afterInto) return;

    const word = this.#lower(start, end);
    if (mayName) this.#touch(word);
    if (this.#afterInto && TEMPORARY_WORDS.has(word)) this.#session = true;
    this.#afterInto = word === 'into';
    // INTO elsewhere makes a table out of a SELECT.
    if (this.#afterInto && !afterInsert) this.#doubt = true;
    this.#afterInsert = word === 'insert' || word === 'merge';
  }

  /** Whatever is neither a word nor space; returns where it ends. */
  #symbol(code: number, at: number): number {
    this.#afterInsert = false;
    this.#afterInto = false;
    if (code === scan.OPEN_PARENTHESIS || code === scan.CLOSE_PARENTHESIS) return this.#parenthesis(code, at);
    if (code === scan.SEMICOLON) this.#semicolon = true;
    if (this.#place === 'prepare' || this.#place === 'set') this.#session = true;
    // A setting whose name begins with `local.`
    if (this.#place === 'set-local' && code === scan.POINT) this.#session = true;
    if (this.#place !== 'explain-parentheses') this.#place = 'body';

    const text = this.#text;
    if (code === scan.QUOTE) return scan.endOfString(text, at + 1);
    if (code === scan.DOUBLE_QUOTE) return this.#quotedName(at);
    if (code === scan.DOLLAR)
      return scan.isDigit(text.charCodeAt(at + 1))
        ? scan.endOfNumber(text, at + 1)
        : scan.endOfDollarQuote(text, at);
    return scan.isDigit(code) ? scan.endOfNumber(text, at) : at + 1;
  }

  #parenthesis(code: number, at: number): number {
    if (this.#place === 'explain' && code === scan.OPEN_PARENTHESIS) {
      this.#place = 'explain-parentheses';
      this.#parentheses = 1;
    } else if (this.#place === 'explain-parentheses') {
      this.#parentheses += code === scan.OPEN_PARENTHESIS ? 1 : -1;
      if (this.#parentheses === 0) this.#place = 'explain';
    }
    return at + 1;
  }

  #quotedName(at: number): number {
    // U&"..." can spell any name by its code points.
    const unicode =
      this.#text.charCodeAt(at - 1) === scan.AMPERSAND && scan.letterOf(this.#text, at - 2) === LETTER_U;
    const end = unicode ? scan.NOWHERE : scan.endOfQuotedName(this.#text, at + 1);
    if (end !== scan.NOWHERE) this.#touch(this.#lower(at + 1, end - 1));
    return end;
  }

  #touch(name: string): void {
    const touch = touchOf(name);
    if (touch === 'session') this.#session = true;
    else if (touch === 'opaque') this.#opaque = true;
  }

  #lower(start: number, end: number): string {
    return this.#text.slice(start, end).toLowerCase();
  }
}
