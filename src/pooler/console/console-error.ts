/** What the console answers when it does not do what it was asked. The session goes on. */
import { HeadgateError } from '../../kernel/errors.js';
import { nearest } from '../../kernel/nearest.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { ConfigError, describeProblem } from '../config/config-problems.js';

export class ConsoleError extends HeadgateError {
  readonly sqlState: string;
  readonly hint: string | undefined;

  constructor(sqlState: SqlState, message: string, hint?: string) {
    super('HG_CONSOLE', message);
    this.sqlState = sqlState;
    this.hint = hint;
  }
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
