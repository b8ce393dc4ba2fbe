/** Drizzle's own transactions, retried. Drizzle itself is not imported: the types say what is used of it. */
import { TransactionMisuseError } from '../transaction/errors.js';
import type { AdapterOptions } from './adapter-options.js';
import { RetriedWork } from './retried-work.js';
import { retrying, withoutRetries } from './retrying-methods.js';

type Work = (transaction: object) => Promise<unknown>;

interface Transacting {
  transaction(work: Work, config?: unknown): Promise<unknown>;
}

/** A Drizzle database for PostgreSQL: `drizzle-orm/node-postgres`, `drizzle-orm/postgres-js` and others. */
export interface DrizzleDatabase {
  // biome-ignore lint/suspicious/noExplicitAny: parameters of any database must fit
  transaction(work: (transaction: any) => Promise<any>, config?: any): Promise<any>;
  readonly $client?: unknown;
}

/**
 * A Drizzle database whose `transaction(work)` is run again after a conflict. All else is as before. A transaction within a
 * transaction is a savepoint, which DSQL does not have: it is refused.
 *
 * @example
 * ```ts
 * import { type DrizzleDatabase, retryDrizzle } from 'headgate/dsql';
 *
 * function withRetries<Database extends DrizzleDatabase>(db: Database): Database {
 *   return retryDrizzle(db, { operation: 'orders', maxAttempts: 30 });
 * }
 * ```
 */
export function retryDrizzle<Database extends DrizzleDatabase>(
  db: Database,
  options: AdapterOptions = {},
): Database {
  const { $client: client } = db;
  const hasClient = (typeof client === 'object' || typeof client === 'function') && client !== null;
  const retried = new RetriedWork(hasClient ? client : db, options);
  const plain = withoutRetries((db as Transacting).transaction);
  const begin: Transacting['transaction'] = (work, config) => plain.call(db, work, config);
  const transaction: Transacting['transaction'] = (work, config) =>
    retried.run(
      (inside) => begin(inside, config),
      (tx: object) => work(withTransaction(tx, refuseSavepoint)),
    );
  return withTransaction(db, retrying(transaction, begin));
}

/** Everything of the object, but for this method. Drizzle's classes have no private fields. */
function withTransaction<T extends object>(object: T, transaction: Transacting['transaction']): T {
  return new Proxy(object, {
    get: (target, key, receiver) =>
      key === 'transaction' ? transaction : Reflect.get(target, key, receiver),
  });
}

async function refuseSavepoint(): Promise<never> {
  throw new TransactionMisuseError('savepoint');
}
