/** Errors of messages: the other side sent something that is none, or we were asked to build one. */
import { HeadgateError } from '../kernel/errors.js';
import { SqlState } from './sql-states.js';

/**
 * The other side broke the protocol. The connection can't be used any further: the start of the next message is unknown.
 * The text has kinds and numbers, never the contents of a message, which may be secret.
 */
export class ProtocolViolationError extends HeadgateError {
  /** The code for an ErrorResponse to a client. */
  readonly sqlState = SqlState.protocolViolation;

  constructor(message: string) {
    super('HG_PROTOCOL_VIOLATION', message);
  }
}

/** A message can't be built from the given values: it has no place in the protocol. Nothing of it was written. */
export class UnsendableMessageError extends HeadgateError {
  constructor(message: string) {
    super('HG_UNSENDABLE_MESSAGE', message);
  }
}
