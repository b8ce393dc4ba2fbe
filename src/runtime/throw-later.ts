/** Errors of a program's own function are the program's, but must not stop the pool or pg half-way. */

/** Becomes an uncaught exception, as if nobody had been in between. */
export function throwLater(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
