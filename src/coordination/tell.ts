/** Calls a holder. What it throws is its own mistake, and must not stop whoever happened to make the call. */
import { throwLater } from '../runtime/throw-later.js';

/** An error becomes an uncaught exception, as if nobody had been in between. */
export function tell(call: () => void): void {
  try {
    call();
  } catch (error) {
    throwLater(error);
  }
}
