/**
 * The callers in the queue of the drop-in: for a client as a promise, or with a callback. Answers run in the async
 * context of their call, whichever release or dial serves them.
 */
import type { ConnectionPool } from '../core/connection-pool.js';
import { AcquireAbortedError } from '../core/errors.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import { Waiter } from '../core/waiters.js';
import { onAbort } from '../runtime/abort-listeners.js';
import { CallerContext } from '../runtime/async-context.js';
import { PromisedWaiter } from '../runtime/promised-waiter.js';
import type { Wait } from '../runtime/waiting.js';
import type { PgClient } from './client.js';
import type { PgConnection } from './pg-connection.js';

type Pooled = PooledConnection<PgConnection>;

/** A caller of `connect()`. */
export class ClientWaiter extends PromisedWaiter<PgConnection> {
  readonly context = new CallerContext();
  readonly #checkOut: (pooled: Pooled) => PgClient;
  readonly #holder: unknown;

  constructor(checkOut: (pooled: Pooled) => PgClient, holder: unknown) {
    super();
    this.#checkOut = checkOut;
    this.#holder = holder;
  }

  granted(pooled: Pooled): void {
    if (this.#holder !== undefined) pooled.holder = this.#holder;
    this.resolve(this.context.runInAsyncScope(this.#checkOut, undefined, pooled));
  }
}

/** A caller of `connect(callback)` or of `query()`. */
export class CallbackWaiter extends Waiter<PgConnection> {
  readonly context = new CallerContext();
  readonly #onGranted: (pooled: Pooled) => void;
  readonly #onFailed: (error: Error) => void;
  readonly #holder: unknown;
  /** Removes what was set up for the wait. */
  onSettled: (() => void) | undefined = undefined;

  constructor(onGranted: (pooled: Pooled) => void, onFailed: (error: Error) => void, holder: unknown) {
    super();
    this.#onGranted = onGranted;
    this.#onFailed = onFailed;
    this.#holder = holder;
  }

  granted(pooled: Pooled): void {
    if (this.#holder !== undefined) pooled.holder = this.#holder;
    this.onSettled?.();
    this.context.runInAsyncScope(this.#onGranted, undefined, pooled);
  }

  failed(error: Error): void {
    this.onSettled?.();
    this.context.runInAsyncScope(this.#onFailed, undefined, error);
  }
}

/** Puts a caller into the queue, until it is served, its time is up, or its signal is aborted. */
export function enqueue(
  engine: ConnectionPool<PgConnection>,
  waiter: CallbackWaiter,
  { timeoutMs, signal }: Wait,
): void {
  const leave = (): void => {
    engine.abort(waiter, new AcquireAbortedError(signal?.reason));
  };
  if (signal !== undefined) waiter.onSettled = onAbort(signal, leave);
  engine.enqueue(waiter, timeoutMs);
  if (signal?.aborted) leave();
}
