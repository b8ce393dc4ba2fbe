/** Errors of the pooler's own, in Headgate's words and in PgBouncer's, which some programs and log rules rely on. */
import type { ErrorFields } from '../wire/error-fields.js';

/** PgBouncer's words for the same error. */
export interface PgBouncerWords {
  readonly message: string;
  /** Set where it differs from the SQLSTATE of nearly all PgBouncer errors. */
  readonly code?: string;
}

export interface OwnError extends ErrorFields {
  readonly pgbouncer?: PgBouncerWords;
}

/** Chooses the words of an error for the client. */
export type Wording = (error: ErrorFields) => ErrorFields;

export type Compatibility = 'headgate' | 'pgbouncer';

/** The SQLSTATE of PgBouncer's errors: protocol_violation. */
export const pgbouncerState = '08P01';

export const wordings: Readonly<Record<Compatibility, Wording>> = {
  headgate: (error) => error,
  // PgBouncer ends the connection after every error.
  pgbouncer: (error) => {
    const { pgbouncer } = error as OwnError;
    if (pgbouncer === undefined) return error;
    const severity = error.severity === 'NOTICE' ? 'NOTICE' : 'FATAL';
    return { severity, code: pgbouncer.code ?? pgbouncerState, message: pgbouncer.message };
  },
};

/** Adds PgBouncer's words to an error. */
export function alsoAs(message: string, error: ErrorFields, code?: string): OwnError {
  return { ...error, pgbouncer: code === undefined ? { message } : { message, code } };
}
