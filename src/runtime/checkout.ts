/** One checkout of one connection: held by a caller until it releases the connection. */
import type { ConnectionPool } from '../core/connection-pool.js';
import type { PooledConnection } from '../core/pooled-connection.js';

/**
 * One checkout of one connection. Release it exactly once.
 *
 * @example
 * ```ts
 * const checkout = await pool.acquire();
 * try {
 *   await checkout.connection.doSomething();
 *   checkout.release();
 * } catch (error) {
 *   checkout.release(error); // the connection is closed, not used again
 * }
 *
 * await using other = await pool.acquire(); // or: given back at the end of the block
 * ```
 */
export class Checkout<C> {
  readonly #engine: ConnectionPool<C>;
  readonly #pooled: PooledConnection<C>;
  readonly #generation: number;

  /** @internal */
  constructor(engine: ConnectionPool<C>, pooled: PooledConnection<C>) {
    this.#engine = engine;
    this.#pooled = pooled;
    this.#generation = pooled.generation;
  }

  /** The connection, to be used until it is released. */
  get connection(): C {
    return this.#pooled.connection;
  }

  /**
   * Releases the connection. With an error (anything but undefined) the connection is closed instead of being used
   * again. A second call throws a `DoubleReleaseError` and does nothing else.
   */
  release(error?: unknown): void {
    this.#engine.release(this.#pooled, this.#generation, error);
  }

  /** Gives the connection back to be closed. */
  destroy(): void {
    this.#engine.release(this.#pooled, this.#generation, true);
  }

  /** @internal */
  isOf(engine: unknown): boolean {
    return this.#engine === engine;
  }

  /** Releases the connection, if that has not happened yet. */
  [Symbol.dispose](): void {
    if (this.#pooled.state === 'in_use' && this.#pooled.generation === this.#generation) this.release();
  }

  /** Releases the connection, if that has not happened yet. */
  async [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]();
  }
}
