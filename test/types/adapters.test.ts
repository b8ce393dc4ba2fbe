// What the compiler says about the adapters for ORMs: each gives back the type that it was given, and nothing of it is lost.

import type { drizzle, NodePgDatabase } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { Kysely, Transaction } from 'kysely';
import { expectTypeOf, test } from 'vitest';
import { type DsqlPool, retryDrizzle, retryKysely, retryPrisma } from '../../src/dsql.js';

/** Compiled, and not run. */
function compiled(_check: (pool: DsqlPool) => unknown): void {}

interface Tables {
  account: { id: number; balance: number };
}

const account = pgTable('account', { id: integer('id').primaryKey(), balance: integer('balance').notNull() });
const schema = { account };

test('an adapter keeps the tables of Kysely, and the type of what a transaction returns', () => {
  compiled(async (pool) => {
    const db = retryKysely({} as Kysely<Tables>, { pool });
    expectTypeOf(db).toEqualTypeOf<Kysely<Tables>>();
    const balance = await db.transaction().execute(async (trx) => {
      expectTypeOf(trx).toEqualTypeOf<Transaction<Tables>>();
      return (await trx.selectFrom('account').select('balance').executeTakeFirstOrThrow()).balance;
    });
    expectTypeOf(balance).toEqualTypeOf<number>();
    // @ts-expect-error no such table
    db.selectFrom('accounts');
  });
});

test('an adapter keeps the schema of Drizzle, on node-postgres and on postgres.js', () => {
  compiled(async () => {
    const db = retryDrizzle({} as ReturnType<typeof drizzle<typeof schema>>);
    expectTypeOf(db).toExtend<NodePgDatabase<typeof schema>>();
    const rows = await db.transaction((tx) => tx.query.account.findMany());
    expectTypeOf(rows).toEqualTypeOf<{ id: number; balance: number }[]>();
    expectTypeOf(retryDrizzle({} as PostgresJsDatabase)).toEqualTypeOf<PostgresJsDatabase>();
    // @ts-expect-error no such option
    retryDrizzle(db, { attempts: 3 });
  });
});

test('an adapter keeps the client of Prisma, as it was generated', () => {
  interface Client {
    account: { count(): Promise<number> };
    $extends(extension: object): unknown;
    $transaction<R>(work: (tx: Omit<Client, '$extends'>) => Promise<R>): Promise<R>;
  }
  compiled(async (pool) => {
    const prisma = retryPrisma({} as Client, { pool });
    expectTypeOf(prisma).toEqualTypeOf<Client>();
    expectTypeOf(await prisma.$transaction((tx) => tx.account.count())).toEqualTypeOf<number>();
    // @ts-expect-error not a Prisma client
    retryPrisma({ account: {} });
  });
});
