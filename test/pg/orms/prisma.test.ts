/** A real PrismaClient, with its adapter-pg on a Headgate pool, on a real PostgreSQL. */
import { readFile } from 'node:fs/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { beforeEach, describe, expect, test } from 'vitest';
import { PrismaClient as GeneratedClient } from '../../../examples/prisma/generated/client.js';
import type { Pool } from '../../../src/index.js';
import { rejectionOf } from '../../support/outcomes.js';
import { itBehavesLikeAnOrm, type Orm, ormFixture, type Row, type Run } from './orm-contract.js';

interface Account {
  id: number;
  owner: string;
  balance: number;
}

/** What the tests use of a model; the example's client comes without its types. */
interface Model<T> {
  create(query: { data: object }): PromiseLike<T>;
  createMany(query: { data: object[] }): PromiseLike<{ count: number }>;
  findMany(query?: object): PromiseLike<T[]>;
  update(query: { where: object; data: object }): PromiseLike<T>;
  count(): PromiseLike<number>;
}

interface Queries {
  account: Model<Account>;
  transfer: Model<Row>;
  $queryRawUnsafe(text: string): PromiseLike<Row[]>;
}

interface Prisma extends Queries {
  $transaction<T>(work: (queries: Queries) => Promise<T>, options?: object): Promise<T>;
  $transaction(batch: PromiseLike<unknown>[]): Promise<unknown[]>;
  $disconnect(): Promise<void>;
}

const PrismaClient = GeneratedClient as unknown as new (options: { adapter: PrismaPg }) => Prisma;

function prismaOn(pool: Pool): Prisma {
  return new PrismaClient({ adapter: new PrismaPg(pool) });
}

const runOn = (queries: Queries): Run => {
  return async (text) => queries.$queryRawUnsafe(text);
};

function ormOn(pool: Pool): Orm {
  const prisma = prismaOn(pool);
  const patience = { maxWait: 20_000, timeout: 20_000 };
  return {
    run: runOn(prisma),
    transaction: (work) => prisma.$transaction((queries) => work(runOn(queries)), patience),
    nested: (outer, inner) =>
      prisma.$transaction(async (queries) => {
        const run = runOn(queries);
        await outer(run);
        await run('savepoint within');
        await inner(run).catch(() => run('rollback to savepoint within'));
      }, patience),
    async close() {
      await prisma.$disconnect();
      await pool.end();
    },
  };
}

describe('Prisma', () => {
  const fixture = ormFixture('orm-prisma');
  itBehavesLikeAnOrm(fixture, ormOn);

  beforeEach(async () => {
    const pool = fixture.newPool({ max: 1 });
    await pool.query(`drop table if exists headgate_prisma_transfer, headgate_prisma_account;
      create table headgate_prisma_account (
        id serial primary key, owner text not null unique, balance integer not null);
      create table headgate_prisma_transfer (
        id serial primary key, amount integer not null,
        from_id integer not null references headgate_prisma_account,
        to_id integer not null references headgate_prisma_account)`);
    await pool.end();
  });

  test('Prisma uses the pool it is given instead of opening its own', async () => {
    const pool = fixture.newPool({ max: 2 });
    const prisma = prismaOn(pool);
    expect(pool.totalCount).toBe(0);
    await prisma.account.count();
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
    const { applicationName, db } = fixture;
    const sessions = await fixture.counter.count({ database: db.database });
    expect(sessions).toBe(await fixture.counter.count({ applicationName, database: db.database }));
    await prisma.$disconnect();
    expect(pool.ending).toBe(false);
  });

  test('Prisma ends the pool when it is told that it owns it', async () => {
    const pool = fixture.newPool({ max: 2 });
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool, { disposeExternalPool: true }) });
    await prisma.account.count();
    await prisma.$disconnect();
    expect([pool.ended, pool.totalCount]).toEqual([true, 0]);
  });

  test('Prisma writes a record and those that belong to it together', async () => {
    const prisma = prismaOn(fixture.newPool({ max: 2 }));
    const bob = await prisma.account.create({ data: { owner: 'bob', balance: 0 } });
    await prisma.account.create({
      data: { owner: 'alice', balance: 10, outgoing: { create: { amount: 3, toId: bob.id } } },
    });
    const found = await prisma.account.findMany({ include: { outgoing: true }, orderBy: { owner: 'asc' } });
    expect(found).toMatchObject([
      { owner: 'alice', outgoing: [{ amount: 3, toId: bob.id }] },
      { owner: 'bob', outgoing: [] },
    ]);
    await prisma.$disconnect();
  });

  test('Prisma runs a batch in one transaction or not at all', async () => {
    const pool = fixture.newPool({ max: 2 });
    const prisma = prismaOn(pool);
    const create = (owner: string) => prisma.account.create({ data: { owner, balance: 1 } });
    await prisma.$transaction([create('a'), create('b')]);
    const error = await rejectionOf(prisma.$transaction([create('c'), create('a')]));
    expect((error as Error & { code?: string }).code).toBe('P2002');
    expect(await prisma.account.count()).toBe(2);
    expect(pool.idleCount).toBe(pool.totalCount);
    await prisma.$disconnect();
  });

  test('Prisma rolls back a transaction that outlives its time, and gives the connection back', async () => {
    const pool = fixture.newPool({ max: 1 });
    const prisma = prismaOn(pool);
    const released = new Promise((resolve) => pool.on('release', resolve));
    const late = prisma.$transaction(
      async (queries) => {
        await queries.account.create({ data: { owner: 'late', balance: 1 } });
        await released;
        await queries.account.count();
      },
      { maxWait: 5_000, timeout: 100 },
    );
    await rejectionOf(late);
    expect(await prisma.account.count()).toBe(0);
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
    await prisma.$disconnect();
  });

  test('Prisma adds up when many transactions change one record', async () => {
    const prisma = prismaOn(fixture.newPool({ max: 3 }));
    await prisma.account.create({ data: { owner: 'till', balance: 0 } });
    const pay = () =>
      prisma.$transaction(
        async (queries) => {
          await queries.account.update({ where: { owner: 'till' }, data: { balance: { increment: 1 } } });
        },
        { maxWait: 20_000, timeout: 20_000 },
      );
    await Promise.all(Array.from({ length: 30 }, pay));
    expect(await prisma.account.findMany()).toMatchObject([{ balance: 30 }]);
    await prisma.$disconnect();
  });

  test('Prisma is generated from the schema that lies beside it', async () => {
    const read = (file: string) =>
      readFile(new URL(`../../../examples/prisma/${file}`, import.meta.url), 'utf8');
    const [schema, generated] = await Promise.all([
      read('schema.prisma'),
      read('generated/internal/class.js'),
    ]);
    const inline = /inlineSchema:\s*('(?:[^'\\]|\\.)*')/.exec(generated)?.[1] ?? '';
    expect(inline.slice(1, -1).replaceAll('\\n', '\n').trim()).toBe(schema.trim());
  });
});
