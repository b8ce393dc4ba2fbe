/**
 * Finds those of a client's statements that Aurora DSQL would refuse although they have no effect there: the pooler answers
 * them in its place. A text is swallowed as a whole, or goes to the server unchanged.
 */
import { settableParameters } from '../../../dialect/settings.js';
import type { LexicalSettings } from '../../../sql/lexical-settings.js';
import { readSettingWords, type SettingWords } from '../../../sql/setting-words.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import { SqlState } from '../../../wire/sql-states.js';
import { SwallowedStatement } from '../../servers/swallowed.js';
import type { KeptSettings } from '../../settings/kept-settings.js';
import { refusedSettings } from '../../settings/refused-settings.js';
import { quotedName, searchPath, setText } from '../../settings/settings.js';

/** Transaction state in which a statement is run. */
export const Where = {
  /** Outside of transactions. */
  outside: 0,
  /** In a transaction that no server has begun. */
  begun: 1,
  /** In a transaction on the server. */
  inTransaction: 2,
} as const;
export type Where = (typeof Where)[keyof typeof Where];

/** Statements for the server. The client gets only the answer to the last one. */
export class ForServer {
  readonly statements: readonly string[];

  constructor(statements: readonly string[]) {
    this.statements = statements;
  }
}

/** The error for an invalid value of a setting. */
export class Problem {
  readonly error: ErrorFields;

  constructor(error: ErrorFields) {
    this.error = error;
  }
}

export type Judged = SwallowedStatement | ForServer | Problem;

export interface SwallowerParts {
  readonly kept: KeptSettings;
  /** The session's user. */
  readonly user: string;
  /** SET TRANSACTION READ ONLY and the like, in a transaction that no server has begun. */
  readonly setReadOnly: (isReadOnly: boolean) => void;
  /** Counts a swallowed statement; `what` is its setting or other subject. */
  readonly swallowed: (what: string) => void;
}

const localOutside: ErrorFields = {
  severity: 'WARNING',
  code: SqlState.noActiveSqlTransaction,
  message: 'SET LOCAL can only be used in transaction blocks',
};
const anyLevel = 'repeatable read';

/** Subjects of swallowed statements, as metrics name them. */
export const swallowedKinds: readonly string[] = [
  ...refusedSettings.keys(),
  'lock table',
  'role',
  'session characteristics',
  'transaction',
];

export class Swallower {
  readonly #parts: SwallowerParts;
  /** Values by name that the statements of the present text will set. */
  readonly #ahead = new Map<string, string | undefined>();

  constructor(parts: SwallowerParts) {
    this.#parts = parts;
  }

  /** Statements of a text, in order; undefined: the text goes to the server unchanged. */
  judge(
    source: Buffer,
    start: number,
    end: number,
    lexical: LexicalSettings,
    where: Where,
  ): readonly Judged[] | undefined {
    const statements = readSettingWords(source, start, end, lexical);
    if (statements === undefined) return undefined;
    this.#ahead.clear();
    const judged: Judged[] = [];
    for (const { words, start: from, end: to } of statements) {
      const text = source.toString('latin1', from, to);
      const one = this.#judge(words as SettingWords, text, where);
      if (one === undefined) return undefined;
      judged.push(one);
    }
    return judged.every((one) => one instanceof ForServer && one.statements.length === 1)
      ? undefined
      : judged;
  }

  /** For a text that is only a SELECT of set_config('search_path', ..., false): the value, undefined for that of a parameter. */
  readPath(
    source: Buffer,
    start: number,
    end: number,
    lexical: LexicalSettings,
  ): { readonly value: string | undefined } | undefined {
    const [only, ...others] = readSettingWords(source, start, end, lexical) ?? [];
    const words = others.length === 0 ? only?.words : undefined;
    if (words?.kind !== 'setConfig' || words.name !== searchPath || words.isLocal) return undefined;
    return { value: words.value };
  }

