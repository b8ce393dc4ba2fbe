/** A caller in the queue who holds a promise. */
import type { ConnectionPool } from '../core/connection-pool.js';
import { AcquireAbortedError } from '../core/errors.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import { Waiter } from '../core/waiters.js';
import { Lease } from './lease.js';

type Resolve<C> = (lease: Lease<C>) => void;
type Reject = (error: Error) => void;

export class PromiseWaiter<C> extends Waiter<C> {
  readonly #engine: ConnectionPool<C>;
  readonly #holder: unknown;
  readonly #resolve: Resolve<C>;
  readonly #reject: Reject;
  #stopListening: (() => void) | undefined;

  constructor(engine: ConnectionPool<C>, holder: unknown, resolve: Resolve<C>, reject: Reject) {
    super();
    this.#engine = engine;
    this.#holder = holder;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#stopListening = undefined;
  }

  /** Leaves the queue when the signal fires. */
  leaveOn(signal: AbortSignal): void {
    const leave = (): void => {
      this.#engine.abort(this, new AcquireAbortedError(signal.reason));
    };
    signal.addEventListener('abort', leave, { once: true });
    // A long-lived signal must not collect listeners.
    this.#stopListening = () => signal.removeEventListener('abort', leave);
  }

  granted(pooled: PooledConnection<C>): void {
    pooled.holder = this.#holder;
    this.#stopListening?.();
    this.#resolve(new Lease(this.#engine, pooled));
  }

  failed(error: Error): void {
    this.#stopListening?.();
    this.#reject(error);
  }
}

// A promise's two functions, without a closure for each promise: the executor runs before `new Promise` returns.
let resolveOfNewest: (value: never) => void;
let rejectOfNewest: Reject;
const keepFunctions = (resolve: (value: never) => void, reject: Reject): void => {
  resolveOfNewest = resolve;
  rejectOfNewest = reject;
};

/** Puts a new waiter into the queue; the promise settles with its one outcome. */
export function enqueuePromise<C>(
  engine: ConnectionPool<C>,
  holder: unknown,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Lease<C>> {
  if (signal?.aborted) return Promise.reject(new AcquireAbortedError(signal.reason));
  const promise = new Promise<Lease<C>>(keepFunctions as (resolve: Resolve<C>, reject: Reject) => void);
  const waiter = new PromiseWaiter(engine, holder, resolveOfNewest as Resolve<C>, rejectOfNewest);
  if (signal !== undefined) waiter.leaveOn(signal);
  engine.enqueue(waiter, timeoutMs);
  return promise;
}
