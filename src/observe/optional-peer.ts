/** Loads a package only when it is needed, so that programs with a replacement can do without it. */
import { ownRequire } from '../runtime/own-location.js';
import { PeerMissingError } from './errors.js';

/** `instead`: the alternative without that package, for the error. */
export function loadPeer<T>(name: string, instead: string): T {
  try {
    return ownRequire(name) as T;
  } catch (error) {
    throw new PeerMissingError(name, instead, error);
  }
}
