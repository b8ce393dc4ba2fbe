/** Errors of `pool.query()` when connections are shared by pipelining, and what a release with an error says of its client. */
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

/**
 * How long the server may take to close a client that is given back with this. A server ends an idle session within
 * milliseconds; one that has gone silent must not hold up the next caller.
 */
export function patienceFor(error: unknown): number {
  if (isAnswer(error)) return Number.POSITIVE_INFINITY;
  return typeof error === 'object' ? patienceAfterFailureMs : patienceMs;
}

const patienceMs = 250;
const patienceAfterFailureMs = 50;

/** The server has said it: then it is there, and will hear a goodbye. */
function isAnswer(error: unknown): boolean {
  if (error === sessionMayHaveChanged || isOwn(error)) return true;
  return typeof error === 'object' && typeof (error as { severity?: unknown } | null)?.severity === 'string';
}

function isOwn(error: unknown): boolean {
  return error instanceof SessionChangedError || error instanceof TransactionLeftOpenError;
}
