// What only one of the ORMs has: Prisma's arrays and extensions, Kysely's copies, Drizzle on postgres.js.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js';
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  CommitOutcomeUnknownError,
  DsqlPool,
  retryDrizzle,
  retryKysely,
  retryPrisma,
  TransactionMisuseError,
  TransactionRetriesExhaustedError,
} from '../../../src/dsql.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { newPrisma, type PrismaTest, table } from './orms.js';

const quick = { backoffBase: 1, backoffCap: 1, outageBackoffBase: 1, outageBackoffCap: 1 };
const conflicts = { conflictShare: 1 };
const update = { where: { id: 1 }, data: { balance: { increment: 1 } } };

let dsql: TestDsql;
let pool: DsqlPool;
beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run(
    `CREATE TABLE ${table} (id int PRIMARY KEY, owner text NOT NULL, balance int NOT NULL)`,
    `INSERT INTO ${table} VALUES (1, 'alice', 0)`,
  );
});
afterAll(() => dsql.stop());
beforeEach(async () => {
  const { connection, credentials } = dsql;
  pool = new DsqlPool({
    ...connection,
    credentials,
    max: 2,
    warmup: false,
    keeper: false,
    env: {},
  });
  await pool.query(`UPDATE ${table} SET balance = 0`);
});
afterEach(async () => {
  dsql.setFaults({});
  expect(pool.stats().inUse).toBe(0);
  await pool.end();
  expect(dsql.troubles).toEqual([]);
});

/** Every COMMIT conflicts until the first retry; returns how many retries there were. */
async function countRetries(work: () => Promise<unknown>): Promise<number> {
  let retries = 0;
  const retried = (): void => {
    retries++;
    dsql.setFaults({});
  };
  subscribe('headgate:transaction:retry', retried);
  dsql.setFaults(conflicts);
  try {
    await work();
  } finally {
    unsubscribe('headgate:transaction:retry', retried);
  }
  return retries;
}

async function balance(): Promise<number> {
  return (await pool.query(`SELECT balance FROM ${table}`)).rows[0].balance;
}

function retriedPrisma(options: object = {}): PrismaTest {
  return retryPrisma(newPrisma(pool), { pool, ...quick, ...options });
}

test('an array of Prisma is sent again after a conflict, and its results are those of the last attempt', async () => {
  const prisma = retriedPrisma();
  let results: unknown;
  const retries = await countRetries(async () => {
    const batch = [prisma.account.update(update), prisma.account.update(update)];
    results = await prisma.$transaction(batch);
  });
  expect([retries, results]).toMatchObject([1, [{ balance: 1 }, { balance: 2 }]]);
});

test('arrays of Prisma that are sent at once do not get into each other', async () => {
  const prisma = retriedPrisma();
  await prisma.$transaction([prisma.account.update(update)]);
  // Prisma sends both in the asynchronous context of the first.
  const create = (id: number) => prisma.account.create({ data: { id, owner: 'bob', balance: 0 } });
  const ids = Array.from({ length: 50 }, (_, n) => n + 100);
  await Promise.all([prisma.$transaction([create(99)]), prisma.$transaction(ids.map(create))]);
  await pool.query(`DELETE FROM ${table} WHERE id >= 99`);
  expect(pool.stats().totals.discarded.released_with_error).toBe(0);
});

test('an array of Prisma whose answer was lost is not sent again, unless it is idempotent', async () => {
  const lost = { unavailableAfterCommit: 1 };
  dsql.setFaults(lost);
  const once = retriedPrisma();
  const error = await rejectionOf(once.$transaction([once.account.update(update)]));
  expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
  dsql.setFaults({});
  expect(await balance()).toBe(1);

  const again = retriedPrisma({ idempotent: true, maxAttempts: 2 });
  const set = again.account.update({ where: { id: 1 }, data: { balance: 5 } });
  dsql.setFaults(lost);
  expect(await rejectionOf(again.$transaction([set]))).toBeInstanceOf(CommitOutcomeUnknownError);
  dsql.setFaults({});
  expect(await balance()).toBe(5);
});

test('an array of Prisma that got no connection was not committed, and is sent again', async () => {
  dsql.setFaults({ refuseConnections: true });
  const { connection, credentials } = dsql;
  const few = { max: 1, warmup: false, keeper: false } as const;
  const empty = new DsqlPool({ ...connection, credentials, ...few, env: {} });
  const prisma = retryPrisma(newPrisma(empty), { pool: empty, ...quick, maxAttempts: 2 });
  const error = await rejectionOf(prisma.$transaction([prisma.account.update(update)]));
  expect(error).toBeInstanceOf(TransactionRetriesExhaustedError);
  await empty.end();
});

test('a transaction that Prisma has timed out was not committed, and is not run again', async () => {
  let attempts = 0;
  const late = retriedPrisma().$transaction(
    async (tx) => {
      attempts++;
      await tx.account.update(update);
      await new Promise((resolve) => setTimeout(resolve, 100));
    },
    { timeout: 20 },
  );
  expect(await rejectionOf(late)).toMatchObject({ code: 'P2028' });
  expect([attempts, await balance()]).toEqual([1, 0]);
});

