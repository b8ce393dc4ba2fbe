/** Prisma's own transactions, retried. Prisma itself is not imported: the types say what is used of it. */
import type { AdapterOptions } from './adapter-options.js';
import { RetriedWork } from './retried-work.js';
import { retrying, withoutRetries } from './retrying-methods.js';

/** A `PrismaClient` of any schema, extended or not. */
export interface PrismaDatabase {
  // biome-ignore lint/suspicious/noExplicitAny: Prisma's types are generated for each schema
  readonly $transaction: any;
  // biome-ignore lint/suspicious/noExplicitAny: Prisma's types are generated for each schema
  readonly $extends: any;
}

type Transaction = (this: unknown, work: unknown, options?: unknown) => Promise<unknown>;

/**
 * A `PrismaClient` whose `$transaction` is run again after a conflict, with a function and with an array. A client extension: all
 * else is as before, further extensions can be added, and `$on` is called before, as Prisma has it for extended clients.
 *
 * @example
 * ```ts
 * import { type DsqlPool, type PrismaDatabase, retryPrisma } from 'headgate/dsql';
 *
 * function withRetries<Client extends PrismaDatabase>(prisma: Client, pool: DsqlPool): Client {
 *   return retryPrisma(prisma, { pool, maxAttempts: 30 });
 * }
 * ```
 */
export function retryPrisma<Client extends PrismaDatabase>(
  prisma: Client,
  options: AdapterOptions = {},
): Client {
  const retried = new RetriedWork(prisma, options);
  const original = withoutRetries(prisma.$transaction as Transaction);
  const $transaction: Transaction = function (work, transactionOptions) {
    // The client that is asked: it has the extensions that were added later, too.
    const begin = (given: unknown): Promise<unknown> => original.call(this, given, transactionOptions);
    return typeof work === 'function'
      ? retried.run(begin, work as (transaction: unknown) => unknown)
      : retried.runBatch(() => begin(work));
  };
  return prisma.$extends({
    name: 'headgate',
    client: { $transaction: retrying($transaction, original) },
  }) as Client;
}
