/** Kysely's own transactions, retried. Kysely itself is not imported: the types say what is used of it. */
import type { AdapterOptions } from './adapter-options.js';
import { RetriedWork } from './retried-work.js';
import { retrying, withoutRetries } from './retrying-methods.js';
import { withOverrides } from './rewrapping-proxy.js';

interface TransactionBuilder {
  execute(work: (transaction: never) => Promise<unknown>): Promise<unknown>;
}

/** A `Kysely<DB>` of any version that has `transaction().execute()`. */
export interface KyselyDatabase {
  transaction(): unknown;
  readonly isTransaction: boolean;
}

/**
 * A `Kysely` whose `transaction().execute(work)` is run again after a conflict. All else is as before; so are `startTransaction()`
 * and transactions within `connection()`, which are not retried.
 *
 * @example
 * ```ts
 * import { type DsqlPool, type KyselyDatabase, retryKysely } from 'headgate/dsql';
 *
 * function withRetries<Database extends KyselyDatabase>(db: Database, pool: DsqlPool): Database {
 *   return retryKysely(db, { pool, maxAttempts: 30 });
 * }
 * ```
 */
export function retryKysely<Database extends KyselyDatabase>(
  db: Database,
  options: AdapterOptions = {},
): Database {
  const retried = new RetriedWork(db, options);
  return withOverrides(db, (database) => {
    const plain = withoutRetries(database.transaction);
    const begin = (): TransactionBuilder => plain.call(database) as TransactionBuilder;
    const transaction = (): TransactionBuilder =>
      withOverrides(begin(), (builder) => ({
        execute: (work) =>
          retried.run((inside) => builder.execute(inside as never), work as (transaction: never) => unknown),
      }));
    return { transaction: retrying(transaction, begin) };
  });
}
