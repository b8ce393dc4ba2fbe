/** Calls a holder. An exception is the holder's own bug, and must not stop the code that made the call. */
import { throwLater } from '../runtime/throw-later.js';

/** An error becomes an uncaught exception, as if thrown outside this call. */
export function tell(call: () => void): void {
  try {
    call();
  } catch (error) {
    throwLater(error);
  }
}
