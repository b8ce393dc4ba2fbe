/** What can go wrong between the pooler and a server. */
import { HeadgateError } from '../kernel/errors.js';
import type { ErrorFields } from '../wire/error-fields.js';

/** The server did not let the pooler in, and said why. */
export class BackendRefusedError extends HeadgateError {
  /** What the server said, for the client. */
  readonly fields: ErrorFields;
  readonly sqlState: string;

  constructor(fields: ErrorFields) {
    super('HG_BACKEND_REFUSED', `The server refused the connection: ${fields.message} (${fields.code}).`);
    this.fields = fields;
    this.sqlState = fields.code;
  }
}

/** The server did not let the pooler in with this token; it may with another one. */
export class TokenRefusedError extends BackendRefusedError {}

/** The login at the server ended before the server had decided. */
export class LoginEndedError extends HeadgateError {
  constructor(why: string) {
    super('HG_LOGIN_ENDED', `The login at the server was not finished: ${why}.`);
  }
}

/** A query of the pooler's own failed on a server, with what the server said. */
export class OwnQueryError extends HeadgateError {
  readonly fields: ErrorFields;

  constructor(what: string, fields: ErrorFields) {
    super('HG_OWN_QUERY', `${what} failed: ${fields.message} (${fields.code}).`);
    this.fields = fields;
  }
}

/** A server answers, but it is not one of those that are wanted: `target_session_attrs`. */
export class WrongServerError extends HeadgateError {
  constructor(wanted: string, found: string) {
    super('HG_WRONG_SERVER', `A server that is ${wanted} was wanted, and this one is ${found}.`);
  }
}

/** The configuration says something that can't be done at the moment. */
export class ServingError extends HeadgateError {
  constructor(message: string, cause?: unknown) {
    super('HG_SERVING', message, cause === undefined ? undefined : { cause });
  }
}
