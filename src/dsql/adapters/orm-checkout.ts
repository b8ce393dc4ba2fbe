/**
 * The connection that an ORM takes from a `DsqlPool` for one attempt. ORMs give a connection back in any state: with a transaction
 * that could not be rolled back, or not at all when BEGIN failed. They do not look at the answer to COMMIT, which may be ROLLBACK.
 * The pool finds the attempt by its asynchronous context, and hands the checkout over.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { isInTransaction, type PgClient } from '../../pg/client.js';

interface CheckedOutClient extends PgClient {
  release: (error?: unknown) => void;
}

type Query = (this: unknown, ...args: unknown[]) => unknown;

const scopes = new AsyncLocalStorage<OrmCheckout>();

export class OrmCheckout {
  readonly #pool: object;
  readonly #signal: AbortSignal;
  #isTaken = false;
  #giveBack: ((error?: unknown) => void) | undefined;
  #isOver = false;
  /** The transaction has begun: from here on, a checkout is the program's own. */
  isComplete = false;
  /** The first error of a statement. */
  firstError: unknown;
  /** COMMIT was answered with ROLLBACK, because a statement had failed. */
  isRolledBack = false;

  constructor(pool: object, signal: AbortSignal) {
    this.#pool = pool;
    this.#signal = signal;
  }

  /** Runs one attempt of the ORM. Ends with no connection held. */
  async run<T>(attempt: () => Promise<T>): Promise<T> {
    this.#signal.addEventListener('abort', this.#discard, { once: true });
    try {
      return await scopes.run(this, attempt);
    } finally {
      this.#isOver = true;
      this.#signal.removeEventListener('abort', this.#discard);
      this.#discard();
    }
  }

  wants(pool: object): boolean {
    return pool === this.#pool && !this.#isTaken && !this.isComplete && !this.#isOver;
  }

  take<Client extends CheckedOutClient>(client: Client): Client {
    const { release } = client;
    this.#isTaken = true;
    const restoreQuery = this.#watchQueries(client);
    this.#giveBack = (error) => {
      this.#giveBack = undefined;
      restoreQuery();
      const reason = error || isInTransaction(client) || undefined;
      release(reason);
    };
    client.release = (error) => this.#giveBack?.(error);
    // The attempt has ended while it waited for the connection.
    if (this.#isOver || this.#signal.aborted) this.#discard();
    return client;
  }

  /** Closes the connection if the ORM still has it. */
  readonly #discard = (): void => {
    this.#giveBack?.(new Error('The transaction has ended before its connection was given back.'));
  };

  /** Returns the function that ends it. */
  #watchQueries(client: PgClient): () => void {
    const own = Object.getOwnPropertyDescriptor(client, 'query');
    const query = client.query as Query;
    const value: Query = (...args) => {
      const answer = query.apply(client, args);
      // Listens beside the ORM: whether the answer is handled is the ORM's affair.
      if (answer instanceof Promise) answer.then(this.#answered, this.#failed);
      return answer;
    };
    Object.defineProperty(client, 'query', { value, configurable: true, writable: true });
    return () => {
      if (own === undefined) delete client.query;
      else Object.defineProperty(client, 'query', own);
    };
  }

  readonly #answered = (result: { readonly command?: unknown } | undefined): void => {
    if (result?.command === 'ROLLBACK' && this.firstError !== undefined) this.isRolledBack = true;
  };

  readonly #failed = (error: unknown): void => {
    this.firstError ??= error;
  };
}

/** The attempt that a checkout of this pool, asked for now, belongs to. */
export function checkoutScope(pool: object): OrmCheckout | undefined {
  const scope = scopes.getStore();
  return scope?.wants(pool) ? scope : undefined;
}
