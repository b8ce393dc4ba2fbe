/** What goes wrong when somebody proves who they are. No text has anything secret in it. */
import { HeadgateError } from '../../kernel/errors.js';
import { SqlState } from '../../wire/sql-states.js';

/** The other side sent a SASL message that is none, or wants something that there is not. Its text never quotes the message. */
export class SaslMessageError extends HeadgateError {
  /** What a client is told in an ErrorResponse. */
  readonly sqlState: SqlState;

  constructor(message: string, sqlState: SqlState = SqlState.protocolViolation) {
    super('HG_SASL_MESSAGE', message);
    this.sqlState = sqlState;
  }
}

/**
 * Why we could not prove to the server who we are.
 *
 * - `no_credentials`: it asks for something, and there is nothing.
 * - `wrong_kind`: what is there can't answer what it asks for.
 * - `other_secret`: the keys are of a secret that is not the server's.
 * - `unencrypted`: a password would have gone over the network for all to read.
 * - `token_unavailable`: there was no token.
 * - `not_the_server`: it could not prove that it knows the password. It may be someone else.
 * - `refused`: it ended the exchange.
 * - `protocol`: it said something that makes no sense here.
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

/** DISABLE on the console holds for the database that auth_query is asked in. */
export class AuthDatabaseDisabledError extends HeadgateError {
  constructor(database: string) {
    super('HG_AUTH_DATABASE_DISABLED', `authentication database "${database}" is disabled`);
  }
}

/** The secret of a user could not be looked up, so that nobody can tell whether a login is right. `cause` says why. */
export class SecretLookupError extends HeadgateError {
  constructor(cause: unknown) {
    super('HG_SECRET_LOOKUP', 'The secret of a user could not be looked up.', { cause });
  }
}
