/** State that the transactions of one pool share: the retry budget, operations and their gates, listeners. */
import { TransactionPublisher } from '../../runtime/transaction-channels.js';
import { ContentionGate } from './contention-gate.js';
import { TransactionListeners } from './listener.js';
import { OperationNames } from './operation-names.js';
import { RetryBudget } from './retry-budget.js';
import type { RetryContext } from './retry-transaction.js';

export class PoolTransactions {
  readonly budget = new RetryBudget();
  readonly operations = new OperationNames();
  readonly listeners = new TransactionListeners();
  /** By label, of which there are few. */
  readonly #gates = new Map<string, ContentionGate>();

  /** For `retryTransaction`. */
  context(operation: string | undefined): RetryContext {
    const label = this.operations.label(operation);
    return { budget: this.budget, gate: this.gate(label), listener: this.listeners, operation: label };
  }

  gate(label: string): ContentionGate {
    let gate = this.#gates.get(label);
    if (gate === undefined) {
      gate = new ContentionGate();
      this.#gates.set(label, gate);
    }
    return gate;
  }
}

const byPool = new WeakMap<object, PoolTransactions>();

/** Made once for each pool, or for each object of an ORM. */
export function transactionsOf(pool: object): PoolTransactions {
  let transactions = byPool.get(pool);
  if (transactions === undefined) {
    transactions = new PoolTransactions();
    transactions.listeners.add(new TransactionPublisher(pool, nameOf(pool)));
    byPool.set(pool, transactions);
  }
  return transactions;
}

function nameOf(pool: object): string {
  const { name } = pool as { readonly name?: unknown };
  return typeof name === 'string' ? name : 'pool';
}
