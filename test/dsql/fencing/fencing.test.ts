// Conditional updates on the stand-in for Aurora DSQL and on PostgreSQL, through each kind of pool and client.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  AmbiguousRowError,
  ConditionFailedError,
  compareAndSet,
  DsqlPool,
  fencedUpdate,
  optimisticUpdate,
  transaction,
} from '../../../src/dsql.js';
import { Pool } from '../../../src/index.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let dsql: TestDsql;
let db: TestDatabase;
const pools: Record<string, pg.Pool> = {};

beforeAll(async () => {
  [dsql, db] = await Promise.all([startTestDsql(), withDatabase()]);
  const { connection, credentials } = dsql;
  pools['DsqlPool on DSQL'] = new DsqlPool({
    ...connection,
    credentials,
    max: 8,
    warmup: false,
    keeper: false,
    env: {},
  });
  pools['Pool on PostgreSQL'] = new Pool({ connectionString: db.url, max: 8 });
  pools['pg.Pool on PostgreSQL'] = new pg.Pool({ connectionString: db.url, max: 8 });
  for (const pool of [pools['DsqlPool on DSQL'], pools['Pool on PostgreSQL']] as pg.Pool[]) {
    await pool.query('CREATE TABLE shards (id int PRIMARY KEY, range_id bigint, data text)');
    await pool.query('CREATE TABLE "odd ""names""" ("the key" text, version int, "select" text)');
  }
});
afterAll(async () => {
  await Promise.all(Object.values(pools).map((pool) => pool.end()));
  await Promise.all([dsql.stop(), db.drop()]);
});

