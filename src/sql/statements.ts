/**
 * The statements of PostgreSQL by their first word, and what each of them does to its session. The one table behind all
 * readers of texts. A statement that is not in it may do anything.
 */

/**
 * How the rest of a statement is read for what it leaves in the session, in `statement-reader.ts`.
 *
 * - `query`: reads or writes rows; leaves nothing but what its functions and its INTO leave.
 * - `passing`: leaves nothing beyond its transaction, but for its functions.
 * - `transaction`: begins, ends or marks a transaction.
 * - `discarding`: takes settings back, or prepared statements and cursors away.
 * - `own`: changes the session, but not the schema.
 * - `running`: runs code that the text need not show. A procedure may end the transaction.
 * - `definition`: makes, changes or drops things in the database, and sets nothing.
 * - `library`: loads a library, which no catalog shows.
 * - `declare`, `explain`, `set`, `prepare`: more words tell.
 * - `unclear`: not one of these.
 */
export type Reading =
  | 'query'
  | 'passing'
  | 'transaction'
  | 'discarding'
  | 'own'
  | 'running'
  | 'definition'
  | 'library'
  | 'declare'
  | 'explain'
  | 'set'
  | 'prepare'
  | 'unclear';

/**
 * Says if a statement may share its connection with those of other callers, for `statement-kind.ts`. The last four need more words;
 * `alone`: not known to change the session, and not shared.
 */
export type Sharing =
  | 'shareable'
  | 'transaction'
  | 'session'
  | 'alone'
  | 'explain'
  | 'prepare'
  | 'create'
  | 'set';

export interface Statement {
  readonly reading: Reading;
  readonly sharing: Sharing;
  /** `plain-statement.ts` takes a quick look at these, which are the most frequent. */
  readonly isQuick?: true;
  /** Reads rows, unless a part of it writes or locks. */
  readonly mayRead?: true;
  readonly writes?: true;
  /** A reserved word, so that it can be no name: in parentheses it begins a query. */
  readonly isReserved?: true;
  /** How it begins or ends a transaction, if nothing but WORK or TRANSACTION follows. */
  readonly verb?: TransactionVerb;
  /** Its effect outlasts it: reported by the server as the command, it tells that the session has changed. */
  readonly lasts?: true;
}

/** How a statement begins or ends a transaction. */
export type TransactionVerb = 'begin' | 'commit' | 'rollback';

const query = { reading: 'query', sharing: 'shareable' } as const;
const passing = { reading: 'passing', sharing: 'alone' } as const;
const cursor = { reading: 'passing', sharing: 'session' } as const;
const transaction = { reading: 'transaction', sharing: 'transaction' } as const;
const definition = { reading: 'definition', sharing: 'alone' } as const;

const rows: readonly (readonly [words: string, statement: Statement])[] = [
  ['select with', { ...query, isQuick: true, mayRead: true, isReserved: true }],
  ['values', { ...query, isQuick: true, mayRead: true }],
  ['insert update delete', { ...query, isQuick: true, writes: true }],
  ['merge', { ...query, writes: true }],
  ['table', { ...query, isReserved: true }],
  ['show', { reading: 'passing', sharing: 'shareable' }],
  ['notify truncate copy', passing],
  ['fetch move close lock', cursor],
  ['begin start', { ...transaction, verb: 'begin' }],
  ['commit end', { ...transaction, verb: 'commit' }],
  ['rollback abort', { ...transaction, verb: 'rollback' }],
  ['savepoint release', transaction],
  ['reset discard deallocate', { reading: 'discarding', sharing: 'session', lasts: true }],
  ['listen unlisten', { reading: 'own', sharing: 'session', lasts: true }],
  ['do call', { reading: 'running', sharing: 'alone' }],
  ['execute', { reading: 'unclear', sharing: 'session' }],
  ['load', { reading: 'library', sharing: 'session', lasts: true }],
  ['declare', { reading: 'declare', sharing: 'session', lasts: true }],
  ['explain', { reading: 'explain', sharing: 'explain' }],
  ['set', { reading: 'set', sharing: 'set', lasts: true }],
  ['prepare', { reading: 'prepare', sharing: 'prepare', lasts: true }],
  ['create', { reading: 'definition', sharing: 'create' }],
  ['alter drop grant revoke comment security reindex vacuum', definition],
  ['analyze analyse cluster refresh import reassign', definition],
];

const byWord: ReadonlyMap<string, Statement> = new Map(
  rows.flatMap(([words, statement]) => words.split(' ').map((word) => [word, statement] as const)),
);

const unknown: Statement = { reading: 'unclear', sharing: 'alone' };

/** The statement that begins with this word in lower case. */
export function statementOf(word: string): Statement {
  return byWord.get(word) ?? unknown;
}

/** First words of statements, in the order of the table. */
export function wordsOf(isMeant: (statement: Statement) => boolean): readonly string[] {
  return [...byWord].flatMap(([word, statement]) => (isMeant(statement) ? [word] : []));
}

/** For a word in lower case. */
export function isQuery(word: string): boolean {
  return statementOf(word).reading === 'query';
}

/** The effect of a command outlasts it. For a command as the server reports it. */
export function outlasts(command: string): boolean {
  return statementOf(command.toLowerCase()).lasts === true;
}

/** True for a command, as the server reports it, whose effects can't be seen from outside. */
export function isOpaqueCommand(command: string): boolean {
  return statementOf(command.toLowerCase()).reading === 'running';
}

/** SET LOCAL, SET TRANSACTION and SET CONSTRAINTS end with their transaction. */
export const passingSets: readonly string[] = ['local', 'transaction', 'constraints'];

/** Source of a pattern: such a SET behind its verb. The name of a setting may begin with these words: `local.a`. */
const passingSet: string = String.raw`(?:${passingSets.join('|')})\b(?!\s*[.=]|\s+TO\b)`;

/** Source of a pattern: the beginning of a SET that may last longer. */
export const lastingSet: string = String.raw`SET\s+(?!${passingSet})`;

/** Words between EXPLAIN and the statement. */
export const explainWords: ReadonlySet<string> = new Set(['analyze', 'analyse', 'verbose']);
