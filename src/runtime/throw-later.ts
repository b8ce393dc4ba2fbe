/** Errors of a program's own function are the program's, but must not stop the pool or pg half-way. */
import { soon } from './soon.js';

/** Throws an uncaught exception, as if from outside the current call. */
export function throwLater(error: unknown): void {
  soon(() => {
    throw error;
  });
}
