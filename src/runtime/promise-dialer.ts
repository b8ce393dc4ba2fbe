/**
 * Opens, closes and checks connections through functions that return promises, and answers the engine. The functions run
 * in no caller's async context: a connection lives for longer than the call for which it was opened, and nothing is known
 * of it by which the store of that call could be taken off it.
 */
import { inspect } from 'node:util';
import type { ConnectionPool } from '../core/connection-pool.js';
import type { Dial, Dialer } from '../core/dialer.js';
import { BadConnectionError } from '../core/errors.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import { withoutContext } from './async-context.js';

/** The functions that handle one kind of connection. */
export interface ConnectionFunctions<C> {
  /** Opens a connection, in no caller's async context. `signal` fires when the dial is given up; a connection returned after that is closed. */
  connect(context: { readonly signal: AbortSignal }): Promise<C> | C;
  /** Closes a connection in good order. It counts against the limit until this is done. */
  close?(connection: C): unknown;
  /** Closes a connection at once, whatever it is doing. */
  destroy?(connection: C): void;
  /** Finds out whether a connection works: false or an error means that it does not. */
  check?(connection: C): Promise<boolean | void> | boolean | void;
}

export class PromiseDialer<C> implements Dialer<C> {
  readonly #functions: ConnectionFunctions<C>;
  readonly #aborts = new Map<Dial<C>, AbortController>();
  #engine!: ConnectionPool<C>;

  constructor(functions: ConnectionFunctions<C>) {
    this.#functions = functions;
  }

  /** The engine and its dialer need each other; the dialer comes first. */
  answerTo(engine: ConnectionPool<C>): void {
    this.#engine = engine;
  }

  dial(dial: Dial<C>): void {
    const abort = new AbortController();
    this.#aborts.set(dial, abort);
    attempt(() => this.#functions.connect({ signal: abort.signal })).then(
      (connection) => {
        this.#aborts.delete(dial);
        if (connection === undefined || connection === null) {
          this.#engine.dialFailed(dial, new BadConnectionError(connection));
        } else {
          this.#engine.dialed(dial, connection);
        }
      },
      (error: unknown) => {
        this.#aborts.delete(dial);
        this.#engine.dialFailed(dial, asError(error));
      },
    );
  }

  abandon(dial: Dial<C>): void {
    withoutContext((abort) => abort?.abort(), this.#aborts.get(dial));
    this.#aborts.delete(dial);
  }

  close(pooled: PooledConnection<C>): void {
    const closed = (): void => this.#engine.closed(pooled);
    attempt(() => this.#functions.close?.(pooled.connection)).then(closed, () => {
      // A connection that can't be closed in good order is destroyed.
      this.destroy(pooled);
      closed();
    });
  }

  destroy(pooled: PooledConnection<C>): void {
    try {
      withoutContext(() => this.#functions.destroy?.(pooled.connection), undefined);
    } catch {
      // No more can be done for it, and no caller waits for the outcome.
    }
  }

  check(pooled: PooledConnection<C>): void {
    attempt(() => this.#functions.check?.(pooled.connection)).then(
      (answer) =>
        this.#engine.checked(pooled, answer === false ? new Error('The check answered no.') : undefined),
      (error: unknown) => this.#engine.checked(pooled, asError(error)),
    );
  }
}

/** Calls a function that may throw, return a value or return a promise; always returns a promise. */
function attempt<T>(call: () => Promise<T> | T): Promise<T> {
  return withoutContext(async () => call(), undefined);
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new Error(`Something that is no error was thrown: ${inspect(thrown)}`);
}
