/** Errors between the pooler and a server. */
import { HeadgateError } from '../kernel/errors.js';
import type { ErrorFields } from '../wire/error-fields.js';

/** The server has refused the pooler's login, with an error. */
export class BackendRefusedError extends HeadgateError {
  /** The server's error, for the client. */
  readonly fields: ErrorFields;
  readonly sqlState: string;

  constructor(fields: ErrorFields) {
    super('HG_BACKEND_REFUSED', `The server refused the connection: ${fields.message} (${fields.code}).`);
    this.fields = fields;
    this.sqlState = fields.code;
  }
}

/** The server has refused the login with this token; it may accept another one. */
export class TokenRefusedError extends BackendRefusedError {}

/** The login ended before the server had decided. */
export class LoginEndedError extends HeadgateError {
  constructor(why: string) {
    super('HG_LOGIN_ENDED', `The login at the server was not finished: ${why}.`);
  }
}

/** One of the pooler's own queries failed on a server, with this error. */
export class OwnQueryError extends HeadgateError {
  readonly fields: ErrorFields;

  constructor(what: string, fields: ErrorFields) {
    super('HG_OWN_QUERY', `${what} failed: ${fields.message} (${fields.code}).`);
    this.fields = fields;
  }
}

/** The server does not satisfy `target_session_attrs`. */
export class WrongServerError extends HeadgateError {
  constructor(wanted: string, found: string) {
    super('HG_WRONG_SERVER', `A server that is ${wanted} was wanted, and this one is ${found}.`);
  }
}

/** The configuration requires something that is not possible at present. */
export class ServingError extends HeadgateError {
  constructor(message: string, cause?: unknown) {
    super('HG_SERVING', message, cause === undefined ? undefined : { cause });
  }
}
