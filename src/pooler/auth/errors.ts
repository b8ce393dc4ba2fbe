/** Errors of authentication. No text contains anything secret. */
import { HeadgateError } from '../../kernel/errors.js';
import { SqlState } from '../../wire/sql-states.js';

/** The other side sent a malformed SASL message, or requests something unsupported. The text never quotes the message. */
export class SaslMessageError extends HeadgateError {
  /** SQLSTATE for the client's ErrorResponse. */
  readonly sqlState: SqlState;

  constructor(message: string, sqlState: SqlState = SqlState.protocolViolation) {
    super('HG_SASL_MESSAGE', message);
    this.sqlState = sqlState;
  }
}

/**
 * Why the pooler's login at a server failed.
 *
 * - `no_credentials`: the server asks for credentials, and there are none.
 * - `wrong_kind`: the credentials can't answer the server's request.
 * - `other_secret`: the keys belong to a secret that is not the server's.
 * - `unencrypted`: a password would have been sent in clear text without TLS.
 * - `token_unavailable`: there was no token.
 * - `not_the_server`: the server could not prove that it knows the password. It may be an impostor.
 * - `refused`: the server ended the exchange.
 * - `protocol`: the server sent a message that is not valid here.
 */
export type ServerAuthenticationFailure =
  | 'no_credentials'
  | 'wrong_kind'
  | 'other_secret'
  | 'unencrypted'
  | 'token_unavailable'
  | 'not_the_server'
  | 'refused'
  | 'protocol';

/** The login at the server ended before the server decided; the connection must be closed. */
export class ServerAuthenticationError extends HeadgateError {
  readonly reason: ServerAuthenticationFailure;

  constructor(reason: ServerAuthenticationFailure, message: string, options?: ErrorOptions) {
    super('HG_SERVER_AUTHENTICATION', message, options);
    this.reason = reason;
  }
}

/** DISABLE on the console also applies to the database that auth_query runs in. */
export class AuthDatabaseDisabledError extends HeadgateError {
  constructor(database: string) {
    super('HG_AUTH_DATABASE_DISABLED', `authentication database "${database}" is disabled`);
  }
}

/** The secret of a user could not be looked up, so the login can't be checked. `cause` says why. */
export class SecretLookupError extends HeadgateError {
  constructor(cause: unknown) {
    super('HG_SECRET_LOOKUP', 'The secret of a user could not be looked up.', { cause });
  }
}
