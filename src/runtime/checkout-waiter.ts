/** A caller of `PromisePool.acquire()` in the queue. */
import type { ConnectionPool } from '../core/connection-pool.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import { contextForMessages } from './channels.js';
import { Checkout } from './checkout.js';
import { PromisedWaiter } from './promised-waiter.js';

export class CheckoutWaiter<C> extends PromisedWaiter<C> {
  readonly context = contextForMessages();
  readonly #engine: ConnectionPool<C>;
  readonly #holder: unknown;

  constructor(engine: ConnectionPool<C>, holder: unknown) {
    super();
    this.#engine = engine;
    this.#holder = holder;
  }

  granted(pooled: PooledConnection<C>): void {
    if (this.#holder !== undefined) pooled.holder = this.#holder;
    this.resolve(new Checkout(this.#engine, pooled));
  }
}
