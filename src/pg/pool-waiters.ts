/** The callers that wait in the queue of the drop-in: for a client, or to run one query. */
import type { PooledConnection } from '../core/pooled-connection.js';
import { Waiter } from '../core/waiters.js';
import type { PgConnection } from './pg-connection.js';

type Granted = (pooled: PooledConnection<PgConnection>) => void;
type Failed = (error: Error) => void;

/** A caller made of two functions. */
export class PoolWaiter extends Waiter<PgConnection> {
  readonly #onGranted: Granted;
  readonly #onFailed: Failed;
  /** Undoes what was set up for the wait, such as the listener on a signal. */
  onSettled: (() => void) | undefined = undefined;
  holder: unknown = undefined;

  constructor(onGranted: Granted, onFailed: Failed) {
    super();
    this.#onGranted = onGranted;
    this.#onFailed = onFailed;
  }

  granted(pooled: PooledConnection<PgConnection>): void {
    pooled.holder = this.holder;
    this.onSettled?.();
    this.#onGranted(pooled);
  }

  failed(error: Error): void {
    this.onSettled?.();
    this.#onFailed(error);
  }
}
