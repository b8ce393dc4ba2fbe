// Kysely, Drizzle and Prisma behind one small interface, each with its transactions retried.
import { PrismaPg } from '@prisma/adapter-pg';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { Kysely, PostgresDialect } from 'kysely';
import { PrismaClient as GeneratedClient } from '../../../examples/prisma/generated/client.js';
import {
  type AdapterOptions,
  type DsqlPool,
  retryDrizzle,
  retryKysely,
  retryPrisma,
} from '../../../src/dsql.js';

/** Statements inside a transaction of the ORM. */
export interface Inside {
  read(id: number): Promise<number>;
  write(id: number, balance: number): Promise<void>;
  /** A transaction inside the transaction, by the ORM's own means. */
  nest(): Promise<unknown>;
}

export interface RetriedOrm {
  transaction<T>(work: (inside: Inside) => Promise<T>): Promise<T>;
  /** What the ORM says about a key that is there already. */
  readonly duplicate: object;
  insert(id: number): Promise<unknown>;
}

export const table = 'headgate_prisma_account';
const account = pgTable(table, {
  id: integer('id').primaryKey(),
  owner: text('owner').notNull(),
  balance: integer('balance').notNull(),
});

interface Tables {
  readonly [table]: { readonly id: number; readonly owner: string; readonly balance: number };
}

function kyselyOn(pool: DsqlPool, options: AdapterOptions): RetriedOrm {
  const plain = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  const db = retryKysely(plain, { pool, ...options });
  return {
    transaction: (work) =>
      db.transaction().execute((trx) =>
        work({
          read: async (id) => {
            const query = trx.selectFrom(table).select('balance').where('id', '=', id);
            return (await query.executeTakeFirstOrThrow()).balance;
          },
          write: async (id, balance) => {
            await trx.updateTable(table).set({ balance }).where('id', '=', id).execute();
          },
          nest: async () => trx.transaction().execute(async () => {}),
        }),
      ),
    insert: (id) =>
      db
        .transaction()
        .execute((trx) => trx.insertInto(table).values({ id, owner: 'x', balance: 0 }).execute()),
    duplicate: { code: '23505' },
  };
}

function drizzleOn(pool: DsqlPool, options: AdapterOptions): RetriedOrm {
  const db = retryDrizzle(drizzle(pool), options);
  return {
    transaction: (work) =>
      db.transaction((tx) =>
        work({
          read: async (id) => {
            const [row] = await tx.select().from(account).where(eq(account.id, id));
            return row?.balance ?? Number.NaN;
          },
          write: async (id, balance) => {
            await tx.update(account).set({ balance }).where(eq(account.id, id));
          },
          nest: () => tx.transaction(async () => {}),
        }),
      ),
    insert: (id) => db.transaction((tx) => tx.insert(account).values({ id, owner: 'x', balance: 0 })),
    duplicate: { cause: { code: '23505' } },
  };
}

/** What the tests use of Prisma; the example's client comes without its types. */
export interface PrismaQueries {
  readonly account: {
    findUniqueOrThrow(query: object): PromiseLike<{ balance: number }>;
    update(query: object): PromiseLike<{ balance: number }>;
    create(query: object): PromiseLike<unknown>;
  };
  $transaction<T>(work: (queries: PrismaQueries) => Promise<T>, options?: object): Promise<T>;
  $transaction(batch: PromiseLike<unknown>[]): Promise<unknown[]>;
}

export interface PrismaTest extends PrismaQueries {
  // biome-ignore lint/suspicious/noExplicitAny: as Prisma declares it, without the types of a schema
  $extends(extension: any): any;
  $disconnect(): Promise<void>;
}

const PrismaClient = GeneratedClient as unknown as new (options: { adapter: PrismaPg }) => PrismaTest;

export function newPrisma(pool: DsqlPool): PrismaTest {
  return new PrismaClient({ adapter: new PrismaPg(pool) });
}

function prismaOn(pool: DsqlPool, options: AdapterOptions): RetriedOrm {
  const prisma = retryPrisma(newPrisma(pool), { pool, ...options });
  return {
    transaction: (work) =>
      prisma.$transaction((tx) =>
        work({
          read: async (id) => (await tx.account.findUniqueOrThrow({ where: { id } })).balance,
          write: async (id, balance) => {
            await tx.account.update({ where: { id }, data: { balance } });
          },
          nest: () => tx.$transaction(async () => {}),
        }),
      ),
    insert: (id) =>
      prisma.$transaction(async (tx) => tx.account.create({ data: { id, owner: 'x', balance: 0 } })),
    duplicate: { code: 'P2002' },
  };
}

export const orms: readonly [string, (pool: DsqlPool, options: AdapterOptions) => RetriedOrm][] = [
  ['Kysely', kyselyOn],
  ['Drizzle', drizzleOn],
  ['Prisma', prismaOn],
];
