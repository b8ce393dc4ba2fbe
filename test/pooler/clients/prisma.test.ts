import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { PrismaClient as GeneratedClient } from '../../../examples/prisma/generated/client.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { mostSessionsWhile } from './programs.js';

interface Account {
  readonly id: number;
  readonly owner: string;
  readonly balance: number;
}

/** What the tests use of a model; the generated client comes without its types. */
interface Model<T> {
  create(query: { data: object; include?: object }): PromiseLike<T>;
  createMany(query: { data: object[] }): PromiseLike<{ count: number }>;
  findMany(query?: object): PromiseLike<T[]>;
  update(query: { where: object; data: object }): PromiseLike<T>;
  upsert(query: { where: object; create: object; update: object }): PromiseLike<T>;
  deleteMany(query?: object): PromiseLike<{ count: number }>;
  aggregate(query: object): PromiseLike<Record<string, Record<string, number>>>;
  count(query?: object): PromiseLike<number>;
}

interface Queries {
  readonly account: Model<Account>;
  readonly transfer: Model<{ readonly amount: number }>;
  $queryRaw<T>(parts: TemplateStringsArray, ...values: unknown[]): PromiseLike<T>;
  $executeRawUnsafe(text: string, ...values: unknown[]): PromiseLike<number>;
}

interface Prisma extends Queries {
  $transaction<T>(work: (queries: Queries) => Promise<T>, options?: object): Promise<T>;
  $transaction(batch: PromiseLike<unknown>[]): Promise<unknown[]>;
  $disconnect(): Promise<void>;
}

const PrismaClient = GeneratedClient as unknown as new (options: { adapter: PrismaPg }) => Prisma;
const patience = { maxWait: 20_000, timeout: 20_000 };
const poolSize = 2;

let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, { pooling: { poolSize, maxPreparedStatements: 5 } });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});
beforeEach(async () => {
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await client.query(`drop table if exists headgate_prisma_transfer, headgate_prisma_account;
    create table headgate_prisma_account (
      id serial primary key, owner text not null unique, balance integer not null);
    create table headgate_prisma_transfer (
      id serial primary key, amount integer not null,
      from_id integer not null references headgate_prisma_account,
      to_id integer not null references headgate_prisma_account)`);
  await client.end();
});

/** Names for its statements, so that they stay prepared; without them each is prepared for one use. */
const naming = {
  'with statements that stay prepared': namer(),
  'with statements for one use': {},
};

function namer(): { statementNameGenerator: (query: { sql: string }) => string } {
  const names = new Map<string, string>();
  return {
    statementNameGenerator({ sql }) {
      const name = names.get(sql) ?? `s${names.size}`;
      names.set(sql, name);
      return name;
    },
  };
}

describe.each(Object.entries(naming))('Prisma on 2 servers in transaction mode, %s', (_name, options) => {
  function prismaOf(max = 10): Prisma {
    const { host, port, user, password, database } = pooler;
    const adapter = new PrismaPg({ host, port, user, password, database, max }, options);
    const prisma = new PrismaClient({ adapter });
    onTestFinished(() => prisma.$disconnect());
    return prisma;
  }

  test('creates, reads, changes and deletes, with records that belong together', async () => {
    const prisma = prismaOf();
    const bob = await prisma.account.create({ data: { owner: 'bob', balance: 0 } });
    await prisma.account.create({
      data: {
        owner: 'alice',
        balance: 10,
        outgoing: {
          create: [
            { amount: 3, toId: bob.id },
            { amount: 4, toId: bob.id },
          ],
        },
      },
    });
    expect(
      await prisma.account.findMany({ include: { outgoing: true }, orderBy: { owner: 'asc' } }),
    ).toMatchObject([
      { owner: 'alice', outgoing: [{ amount: 3 }, { amount: 4 }] },
      { owner: 'bob', outgoing: [] },
    ]);
    await prisma.account.update({
      where: { owner: 'bob' },
      data: { balance: { increment: 7 }, incoming: { deleteMany: {} } },
    });
    await prisma.account.upsert({
      where: { owner: 'carol' },
      create: { owner: 'carol', balance: 1 },
      update: {},
    });
    await prisma.account.upsert({
      where: { owner: 'carol' },
      create: { owner: 'carol', balance: 1 },
      update: { balance: 2 },
    });
    expect(await prisma.account.aggregate({ _sum: { balance: true } })).toEqual({ _sum: { balance: 19 } });
    expect(await prisma.account.deleteMany({ where: { owner: { in: ['alice', 'carol'] } } })).toEqual({
      count: 2,
    });
    expect(await prisma.transfer.count()).toBe(0);
    expect(
      await prisma.$queryRaw<unknown>`select owner, balance from headgate_prisma_account where id = ${bob.id}`,
    ).toEqual([{ owner: 'bob', balance: 7 }]);
  });

  test('Prisma runs many queries and interactive transactions at once, which add up', async () => {
    const prisma = prismaOf(10);
    await prisma.account.createMany({
      data: Array.from({ length: 10 }, (_, n) => ({ owner: `owner ${n}`, balance: 100 })),
    });
    const move = (turn: number) =>
      prisma.$transaction(async (tx) => {
        const [from, to] = [turn % 10, (turn * 3 + 1) % 10].sort() as [number, number];
        await tx.account.update({ where: { owner: `owner ${from}` }, data: { balance: { decrement: 5 } } });
        await tx.account.update({ where: { owner: `owner ${to}` }, data: { balance: { increment: 5 } } });
        if (turn % 4 === 0) throw new Error('undone');
      }, patience);
    const most = await mostSessionsWhile(db, async () => {
      const [ends, reads] = await Promise.all([
        Promise.all(
          Array.from({ length: 32 }, (_, n) =>
            move(n).then(
              () => 'done',
              (error: Error) => error.message,
            ),
          ),
        ),
        Promise.all(
          Array.from({ length: 60 }, (_, n) =>
            prisma.account.findMany({ where: { owner: `owner ${n % 10}` } }),
          ),
        ),
      ]);
      expect(ends).toEqual(Array.from({ length: 32 }, (_, n) => (n % 4 === 0 ? 'undone' : 'done')));
      expect(reads.map(([account]) => account?.owner)).toEqual(
        Array.from({ length: 60 }, (_, n) => `owner ${n % 10}`),
      );
    });
    expect(most).toBeLessThanOrEqual(poolSize);
    expect(await prisma.account.aggregate({ _sum: { balance: true } })).toEqual({ _sum: { balance: 1000 } });
  });

  test('Prisma undoes batches and transactions that fail, and goes on', async () => {
    const prisma = prismaOf();
    const create = (owner: string) => prisma.account.create({ data: { owner, balance: 1 } });
    await prisma.$transaction([create('a'), create('b')]);
    await expect(prisma.$transaction([create('c'), create('a')])).rejects.toMatchObject({ code: 'P2002' });
    await expect(
      prisma.$transaction(
        async (tx) => {
          await tx.$executeRawUnsafe('update headgate_prisma_account set balance = $1', 50);
          await tx.$queryRaw`select 1 / ${0}::int`;
        },
        { ...patience, isolationLevel: 'Serializable' },
      ),
    ).rejects.toMatchObject({ code: 'P2010' });
    expect(await prisma.account.aggregate({ _sum: { balance: true } })).toEqual({ _sum: { balance: 2 } });
  });
});
