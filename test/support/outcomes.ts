// Small questions that tests ask of promises, callbacks and the event loop.
import assert from 'node:assert/strict';
import type { EventEmitter } from 'node:events';

/** The error that a promise rejects with; a promise that resolves instead is a failure of the test. */
export async function rejectionOf(promise: PromiseLike<unknown>): Promise<Error> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    assert(error instanceof Error, `rejected with something that is not an error: ${String(error)}`);
    return error;
  }
  throw new Error(`expected a rejection, but the promise resolved with ${String(value)}`);
}

/** The arguments with which the given function calls its callback. */
export function callbackOf(start: (callback: (...args: unknown[]) => void) => unknown): Promise<unknown[]> {
  return new Promise((resolve) => {
    start((...args) => resolve(args));
  });
}

/** The arguments of the next event of that name, even where the emitter reports an error before it. */
export function eventOf(emitter: EventEmitter, name: string): Promise<unknown[]> {
  return new Promise((resolve) => {
    emitter.once(name, (...args: unknown[]) => resolve(args));
  });
}

/** Resolves after everything that is due in the present turn of the event loop has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export interface Watched<T> {
  readonly promise: Promise<T>;
  readonly settled: boolean;
}

/** A promise together with whether it has settled. */
export function watch<T>(promise: PromiseLike<T>): Watched<T> {
  const watched = {
    settled: false,
    promise: Promise.resolve(promise).finally(() => {
      watched.settled = true;
    }),
  };
  // The test looks at the promise itself; until then, a rejection is not "unhandled".
  watched.promise.catch(() => {});
  return watched;
}
