/** Loads a package only when it is needed, so that who brings something in its place can do without. */
import { createRequire } from 'node:module';
import { PeerMissingError } from './errors.js';

const require = createRequire(import.meta.url);

/** `instead`: what can be done without that package, for the error. */
export function loadPeer<T>(name: string, instead: string): T {
  try {
    return require(name) as T;
  } catch (error) {
    throw new PeerMissingError(name, instead, error);
  }
}
