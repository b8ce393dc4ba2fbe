/** Kysely on a Headgate pool, on a real PostgreSQL. */
import { CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely';
import Cursor from 'pg-cursor';
import { describe, expect, test } from 'vitest';
import type { Pool } from '../../../src/index.js';
import { rejectionOf } from '../../support/outcomes.js';
import { itBehavesLikeAnOrm, type Orm, ormFixture, type Row, type Run } from './orm-contract.js';

interface Tables {
  entry: { id: number; note: string | null };
}

function kyselyOn(pool: Pool): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool, cursor: Cursor }) });
}

const runOn = (db: Kysely<Tables>): Run => {
  return async (text) => (await db.executeQuery<Row>(CompiledQuery.raw(text))).rows;
};

function ormOn(pool: Pool): Orm {
  const db = kyselyOn(pool);
  return {
    run: runOn(db),
    transaction: (work) => db.transaction().execute((transaction) => work(runOn(transaction))),
    async nested(outer, inner) {
      const transaction = await db.startTransaction().execute();
      await outer(runOn(transaction));
      const nested = await transaction.savepoint('inner').execute();
      await inner(runOn(nested)).catch(() => nested.rollbackToSavepoint('inner').execute());
      await transaction.commit().execute();
    },
    close: () => db.destroy(),
  };
}

describe('Kysely', () => {
  const fixture = ormFixture('orm-kysely');
  itBehavesLikeAnOrm(fixture, ormOn);

  test('Kysely builds schemas, writes and reads', async () => {
    const db = kyselyOn(fixture.newPool({ max: 2 }));
    await db.schema.createTable('made_by_kysely').addColumn('id', 'integer').execute();
    const inserted = await db
      .insertInto('entry')
      .values([
        { id: 1, note: 'a' },
        { id: 2, note: null },
      ])
      .returningAll()
      .execute();
    expect(inserted).toEqual([
      { id: 1, note: 'a' },
      { id: 2, note: null },
    ]);
    const updated = await db.updateTable('entry').set({ note: 'b' }).where('id', '>', 0).executeTakeFirst();
    expect(updated.numUpdatedRows).toBe(2n);
    await db.destroy();
  });

  test('Kysely streams rows in portions and gives the connection back at the end', async () => {
    const pool = fixture.newPool({ max: 1 });
    const db = kyselyOn(pool);
    await sql`insert into entry select n, 'x' from generate_series(1, 500) n`.execute(db);
    let sum = 0;
    for await (const row of db.selectFrom('entry').selectAll().stream(50)) {
      expect([pool.totalCount, pool.idleCount]).toEqual([1, 0]);
      sum += row.id;
    }
    expect(sum).toBe(125_250);
    expect(pool.idleCount).toBe(1);
    await db.destroy();
  });

  test('Kysely gives the connection back when a stream is left early', async () => {
    const pool = fixture.newPool({ max: 1 });
    const db = kyselyOn(pool);
    await sql`insert into entry select n from generate_series(1, 500) n`.execute(db);
    for await (const row of db.selectFrom('entry').selectAll().orderBy('id').stream(10)) {
      if (row.id === 3) break;
    }
    expect(pool.idleCount).toBe(1);
    expect(await db.selectFrom('entry').select('id').where('id', '=', 4).execute()).toEqual([{ id: 4 }]);
    await db.destroy();
  });

  test('Kysely gives the connection back when a stream fails half way', async () => {
    const pool = fixture.newPool({ max: 1 });
    const db = kyselyOn(pool);
    const failing = db
      .selectFrom(sql<{ n: number }>`generate_series(-20, 20)`.as('n'))
      .select(sql`1 / n`.as('x'));
    const read = async () => {
      for await (const _row of failing.stream(5));
    };
    expect((await rejectionOf(read())).message).toMatch(/division by zero/);
    expect(pool.idleCount).toBe(1);
    await db.destroy();
  });

  test('Kysely rolls a controlled transaction back to a savepoint and commits the rest', async () => {
    const db = kyselyOn(fixture.newPool({ max: 1 }));
    const transaction = await db.startTransaction().setIsolationLevel('serializable').execute();
    await transaction.insertInto('entry').values({ id: 1, note: 'kept' }).execute();
    const inner = await transaction.savepoint('before').execute();
    await inner.insertInto('entry').values({ id: 2, note: 'lost' }).execute();
    await inner.rollbackToSavepoint('before').execute();
    await transaction.commit().execute();
    expect(await db.selectFrom('entry').select('note').execute()).toEqual([{ note: 'kept' }]);
    await db.destroy();
  });

  test('Kysely keeps a connection of its own for db.connection()', async () => {
    const pool = fixture.newPool({ max: 1 });
    const db = kyselyOn(pool);
    await db.connection().execute(async (one) => {
      await sql`set work_mem = '7MB'`.execute(one);
      expect((await sql<Row>`show work_mem`.execute(one)).rows).toEqual([{ work_mem: '7MB' }]);
      expect(pool.idleCount).toBe(0);
    });
    expect(pool.idleCount).toBe(1);
    await db.destroy();
  });

  test('Kysely ends the pool when it is destroyed, and refuses afterwards', async () => {
    const pool = fixture.newPool({ max: 2 });
    const db = kyselyOn(pool);
    await sql`select 1`.execute(db);
    await db.destroy();
    expect([pool.ended, pool.totalCount]).toEqual([true, 0]);
    await rejectionOf(sql`select 1`.execute(db));
  });
});
