// A PrismaClient on a Headgate pool: nested writes, transactions and a limit that holds.
import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'headgate';
import { PrismaClient } from './generated/client.js';

const pool = new Pool({
  connectionString: process.env.DATABASE_URL,
  max: 4,
  application_name: 'headgate-prisma',
});
const prisma = new PrismaClient({ adapter: new PrismaPg(pool) });

// In a real program `prisma migrate` does this; here the same pool serves plain SQL beside Prisma.
await pool.query(`
  drop table if exists headgate_prisma_transfer, headgate_prisma_account;
  create table headgate_prisma_account (
    id serial primary key, owner text not null unique, balance integer not null);
  create table headgate_prisma_transfer (
    id serial primary key, amount integer not null,
    from_id integer not null references headgate_prisma_account,
    to_id integer not null references headgate_prisma_account)`);
await prisma.account.createMany({
  data: [
    { owner: 'alice', balance: 100 },
    { owner: 'bob', balance: 100 },
  ],
});

async function transfer(from, to, amount) {
  await prisma.$transaction(async (transaction) => {
    const payer = await transaction.account.update({
      where: { owner: from },
      data: { balance: { decrement: amount } },
    });
    if (payer.balance < 0) throw new Error(`${from} has not got ${amount}`);
    await transaction.account.update({
      where: { owner: to },
      data: { balance: { increment: amount }, incoming: { create: { amount, fromId: payer.id } } },
    });
  });
}

async function balances() {
  const accounts = await prisma.account.findMany({ orderBy: { owner: 'asc' } });
  return accounts.map(({ owner, balance }) => `${owner} ${balance}`).join(', ');
}

await transfer('alice', 'bob', 30);
console.log(`committed: ${await balances()}`);

await transfer('alice', 'bob', 1000).catch((error) => console.log(`rolled back: ${error.message}`));
console.log(`unchanged: ${await balances()}, ${await prisma.transfer.count()} transfer`);

// Far more transactions than connections: they wait their turn, and the server never sees a fifth one.
const patience = { maxWait: 30_000, timeout: 30_000 };
const seen = await Promise.all(
  Array.from({ length: 50 }, () =>
    prisma.$transaction(async (transaction) => {
      const [row] = await transaction.$queryRaw`select count(*)::int as connections from pg_stat_activity
        where application_name = 'headgate-prisma'`;
      return row.connections;
    }, patience),
  ),
);
console.log(`50 transactions at once, at most ${Math.max(...seen)} connections`);

// Prisma leaves a pool that it was given to its owner.
await prisma.$disconnect();
await pool.end();
console.log(`closed, ${pool.totalCount} connections left`);
