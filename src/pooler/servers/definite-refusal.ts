/** Failures to open a server connection that repeat until somebody changes something. */
import { isAccessDenied } from '../../wire/dsql-refusals.js';
import { SqlState } from '../../wire/sql-states.js';
import { ServerAuthenticationError, type ServerAuthenticationFailure } from '../auth/errors.js';
import { BackendRefusedError } from '../errors.js';

/** SQLSTATE class of failed logins: the role or its credentials were not accepted. */
const authorizationClass = '28';
const otherStates: readonly string[] = [SqlState.invalidCatalogName, SqlState.insufficientPrivilege];
const ownReasons: readonly ServerAuthenticationFailure[] = [
  'no_credentials',
  'wrong_kind',
  'other_secret',
  'unencrypted',
  'refused',
];

/** True for a permanent refusal: waiters for such a connection need not wait for the next attempt. */
export function isDefiniteRefusal(error: Error): boolean {
  if (error instanceof ServerAuthenticationError) return ownReasons.includes(error.reason);
  if (!(error instanceof BackendRefusedError)) return false;
  const { sqlState, fields } = error;
  if (isAccessDenied(fields.message, fields.hint)) return true;
  return sqlState.startsWith(authorizationClass) || otherStates.includes(sqlState);
}
