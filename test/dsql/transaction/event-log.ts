// Writes down what a listener of transactions is told.
import type { TransactionListener } from '../../../src/dsql/transaction/listener.js';

type Name = keyof TransactionListener;

export class EventLog implements Required<TransactionListener> {
  readonly calls: [name: Name, ...args: unknown[]][] = [];
  readonly attemptBegan = this.#writer('attemptBegan');
  readonly conflict = this.#writer('conflict');
  readonly retryScheduled = this.#writer('retryScheduled');
  readonly exhausted = this.#writer('exhausted');
  readonly committed = this.#writer('committed');
  readonly failed = this.#writer('failed');

  get names(): Name[] {
    return this.calls.map(([name]) => name);
  }

  /** The arguments of each call of that name. */
  of(name: Name): unknown[][] {
    return this.calls.filter(([called]) => called === name).map(([, ...args]) => args);
  }

  #writer(name: Name) {
    return (...args: unknown[]): void => {
      this.calls.push([name, ...args]);
    };
  }
}
