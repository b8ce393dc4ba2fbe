/** Drizzle on a Headgate pool, on a real PostgreSQL. */
import { eq, sql } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { integer, type PgDatabase, type PgQueryResultHKT, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import type { Pool } from '../../../src/index.js';
import { rejectionOf } from '../../support/outcomes.js';
import { itBehavesLikeAnOrm, messages, type Orm, ormFixture, type Row, type Run } from './orm-contract.js';

const entry = pgTable('entry', { id: integer('id').primaryKey(), note: text('note') });
const schema = { entry };

function drizzleOn(pool: Pool): NodePgDatabase<typeof schema> {
  return drizzle(pool, { schema });
}

const runOn = (db: PgDatabase<PgQueryResultHKT, typeof schema>): Run => {
  return async (text) => ((await db.execute(sql.raw(text))) as pg.QueryResult<Row>).rows;
};

function ormOn(pool: Pool): Orm {
  const db = drizzleOn(pool);
  return {
    run: runOn(db),
    transaction: (work) => db.transaction((transaction) => work(runOn(transaction))),
    nested: (outer, inner) =>
      db.transaction(async (transaction) => {
        await outer(runOn(transaction));
        await transaction.transaction((nested) => inner(runOn(nested))).catch(() => {});
      }),
    close: () => pool.end(),
  };
}

describe('Drizzle', () => {
  const fixture = ormFixture('orm-drizzle');
  itBehavesLikeAnOrm(fixture, ormOn);

  test('Drizzle knows the pool for one, by its class and by its name', () => {
    const pool = fixture.newPool({ max: 1 });
    expect(pool).toBeInstanceOf(pg.Pool);
    expect(pool.constructor.name).toContain('Pool');
  });

  test('Drizzle takes one client for a whole transaction and gives it back once', async () => {
    const pool = fixture.newPool({ max: 2 });
    const db = drizzleOn(pool);
    const events: string[] = [];
    pool.on('acquire', () => events.push('acquire'));
    pool.on('release', () => events.push('release'));
    await db.transaction(async (transaction) => {
      await transaction.insert(entry).values({ id: 1 });
      await transaction.transaction((inner) => inner.insert(entry).values({ id: 2 }));
      await transaction.select().from(entry);
    });
    expect(events).toEqual(['acquire', 'release']);
  });

  test('Drizzle does not let a query from outside slip into the transaction', async () => {
    const db = drizzleOn(fixture.newPool({ max: 2 }));
    const failed = db.transaction(async (transaction) => {
      await transaction.insert(entry).values({ id: 1 });
      await db.insert(entry).values({ id: 2 });
      throw new Error('roll back');
    });
    await rejectionOf(failed);
    expect(await db.select({ id: entry.id }).from(entry)).toEqual([{ id: 2 }]);
  });

  test('writes, reads, prepares and queries by relation', async () => {
    const db = drizzleOn(fixture.newPool({ max: 2 }));
    const rows = await db
      .insert(entry)
      .values([
        { id: 1, note: 'a' },
        { id: 2, note: 'b' },
      ])
      .returning();
    expect(rows).toHaveLength(2);
    const byId = db
      .select()
      .from(entry)
      .where(eq(entry.id, sql.placeholder('id')))
      .prepare('entry_by_id');
    // A prepared statement has a name; each connection learns it by itself.
    const found = await Promise.all([1, 2, 1, 2, 1, 2].map((id) => byId.execute({ id })));
    expect(found.map(([row]) => row?.note)).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
    expect(await db.query.entry.findFirst({ where: eq(entry.id, 2) })).toEqual({ id: 2, note: 'b' });
    expect(await db.$count(entry)).toBe(2);
  });

  test('Drizzle passes the error of the server on', async () => {
    const db = drizzleOn(fixture.newPool({ max: 1 }));
    await db.insert(entry).values({ id: 1 });
    const error = await rejectionOf(db.insert(entry).values({ id: 1 }));
    expect(messages(error)).toMatch(/duplicate key/);
    expect((error.cause as pg.DatabaseError).code).toBe('23505');
  });

  test('Drizzle is the same with the pool given as client', async () => {
    const db = drizzle({ client: fixture.newPool({ max: 1 }), schema });
    await db.transaction(async (transaction) => void (await transaction.insert(entry).values({ id: 1 })));
    expect(await db.$count(entry)).toBe(1);
  });
});
