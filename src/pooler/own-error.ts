/** Errors of the pooler's own, in Headgate's words and in PgBouncer's, which some programs and log rules go by. */
import type { ErrorFields } from '../wire/error-fields.js';

/** How PgBouncer says the same. */
export interface PgBouncerWords {
  readonly message: string;
  /** Where it is not the one that PgBouncer has for nearly everything. */
  readonly code?: string;
}

export interface OwnError extends ErrorFields {
  readonly pgbouncer?: PgBouncerWords;
}

/** What a client is told. */
export type Wording = (error: ErrorFields) => ErrorFields;

export type Compatibility = 'headgate' | 'pgbouncer';

/** The SQLSTATE of PgBouncer's errors: protocol_violation. */
export const pgbouncerState = '08P01';

export const wordings: Readonly<Record<Compatibility, Wording>> = {
  headgate: (error) => error,
  // It ends the connection of whoever it tells an error.
  pgbouncer: (error) => {
    const { pgbouncer } = error as OwnError;
    if (pgbouncer === undefined) return error;
    const severity = error.severity === 'NOTICE' ? 'NOTICE' : 'FATAL';
    return { severity, code: pgbouncer.code ?? pgbouncerState, message: pgbouncer.message };
  },
};

/** The error, with PgBouncer's words for it. */
export function alsoAs(message: string, error: ErrorFields, code?: string): OwnError {
  return { ...error, pgbouncer: code === undefined ? { message } : { message, code } };
}
