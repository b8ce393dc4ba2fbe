// Kysely on a Headgate pool: transactions, a limit that holds, and rows as a stream.
import { Pool } from 'headgate';
import { Kysely, PostgresDialect, sql } from 'kysely';
import Cursor from 'pg-cursor';

const pool = new Pool({
  connectionString: process.env.DATABASE_URL,
  max: 4,
  application_name: 'headgate-kysely',
});
const db = new Kysely({ dialect: new PostgresDialect({ pool, cursor: Cursor }) });

await db.schema.dropTable('headgate_kysely_account').ifExists().execute();
await db.schema
  .createTable('headgate_kysely_account')
  .addColumn('owner', 'text', (column) => column.primaryKey())
  .addColumn('balance', 'integer', (column) => column.notNull())
  .execute();
await db
  .insertInto('headgate_kysely_account')
  .values([
    { owner: 'alice', balance: 100 },
    { owner: 'bob', balance: 100 },
  ])
  .execute();

async function transfer(from, to, amount) {
  await db.transaction().execute(async (transaction) => {
    const { balance } = await transaction
      .updateTable('headgate_kysely_account')
      .set({ balance: sql`balance - ${amount}` })
      .where('owner', '=', from)
      .returning('balance')
      .executeTakeFirstOrThrow();
    if (balance < 0) throw new Error(`${from} has not got ${amount}`);
    await transaction
      .updateTable('headgate_kysely_account')
      .set({ balance: sql`balance + ${amount}` })
      .where('owner', '=', to)
      .execute();
  });
}

async function balances() {
  const accounts = await db.selectFrom('headgate_kysely_account').selectAll().orderBy('owner').execute();
  return accounts.map(({ owner, balance }) => `${owner} ${balance}`).join(', ');
}

await transfer('alice', 'bob', 30);
console.log(`committed: ${await balances()}`);

await transfer('alice', 'bob', 1000).catch((error) => console.log(`rolled back: ${error.message}`));
console.log(`unchanged: ${await balances()}`);

// Far more transactions than connections: they wait their turn, and the server never sees a fifth one.
const seen = await Promise.all(
  Array.from({ length: 50 }, () =>
    db.transaction().execute(async (transaction) => {
      const { rows } = await sql`select count(*)::int as connections from pg_stat_activity
        where application_name = 'headgate-kysely'`.execute(transaction);
      return rows[0].connections;
    }),
  ),
);
console.log(`50 transactions at once, at most ${Math.max(...seen)} connections`);

let total = 0;
const numbers = db.selectFrom(sql`generate_series(1, 1000)`.as('number')).select(sql`number`.as('number'));
for await (const row of numbers.stream(100)) total += Number(row.number);
console.log(`streamed 1000 rows, their sum is ${total}`);

// Kysely's destroy() ends the pool as well.
await db.destroy();
console.log(`closed, ${pool.totalCount} connections left`);