test('a transaction of Prisma has the extensions that were added before and after the adapter, and retries once', async () => {
  const before = { client: { $before: () => 'before' } };
  const after = { client: { $after: () => 'after' } };
  interface Extended extends PrismaTest {
    $before(): string;
    $after(): string;
  }
  const plain = newPrisma(pool).$extends(before) as PrismaTest;
  const prisma = retryPrisma(plain, { pool, ...quick }).$extends(after) as Extended;
  const seen: string[] = [];
  const retries = await countRetries(() =>
    prisma.$transaction(async (tx) => {
      seen.push((tx as Extended).$before(), (tx as Extended).$after());
      await tx.account.update(update);
    }),
  );
  expect([retries, seen]).toEqual([1, ['before', 'after', 'before', 'after']]);
});

test('the adapter can be given to $extends', async () => {
  const prisma = newPrisma(pool).$extends((client: PrismaTest) =>
    retryPrisma(client, { pool, ...quick }),
  ) as PrismaTest;
  expect(await countRetries(() => prisma.$transaction(async (tx) => tx.account.update(update)))).toBe(1);
});

test('copies of a Kysely database retry as it does, and its builders keep their settings', async () => {
  const plain = new Kysely<Record<string, { id: number; balance: number }>>({
    dialect: new PostgresDialect({ pool }),
  });
  const db = retryKysely(plain, { pool, ...quick })
    .withPlugin(new CamelCasePlugin())
    .withoutPlugins();
  const modes: unknown[] = [];
  const retries = await countRetries(() =>
    db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read write')
      .execute(async (trx) => {
        modes.push(trx.isTransaction, db.isTransaction);
        await trx
          .updateTable(table)
          .set((build) => ({ balance: build('balance', '+', 1) }))
          .execute();
      }),
  );
  expect([retries, modes, await balance()]).toEqual([1, [true, false, true, false], 1]);
  expect(db).toBeInstanceOf(Kysely);
});

test('an adapter on an adapter has its own options, and does not retry twice', async () => {
  dsql.setFaults(conflicts);
  const few = { pool, ...quick, maxAttempts: 2 };
  const many = { pool, ...quick, maxAttempts: 3 };
  const kysely = new Kysely<Record<string, { balance: number }>>({ dialect: new PostgresDialect({ pool }) });
  const prisma = retryPrisma(retryPrisma(newPrisma(pool), few).$extends({}) as PrismaTest, many);
  const transactions = [
    () =>
      retryKysely(retryKysely(kysely, few), many)
        .transaction()
        .execute((trx) => trx.updateTable(table).set({ balance: 1 }).execute()),
    () =>
      retryDrizzle(retryDrizzle(drizzle(pool), few), many).transaction((tx) =>
        tx.execute(sql.raw(`UPDATE ${table} SET balance = 1`)),
      ),
    () => prisma.$transaction(async (tx) => tx.account.update(update)),
  ];
  for (const transaction of transactions) {
    const error = await rejectionOf(transaction());
    expect(error).toMatchObject({ attempts: 3, cause: expect.anything() });
    expect(error.message).toContain('the last error: change conflicts with another transaction (OC000)');
  }
});

test('a transaction of an ORM inside one of the pool is refused, and the other way round', async () => {
  const db = retryDrizzle(drizzle(pool), quick);
  const inside = [
    () => pool.transaction(() => db.transaction(async () => {})),
    () => db.transaction(() => pool.transaction(async () => {})),
  ];
  for (const transaction of inside)
    expect(await rejectionOf(transaction())).toMatchObject({ misuse: 'nested' });
});

test('a savepoint of Drizzle is refused with the reason', async () => {
  const db = retryDrizzle(drizzle(pool), quick);
  const error = await rejectionOf(db.transaction((tx) => tx.transaction(async () => {})));
  expect(error).toBeInstanceOf(TransactionMisuseError);
  expect(error).toMatchObject({ misuse: 'savepoint' });
});

test('Drizzle on postgres.js retries, too', async () => {
  const client = postgres({
    host: dsql.endpoint,
    port: dsql.port,
    user: 'admin',
    database: 'postgres',
    pass: () => dsql.token(),
    ssl: { ca: dsql.ca, servername: dsql.endpoint },
    socket: () => dsql.connection.stream().connect(dsql.port),
    max: 2,
  } as unknown as Parameters<typeof postgres>[0]);
  const db = retryDrizzle(drizzleOnPostgresJs(client), quick);
  const add = sql.raw(`UPDATE ${table} SET balance = balance + 1`);
  const retries = await countRetries(() => db.transaction((tx) => tx.execute(add)));
  expect([retries, await balance()]).toEqual([1, 1]);
  dsql.setFaults({ unavailableAfterCommit: 1 });
  const error = await rejectionOf(db.transaction((tx) => tx.execute(add)));
  expect(error).toBeInstanceOf(CommitOutcomeUnknownError);
  await client.end();
});

test('wrong options are refused when the adapter is made', () => {
  expect(() => retryDrizzle(drizzle(pool), { maxAttempts: 0 })).toThrow(/maxAttempts/);
  expect(() => retryDrizzle(drizzle(pool), { verify: 5 as never })).toThrow(/verify/);
  expect(() => retryDrizzle(drizzle(pool), { attempts: 3 } as never)).toThrow(/attempts/);
});
