/** Loads a package only when it is needed, so that who brings something in its place can do without. */
import { ownRequire } from '../runtime/own-location.js';
import { PeerMissingError } from './errors.js';

/** `instead`: what can be done without that package, for the error. */
export function loadPeer<T>(name: string, instead: string): T {
  try {
    return ownRequire(name) as T;
  } catch (error) {
    throw new PeerMissingError(name, instead, error);
  }
}