  #judge(words: SettingWords, text: string, where: Where): Judged | undefined {
    switch (words.kind) {
      case 'set':
        return this.#set(words, text, where);
      case 'setConfig':
        return this.#setConfig(words, where);
      case 'absent':
        return new SwallowedStatement('SELECT 0', () => {}, { name: 'set_config', value: undefined });
      case 'reset':
        return this.#reset(words.name, text, where);
      case 'resetAll':
        return new ForServer([text]);
      case 'show':
        return this.#show(words.name, text);
      case 'role':
        return this.#role(words.role, words.isLocal, where);
      case 'transaction':
        return words.isSession ? this.#characteristics(words) : this.#transaction(words, where);
      case 'lock':
        // LOCK TABLE would only keep others from changing the table, as every SELECT does. On DSQL a conflicting change gives OC001.
        return where === Where.outside ? undefined : this.#nothing('lock table', 'LOCK TABLE');
    }
  }

  #set(
    { name, value, isLocal }: Extract<SettingWords, { kind: 'set' }>,
    text: string,
    where: Where,
  ): Judged | undefined {
    if (settableParameters.has(name)) return new ForServer([text]);
    const setting = refusedSettings.get(name);
    if (setting === undefined) return undefined;
    const is = value === undefined ? undefined : setting.read(value);
    if (value !== undefined && is === undefined) return undefined;
    if (typeof is === 'object') return new Problem(is);
    return this.#change(name, is, { isLocal, where, tag: 'SET' });
  }

  #reset(name: string, text: string, where: Where): Judged | undefined {
    if (settableParameters.has(name)) return new ForServer([text]);
    return refusedSettings.has(name)
      ? this.#change(name, undefined, { isLocal: false, where, tag: 'RESET' })
      : undefined;
  }

  #setConfig(
    { name, value, isLocal }: Extract<SettingWords, { kind: 'setConfig' }>,
    where: Where,
  ): Judged | undefined {
    if (value === undefined) return undefined;
    if (settableParameters.has(name)) {
      const verb = isLocal ? 'SET LOCAL' : 'SET';
      return new ForServer([setText(verb, name, value), `SHOW ${quotedName(name)}`]);
    }
    const is = refusedSettings.get(name)?.read(value);
    if (is === undefined) return undefined;
    if (typeof is === 'object') return new Problem(is);
    return this.#change(name, is, { isLocal, where, tag: 'SELECT 1' }, { name: 'set_config', value: is });
  }

  #change(
    name: string,
    value: string | undefined,
    { isLocal, where, tag }: { readonly isLocal: boolean; readonly where: Where; readonly tag: string },
    column?: SwallowedStatement['column'],
  ): SwallowedStatement {
    const { kept, swallowed } = this.#parts;
    this.#ahead.set(name, value ?? kept.atStart(name));
    const run = (): void => {
      swallowed(name);
      kept.set(name, value, isLocal);
    };
    const isLost = isLocal && where === Where.outside && tag === 'SET';
    return new SwallowedStatement(tag, run, column, isLost ? localOutside : undefined);
  }

  #show(name: string, text: string): Judged {
    const value = this.#ahead.has(name) ? this.#ahead.get(name) : this.#parts.kept.get(name);
    if (value === undefined) return new ForServer([text]);
    const column = { name: refusedSettings.get(name)?.name ?? name, value };
    return new SwallowedStatement('SHOW', () => {}, column);
  }

  /** Setting the role to the session's own user changes nothing. */
  #role(role: string | undefined, isLocal: boolean, where: Where): Judged | undefined {
    const isSame = role === undefined || role === this.#parts.user;
    return isSame && !isLocal && where !== Where.inTransaction ? this.#nothing('role', 'SET') : undefined;
  }

  #characteristics(words: Extract<SettingWords, { kind: 'transaction' }>): Judged | undefined {
    const { isolation = anyLevel, isReadOnly, isDeferrable } = words;
    const isAsItIs = isolation === anyLevel && isReadOnly !== true && isDeferrable !== true;
    return isAsItIs ? this.#nothing('session characteristics', 'SET') : undefined;
  }

  /** DSQL accepts READ ONLY only with BEGIN, which is not sent yet. */
  #transaction(words: Extract<SettingWords, { kind: 'transaction' }>, where: Where): Judged | undefined {
    const { isolation = anyLevel, isReadOnly, isDeferrable } = words;
    if (where !== Where.begun || isolation !== anyLevel || isDeferrable === true) return undefined;
    return new SwallowedStatement('SET', () => {
      this.#parts.swallowed('transaction');
      if (isReadOnly !== undefined) this.#parts.setReadOnly(isReadOnly);
    });
  }

  #nothing(what: string, tag: string): SwallowedStatement {
    return new SwallowedStatement(tag, () => this.#parts.swallowed(what));
  }
}
