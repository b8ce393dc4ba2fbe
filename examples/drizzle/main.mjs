// Drizzle on a Headgate pool: transactions, savepoints and a limit that holds.
import { asc, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { Pool } from 'headgate';

const pool = new Pool({
  connectionString: process.env.DATABASE_URL,
  max: 4,
  application_name: 'headgate-drizzle',
});
const db = drizzle(pool);

const accounts = pgTable('headgate_drizzle_account', {
  owner: text('owner').primaryKey(),
  balance: integer('balance').notNull(),
});

await db.execute(sql`drop table if exists ${accounts}`);
await db.execute(sql`create table ${accounts} (owner text primary key, balance integer not null)`);
await db.insert(accounts).values([
  { owner: 'alice', balance: 100 },
  { owner: 'bob', balance: 100 },
]);

async function transfer(from, to, amount) {
  await db.transaction(async (transaction) => {
    const [payer] = await transaction
      .update(accounts)
      .set({ balance: sql`${accounts.balance} - ${amount}` })
      .where(eq(accounts.owner, from))
      .returning();
    if (payer.balance < 0) throw new Error(`${from} has not got ${amount}`);
    await transaction
      .update(accounts)
      .set({ balance: sql`${accounts.balance} + ${amount}` })
      .where(eq(accounts.owner, to));
  });
}

async function balances() {
  const all = await db.select().from(accounts).orderBy(asc(accounts.owner));
  return all.map(({ owner, balance }) => `${owner} ${balance}`).join(', ');
}

await transfer('alice', 'bob', 30);
console.log(`committed: ${await balances()}`);

await transfer('alice', 'bob', 1000).catch((error) => console.log(`rolled back: ${error.message}`));
console.log(`unchanged: ${await balances()}`);

// A transaction within a transaction is a savepoint: it can fail alone.
await db.transaction(async (outer) => {
  await outer.insert(accounts).values({ owner: 'carol', balance: 5 });
  await outer
    .transaction((inner) => inner.insert(accounts).values({ owner: 'alice', balance: 1 }))
    .catch(() => console.log('alice is there already'));
});
console.log(`savepoint: ${await balances()}`);

// Far more transactions than connections: they wait their turn, and the server never sees a fifth one.
const seen = await Promise.all(
  Array.from({ length: 50 }, () =>
    db.transaction(async (transaction) => {
      const { rows } = await transaction.execute(sql`select count(*)::int as connections
        from pg_stat_activity where application_name = 'headgate-drizzle'`);
      return rows[0].connections;
    }),
  ),
);
console.log(`50 transactions at once, at most ${Math.max(...seen)} connections`);

await pool.end();
console.log(`closed, ${pool.totalCount} connections left`);
