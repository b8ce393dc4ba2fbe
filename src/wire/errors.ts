/** Errors of messages: the other side sent something that is none, or we were asked to build one. */
import { HeadgateError } from '../kernel/errors.js';
import { SqlState } from './sql-states.js';

/**
 * The other side broke the protocol. The connection can't be used any further: where the next message begins is no
 * longer known. Its text has kinds and numbers, never what a message held, since that may be secret.
 */
export class ProtocolViolationError extends HeadgateError {
  /** The code for an ErrorResponse to a client. */
  readonly sqlState = SqlState.protocolViolation;

  constructor(message: string) {
    super('HG_PROTOCOL_VIOLATION', message);
  }
}

/** A message can't be built from what was given: it has no place in the protocol. Nothing of it was written. */
export class UnsendableMessageError extends HeadgateError {
  constructor(message: string) {
    super('HG_UNSENDABLE_MESSAGE', message);
  }
}
