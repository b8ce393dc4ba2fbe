/** PostgreSQL's error for an invalid value of a setting. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';

export function invalid(message: string, hint?: string): ErrorFields {
  const error = { severity: 'ERROR', code: SqlState.invalidParameterValue, message } as const;
  return hint === undefined ? error : { ...error, hint };
}
