/** Promises of the class that the program has set for its pool. */

export interface PromisingPool {
  readonly Promise: PromiseConstructor;
}

export function asPromiseOf<T>({ Promise: Own }: PromisingPool, promise: Promise<T>): Promise<T> {
  return Own === Promise ? promise : Own.resolve(promise);
}
