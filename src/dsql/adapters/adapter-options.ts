/** Options that the adapters for ORMs have in common. */
import type { RetryOptions } from '../transaction/retry-options.js';

/** How the transactions of an ORM are retried. */
export interface AdapterOptions extends RetryOptions {
  /**
   * The pool below the ORM: its transactions share one retry budget, and its metrics count them. Default for Drizzle: the
   * pool that it was made with; for the others, the ORM's object stands in for it.
   */
  readonly pool?: object | undefined;
  /**
   * True if the transaction was committed; asked when the answer to its COMMIT was lost. The transaction is over by then: ask
   * with the ORM's object itself.
   */
  readonly verify?: ((signal: AbortSignal) => Promise<boolean>) | undefined;
}
