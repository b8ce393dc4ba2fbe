/** Errors of `pool.query()` when connections are shared by pipelining, and of clients that come back in a transaction. */
import { HeadgateError } from '../kernel/errors.js';

/** A query sent through `pool.query()` left a transaction open. It was rolled back: none of its changes were kept. */
export class TransactionLeftOpenError extends HeadgateError {
  constructor() {
    super(
      'HG_TRANSACTION_LEFT_OPEN',
      'The query left a transaction open on a connection that others share; it was rolled back. ' +
        'Take a client with pool.connect() for a transaction.',
    );
  }
}

/** A query sent through `pool.query()` changed or used its session, which lasted no longer than the query. */
export class SessionChangedError extends HeadgateError {
  /** The statement's command, such as `SET` or `LISTEN`. */
  readonly command: string;
  /** The query's result: it was executed. */
  readonly result: unknown;

  constructor(command: string, result: unknown) {
    super(
      'HG_SESSION_CHANGED',
      `${command} was executed, but the session that it changed or used is gone: with pipelining, connections are ` +
        "shared. Take a client with pool.connect(), or set up every connection with the pool's onConnect.",
    );
    this.command = command;
    this.result = result;
  }
}

/** Condemns a client whose query succeeded. */
export const sessionMayHaveChanged = 'its session may have changed';

/** True for an error that the server has sent. */
export function isFromServer(error: unknown): boolean {
  return typeof (error as { readonly severity?: unknown } | null | undefined)?.severity === 'string';
}
