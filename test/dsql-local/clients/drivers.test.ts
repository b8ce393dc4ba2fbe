// Drivers and pools of Node against the stand-in, each as its own documentation has it for Aurora DSQL.
import { AuroraDSQLClient, AuroraDSQLPool } from '@aws/aurora-dsql-node-postgres-connector';
import { PrismaPg } from '@prisma/adapter-pg';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PrismaClient as GeneratedClient } from '../../../examples/prisma/generated/client.js';
import { DsqlPool } from '../../../src/dsql.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run(
    'CREATE TABLE entry (id int PRIMARY KEY, note text)',
    'CREATE TABLE headgate_prisma_account (id int PRIMARY KEY, owner text NOT NULL, balance int NOT NULL)',
  );
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await dsql.reset();
  await dsql.run('DELETE FROM entry');
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

/** Options of AWS's connector: it makes its tokens itself. */
function connectorOptions(): ConstructorParameters<typeof AuroraDSQLClient>[0] {
  return {
    ...dsql.connection,
    customCredentialsProvider: async () => dsql.credentials,
  } as ConstructorParameters<typeof AuroraDSQLClient>[0];
}

test('DsqlPool fills its reservoir, and transactions that meet a conflict fail with OC000 at COMMIT', async () => {
  const pool = new DsqlPool({
    ...dsql.connection,
    credentials: dsql.credentials,
    max: 4,
    reservoir: { targetReady: 4 },
    startJitter: 0,
    env: {},
  });
  await pool.ready();
  await pool.query('INSERT INTO entry VALUES ($1, $2)', [1, 'first']);
  const [one, other] = [await pool.connect(), await pool.connect()];
  for (const client of [one, other]) await client.query('BEGIN');
  for (const client of [one, other]) {
    const { rowCount } = await client.query('UPDATE entry SET note = $1 WHERE id = 1', ['changed']);
    expect(rowCount).toBe(1);
  }
  await one.query('COMMIT');
  expect(await rejectionOf(other.query('COMMIT'))).toMatchObject({ code: '40001' });
  one.release();
  other.release();
  expect(dsql.connectionCounts().peak).toBeLessThanOrEqual(4);
  await pool.end();
});

test("AWS's connector for node-postgres: a client, and a pool whose transaction() retries conflicts", async () => {
  const client = new AuroraDSQLClient(connectorOptions());
  await client.connect();
  expect((await client.query('SELECT current_user AS name')).rows).toEqual([{ name: 'admin' }]);
  await client.end();

  const pool = new AuroraDSQLPool({ ...(connectorOptions() as object), max: 3 } as never);
  let attempts = 0;
  dsql.setFaults({ conflictShare: 1 });
  await pool.transaction(async (inside) => {
    attempts += 1;
    await inside.query('INSERT INTO entry VALUES (1, $1)', ['by the connector']);
    if (attempts === 3) dsql.setFaults({});
  });
  expect(attempts).toBe(3);
  expect((await pool.query('SELECT note FROM entry')).rows).toEqual([{ note: 'by the connector' }]);
  await pool.end();
});

test("node-postgres with a token of AWS's signer, by both ways to begin TLS", async () => {
  for (const sslnegotiation of ['postgres', 'direct'] as const) {
    const client = await dsql.connect('admin', { sslnegotiation } as pg.ClientConfig);
    const { rows } = await client.query({
      name: 'named',
      text: 'SELECT $1::int + 1 AS n, version() AS version',
      values: [1],
    });
    expect(rows[0]).toMatchObject({ n: 2 });
    await client.end();
  }
  expect(dsql.logins.map(({ isDirectTls }) => isDirectTls)).toEqual([false, true]);
});

test('node-postgres by the address of the loopback, where TLS names no server', async () => {
  const { host, port } = dsql;
  const client = new pg.Client({
    host,
    port,
    user: 'admin',
    database: 'postgres',
    password: await dsql.token({ hostname: host }),
    ssl: { ca: dsql.ca },
  });
  await client.connect();
  await client.query('SELECT 1');
  await client.end();
  expect(dsql.logins[0]?.serverName).toBeUndefined();
});

test('postgres.js with a password function, prepared statements and a transaction', async () => {
  const sql = postgres({
    host: dsql.endpoint,
    port: dsql.port,
    user: 'admin',
    database: 'postgres',
    pass: () => dsql.token(),
    ssl: { ca: dsql.ca, servername: dsql.endpoint },
    socket: () => {
      const socket = dsql.connection.stream();
      return socket.connect(dsql.port);
    },
    max: 2,
    // The driver asks for the types of the database, which the stand-in has as PostgreSQL has them.
    fetch_types: true,
  } as unknown as Parameters<typeof postgres>[0]);
  await sql.begin(async (inside) => {
    await inside`INSERT INTO entry VALUES (${1}, ${'a'}), (${2}, ${'b'})`;
  });
  expect([...(await sql`SELECT id, note FROM entry ORDER BY id`)]).toEqual([
    { id: 1, note: 'a' },
    { id: 2, note: 'b' },
  ]);
  await sql.end();
});

test('Drizzle and Kysely on a pool of node-postgres', async () => {
  const pool = new pg.Pool({ ...(await dsql.clientOptions()), max: 2 });
  const entry = pgTable('entry', { id: integer('id').primaryKey(), note: text('note') });
  const database = drizzle(pool);
  await database.transaction((inside) => inside.insert(entry).values({ id: 1, note: 'drizzle' }));
  expect(await database.select().from(entry).where(eq(entry.id, 1))).toEqual([{ id: 1, note: 'drizzle' }]);
  const kysely = new Kysely<{ entry: { id: number; note: string } }>({
    dialect: new PostgresDialect({ pool }),
  });
  await kysely.updateTable('entry').set({ note: 'kysely' }).where('id', '=', 1).execute();
  expect(await kysely.selectFrom('entry').selectAll().execute()).toEqual([{ id: 1, note: 'kysely' }]);
  await kysely.destroy();
});

test('Prisma with its adapter for node-postgres', async () => {
  interface Account {
    create(query: object): Promise<unknown>;
    findMany(): Promise<unknown[]>;
  }
  const PrismaClient = GeneratedClient as unknown as new (options: {
    adapter: PrismaPg;
  }) => { account: Account; $disconnect(): Promise<void> };
  const prisma = new PrismaClient({ adapter: new PrismaPg(await dsql.clientOptions()) });
  await prisma.account.create({ data: { id: 1, owner: 'someone', balance: 5 } });
  expect(await prisma.account.findMany()).toEqual([{ id: 1, owner: 'someone', balance: 5 }]);
  await prisma.$disconnect();
});