describe.each(['DsqlPool on DSQL', 'Pool on PostgreSQL', 'pg.Pool on PostgreSQL'])('%s', (name) => {
  let pool: pg.Pool;

  beforeEach(async () => {
    pool = pools[name] as pg.Pool;
    await pool.query('DELETE FROM shards');
    await pool.query('DELETE FROM "odd ""names"""');
    await pool.query(`INSERT INTO shards VALUES (1, 41, 'old'), (2, 41, 'old'), (3, NULL, 'old')`);
  });

  const shard = async (id: number) => (await pool.query('SELECT * FROM shards WHERE id = $1', [id])).rows[0];
  const save = (rangeId: unknown, id = 1) => ({
    table: 'shards',
    key: { id },
    expected: { range_id: rangeId },
    set: { data: 'new' },
  });

  test('A fenced update with the right token changes its row and no other', async () => {
    await fencedUpdate(pool, save('41'));
    expect([(await shard(1)).data, (await shard(2)).data]).toEqual(['new', 'old']);
  });

  test('A fenced update with a token that was taken over changes nothing, and tells what it found', async () => {
    await fencedUpdate(pool, { ...save(41), set: { range_id: 42 } });
    const error = await rejectionOf(fencedUpdate(pool, save(41)));
    expect(error).toBeInstanceOf(ConditionFailedError);
    expect(error).toMatchObject({
      entity: 'shards (id 1)',
      expected: { range_id: 41 },
      found: { range_id: '42' },
    });
    expect(error.message).toBe(
      "shards (id 1): expected range_id 41, found range_id '42'. Nothing was changed.",
    );
    expect(await shard(1)).toMatchObject({ range_id: '42', data: 'old' });
  });

  test('A fenced update of a row that does not exist says so', async () => {
    const error = await rejectionOf(fencedUpdate(pool, { ...save(41, 99), entity: 'shard 99' }));
    expect(error).toMatchObject({ entity: 'shard 99', found: undefined });
    expect(error.message).toContain('found no row');
  });

  test('NULL is a value that can be expected and set', async () => {
    expect(await compareAndSet(pool, save(41, 3))).toBe(false);
    expect(await compareAndSet(pool, { ...save(null, 3), set: { data: null, range_id: 1 } })).toBe(true);
    expect(await shard(3)).toMatchObject({ range_id: '1', data: null });
    expect(await compareAndSet(pool, save(null, 3))).toBe(false);
  });

  test('A key that holds for several rows changes none of them, in a transaction and outside of one', async () => {
    const table = 'odd "names"';
    const update = { table, key: { 'the key': 'k' }, expected: { version: 1 }, set: { select: 'x' } };
    await pool.query(`INSERT INTO "odd ""names""" VALUES ('k', 1, 'a'), ('k', 2, 'b'), ('other', 1, 'c')`);
    expect(await rejectionOf(fencedUpdate(pool, update))).toBeInstanceOf(AmbiguousRowError);
    expect(await rejectionOf(compareAndSet(pool, update))).toBeInstanceOf(AmbiguousRowError);
    await transaction(pool, (client) => rejectionOf(fencedUpdate(client, update)));
    const change = () => ({ select: 'x' });
    expect(await rejectionOf(optimisticUpdate(pool, { ...update, change }))).toBeInstanceOf(
      AmbiguousRowError,
    );
    const { rows } = await pool.query('SELECT "select" FROM "odd ""names""" ORDER BY 1');
    expect(rows.map((row) => row.select)).toEqual(['a', 'b', 'c']);
  });

  test('Names that need quotes, and values that look like SQL, are taken as they are', async () => {
    const key = { 'the key': `'; DROP TABLE shards; --` };
    await pool.query('INSERT INTO "odd ""names""" VALUES ($1, 1, $2)', [key['the key'], 'a']);
    const update = { table: ['public', 'odd "names"'], key, expected: { version: 1 } } as const;
    await fencedUpdate(pool, { ...update, set: { select: '"; ROLLBACK; --' } });
    const row = await optimisticUpdate(pool, {
      ...update,
      change: ({ select }) => ({ select: `${select}!` }),
    });
    expect(row).toEqual({ ...key, version: 2, select: '"; ROLLBACK; --!' });
    expect((await pool.query('SELECT count(*)::int AS n FROM shards')).rows).toEqual([{ n: 3 }]);
  });

  test('Of many who take over at once with the same token, one succeeds', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, () =>
        transaction(pool, (client) => fencedUpdate(client, { ...save(41), set: { range_id: 42 } })),
      ),
    );
    const failed = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    expect(failed).toHaveLength(7);
    for (const { reason } of failed) expect(reason).toBeInstanceOf(ConditionFailedError);
    expect(await shard(1)).toMatchObject({ range_id: '42' });
  });

  test('Optimistic updates that run at once lose none of them', async () => {
    const key = { id: 1 };
    await pool.query(`UPDATE shards SET data = '0', range_id = 7 WHERE id = 1`);
    await Promise.all(
      Array.from({ length: 8 }, () =>
        optimisticUpdate(
          pool,
          {
            table: 'shards',
            key,
            version: 'range_id',
            change: async ({ data }) => ({ data: String(Number(data) + 1) }),
          },
          { maxAttempts: 100 },
        ),
      ),
    );
    expect(await shard(1)).toMatchObject({ data: '8', range_id: '15' });
    const untouched = await optimisticUpdate(pool, {
      table: 'shards',
      key,
      version: 'range_id',
      change: () => undefined,
    });
    expect(untouched).toMatchObject({ range_id: '15' });
    expect(await shard(1)).toMatchObject({ range_id: '15' });
  });

  test('An optimistic update of no row, or without a version, is refused', async () => {
    const change = () => ({ data: 'x' });
    const version = 'range_id';
    await expect(
      optimisticUpdate(pool, { table: 'shards', key: { id: 99 }, version, change }),
    ).rejects.toThrow(ConditionFailedError);
    await expect(
      optimisticUpdate(pool, { table: 'shards', key: { id: 3 }, version, change }),
    ).rejects.toThrow(/range_id must be a whole number/);
  });
});

test('An update that makes no sense is refused before anything is sent, all problems at once', async () => {
  const nobody = { query: () => Promise.reject(new Error('sent')) };
  const error = await rejectionOf(
    compareAndSet(nobody, {
      table: '',
      key: { id: undefined },
      expected: {},
      set: { ['x'.repeat(64)]: 1, 'zero\0': 1 },
    }),
  );
  expect(error).toMatchObject({
    problems: [{ path: 'table' }, { path: 'key.id' }, { path: 'expected' }, { path: 'set' }, { path: 'set' }],
  });
});
