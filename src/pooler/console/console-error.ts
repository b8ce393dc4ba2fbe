/** Errors of the console. The session goes on after them. */
import { HeadgateError } from '../../kernel/errors.js';
import { nearest } from '../../kernel/nearest.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { ConfigError, describeProblem } from '../config/config-problems.js';
import { pgbouncerState } from '../own-error.js';

export class ConsoleError extends HeadgateError {
  readonly sqlState: string;
  readonly hint: string | undefined;
  /** PgBouncer's text for the error. */
  readonly asPgBouncer: string | undefined;

  constructor(sqlState: SqlState, message: string, hint?: string, asPgBouncer?: string) {
    super('HG_CONSOLE', message);
    this.sqlState = sqlState;
    this.hint = hint;
    this.asPgBouncer = asPgBouncer;
  }
}

/** Error fields as PgBouncer's console sends them. `text`: the query. */
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

/** Limit of names; for a longer word, no guess is attempted. */
const longestName = 64;

/** `; did you mean that?`, if one of the names is close enough. */
export function guess(given: string, names: Iterable<string>, before = ''): string {
  const found = given.length > longestName ? undefined : nearest(given, names);
  return found === undefined ? '' : `; did you mean ${before}${found}?`;
}

/** Error fields for the client. Texts of internal errors may contain secrets: only their names are sent, and the texts are logged. */
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
