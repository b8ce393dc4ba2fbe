/** What the console answers when it does not do what it was asked. The session goes on. */
import { HeadgateError } from '../../kernel/errors.js';
import { nearest } from '../../kernel/nearest.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { ConfigError, describeProblem } from '../config/config-problems.js';
import { pgbouncerState } from '../own-error.js';

export class ConsoleError extends HeadgateError {
  readonly sqlState: string;
  readonly hint: string | undefined;
  /** How PgBouncer says it. */
  readonly asPgBouncer: string | undefined;

  constructor(sqlState: SqlState, message: string, hint?: string, asPgBouncer?: string) {
    super('HG_CONSOLE', message);
    this.sqlState = sqlState;
    this.hint = hint;
    this.asPgBouncer = asPgBouncer;
  }
}

/** As PgBouncer's console answers. `text`: what was asked. */
export function pgbouncerFieldsOf(error: unknown, text: string): ErrorFields {
  if (error instanceof ConfigError) {
    const message = 'RELOAD failed, see logs for additional details';
    return { severity: 'ERROR', code: SqlState.configFileError, message };
  }
  if (!(error instanceof ConsoleError)) return errorFieldsOf(error);
  const isSyntax = error.sqlState === SqlState.syntaxError;
  const usual = isSyntax ? `invalid command '${text}', use SHOW HELP;` : error.message;
  return { severity: 'ERROR', code: pgbouncerState, message: error.asPgBouncer ?? usual };
}

/** No name is longer, and the way to a longer word is not worth the search. */
const longestName = 64;

/** `; did you mean that?`, where one of the names is close enough. */
export function guess(given: string, names: Iterable<string>, before = ''): string {
  const found = given.length > longestName ? undefined : nearest(given, names);
  return found === undefined ? '' : `; did you mean ${before}${found}?`;
}

/** For the client. Errors of others may say what it must not know: they are named, and what they say is for the log. */
export function errorFieldsOf(error: unknown): ErrorFields {
  if (error instanceof ConsoleError) {
    const { sqlState: code, message, hint } = error;
    return { severity: 'ERROR', code, message, ...(hint === undefined ? {} : { hint }) };
  }
  if (error instanceof ConfigError) {
    const [first, ...others] = error.problems.map(describeProblem);
    return {
      severity: 'ERROR',
      code: SqlState.configFileError,
      message: `the configuration stays as it is: ${first ?? error.message}`,
      ...(others.length > 0 ? { detail: others.join('\n') } : {}),
    };
  }
  if (error instanceof HeadgateError)
    return { severity: 'ERROR', code: SqlState.internalError, message: `${error.message} (${error.code})` };
  return {
    severity: 'ERROR',
    code: SqlState.internalError,
    message: 'the command failed',
    hint: 'The log of the pooler says why.',
  };
}
