/** PostgreSQL's words for a value that a setting can't have. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';

export function invalid(message: string, hint?: string): ErrorFields {
  const error = { severity: 'ERROR', code: SqlState.invalidParameterValue, message } as const;
  return hint === undefined ? error : { ...error, hint };
}
