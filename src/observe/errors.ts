/** Errors of observing pools. */
import { HeadgateError } from '../kernel/errors.js';

/** A package that Headgate does not bring along could not be loaded. */
export class PeerMissingError extends HeadgateError {
  constructor(name: string, instead: string, cause: unknown) {
    super('HG_PEER_MISSING', `${name} could not be loaded: install it, or ${instead}.`, { cause });
  }
}
