/** A caller in the queue with a promise. */
import type { ConnectionPool } from '../core/connection-pool.js';
import { AcquireAbortedError } from '../core/errors.js';
import { Waiter } from '../core/waiters.js';
import { onAbort } from './abort-listeners.js';

type Resolve = (value: unknown) => void;

// A promise's function without a closure for each promise: the executor runs before `new Promise` returns.
let resolveOfNewest: Resolve | undefined;
const keepResolve = (resolve: Resolve): void => {
  resolveOfNewest = resolve;
};

export abstract class PromisedWaiter<C> extends Waiter<C> {
  #resolve: Resolve | undefined;
  #stopListening: (() => void) | undefined;

  /** Puts this waiter into the queue; the promise settles with its one outcome. */
  wait<T>(engine: ConnectionPool<C>, timeoutMs: number, signal: AbortSignal | undefined): Promise<T> {
    const promise = new Promise<T>(keepResolve as (resolve: (value: T) => void) => void);
    this.#resolve = resolveOfNewest;
    resolveOfNewest = undefined;
    if (signal?.aborted) this.failed(new AcquireAbortedError(signal.reason));
    else {
      if (signal !== undefined) this.#leaveOn(signal, engine);
      engine.enqueue(this, timeoutMs);
    }
    return promise;
  }

  failed(error: Error): void {
    this.resolve(rejectionOf(error));
  }

  protected resolve(value: unknown): void {
    this.#stopListening?.();
    this.#resolve?.(value);
  }

  #leaveOn(signal: AbortSignal, engine: ConnectionPool<C>): void {
    this.#stopListening = onAbort(signal, () => {
      engine.abort(this, new AcquireAbortedError(signal.reason));
    });
  }
}

/**
 * A rejection to resolve a promise with, whose error shows the code that awaits that promise: the stack of an error from
 * a socket or a timer says nothing. The stack is captured one step later, when the promise is linked to this one.
 */
export function rejectionOf(error: Error): Promise<never> {
  return Promise.resolve()
    .then(() => undefined)
    .then(() => {
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    });
}
