/** DSQL's answers that are not about a statement's text. */

import type { Refusal } from '../../dialect/judgement.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import type { Conflict } from '../conflicts/transaction.js';
import { ServerError } from '../postgres/link.js';

/** A statement has failed: the fields of its ErrorResponse. */
export class StatementFailed extends Error {
  readonly fields: ErrorFields;

  constructor(fields: ErrorFields) {
    super(fields.message);
    this.fields = fields;
  }
}

export function errorOf({ code, message, detail, hint, position }: Refusal): ErrorFields {
  return {
    severity: 'ERROR',
    code,
    message,
    ...(detail === undefined ? {} : { detail }),
    ...(hint === undefined ? {} : { hint }),
    ...(position === undefined ? {} : { position: String(position) }),
  };
}

export function fail(code: string, message: string, detail?: string): StatementFailed {
  return new StatementFailed(errorOf({ code, message, detail }));
}

/** The error of a statement with this text before it: positions count from the beginning of the whole text. */
export function movedBy({ fields }: StatementFailed, before: string): StatementFailed {
  const { position } = fields;
  if (position === undefined) return new StatementFailed(fields);
  return new StatementFailed({ ...fields, position: String(Number(position) + [...before].length) });
}

const conflictErrors: Readonly<Record<Conflict, ErrorFields>> = {
  data: errorOf({ code: '40001', message: 'change conflicts with another transaction (OC000)' }),
  schema: errorOf({ code: '40001', message: 'schema has been updated by another transaction (OC001)' }),
};

export function sizeExceeded(bytes: number, most: number): StatementFailed {
  const mb = (value: number): number => Math.ceil(value / 1_048_576);
  return fail(
    '54000',
    `transaction size limit ${mb(most)}mb exceeded`,
    `Current transaction size ${mb(bytes)}mb > ${mb(most)}mb`,
  );
}

/** PostgreSQL's answer to a statement that meets a lock. */
export const lockRefused = '55P03';

export function conflictFailure(conflict: Conflict): StatementFailed {
  return new StatementFailed(conflictErrors[conflict]);
}

/** PostgreSQL's own errors that DSQL has other words for. */
export function translate(fields: ErrorFields): ErrorFields {
  if (fields.code === '53400' && fields.message.includes('temp_file_limit'))
    return errorOf({
      code: '54000',
      message: 'query requires more than allowed temp space of 131072 KB to execute',
    });
  if (fields.code === '54000' && fields.message.startsWith('index row')) return keyTooLarge;
  // A table that an uncommitted DDL statement has locked: in DSQL the statement runs, or finds the schema changed.
  if (fields.code === lockRefused) return conflictErrors.schema;
  if (fields.code === '40001' || fields.code === '40P01') return conflictErrors.data;
  return fields;
}

export const keyTooLarge: ErrorFields = errorOf({ code: '54000', message: 'key size too large' });

export const abortedTransaction: ErrorFields = errorOf({
  code: '25P02',
  message: 'current transaction is aborted, commands ignored until end of transaction block',
});

export const serverUnavailable: ErrorFields = errorOf({ code: 'XX000', message: 'server unavailable' });

/** The answer to a client for which PostgreSQL opens no session. */
export function fatalOf(error: unknown): ErrorFields {
  if (!(error instanceof ServerError) && !(error instanceof StatementFailed))
    return { ...serverUnavailable, severity: 'FATAL' };
  const { fields } = error;
  if (fields.code !== '53300') return { ...fields, severity: 'FATAL' };
  return {
    severity: 'FATAL',
    code: '53300',
    message: 'Unable to accept connection, too many open connections.',
    hint: 'Each session that runs statements takes a process of PostgreSQL here. Raise maxSessions of the stand-in.',
  };
}
