// Wherever a run is cut off, the next one ends with the same schema, rows and records as a run that was not.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type DsqlPool, type MigrateOptions, type MigrationPool, migrate } from '../../../src/dsql.js';
import { acceptedDdl, acceptedDrops } from '../../dialect/accepted.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { seededRandom } from '../../support/seeded-random.js';
import { type Breakage, BrokenPool } from './broken-pool.js';
import { contentOf, Folder, patient, poolTo, recordsIn } from './scene.js';

let dsql: TestDsql;
let pool: DsqlPool;
let db: ReturnType<typeof patient>;
/** Left by a run that nothing disturbed. */
let expected: unknown;
let lastingMessages: readonly string[];

/** Statements that would fail or do more if they were run twice, one of each kind. */
const folder = new Folder({
  '1.sql': `SET search_path = app;
CREATE TABLE account (id int PRIMARY KEY, v int);
BEGIN;
INSERT INTO account SELECT n, n FROM generate_series(1, 3) n;
UPDATE account SET v = v + 10;
COMMIT;
CREATE INDEX ASYNC ON account (v);`,
  '2.sql': 'ALTER TABLE app.account RENAME COLUMN v TO w;',
});

function run(by: MigrationPool, options: Partial<MigrateOptions> = {}): Promise<unknown> {
  return migrate(by, { directory: folder.path, schema: 'records', ...options });
}

async function outcome(): Promise<unknown> {
  return { content: await contentOf(db, ['app']), records: await recordsIn(db, 'records') };
}

async function cleanUp(): Promise<void> {
  await db.query('DROP SCHEMA IF EXISTS records CASCADE');
  await db.query('DROP SCHEMA IF EXISTS app CASCADE');
  await db.query('CREATE SCHEMA app');
}

beforeAll(async () => {
  dsql = await startTestDsql();
  pool = poolTo(dsql, 4);
  db = patient(pool);
  await cleanUp();
  const counting = new BrokenPool(pool, 'die', () => false);
  await run(counting);
  lastingMessages = counting.lasting;
  expected = await outcome();
  await cleanUp();
});
afterAll(async () => {
  folder.remove();
  await pool?.end();
  await dsql?.stop();
});
afterEach(async () => {
  dsql.setFaults({});
  await cleanUp();
  expect(dsql.troubles).toEqual([]);
});

/** The lease of a process that died would be respected for a while. */
async function expireLease(): Promise<void> {
  const sql = `UPDATE records.migration_lock SET expires_at = now() - interval '1 second' WHERE part = 'lease'`;
  await db.query(sql).catch((error: { code?: string }) => {
    // The table may not have been made yet.
    if (error.code !== '42P01') throw error;
  });
}

/** So that a change of the code that sends fewer messages does not make the tests below pass without testing anything. */
test('A run changes something for good with each statement, its records, and the lease', () => {
  const counted = (pattern: RegExp): number => lastingMessages.filter((text) => pattern.test(text)).length;
  expect(counted(/^CREATE (?:SCHEMA|TABLE) IF NOT EXISTS "records"/)).toBe(4);
  expect(counted(/^(?:CREATE TABLE account|CREATE INDEX|ALTER TABLE)/)).toBe(3);
  // Taking the lease; two for each DDL statement, one for its job, one for each DML statement, one for each file.
  expect(counted(/^COMMIT$/)).toBe(1 + 3 * 2 + 1 + 1 + 2);
});

test('A run that dies at any point is completed by the next one with the same result', async () => {
  for (const [index, message] of lastingMessages.entries()) {
    const where = `message ${index + 1}: ${message}`;
    const dying = new BrokenPool(pool, 'die', (number) => number === index + 1);
    await run(dying, { retryFor: 0 }).catch(() => {});
    expect(dying.lasting, where).toHaveLength(index + 1);
    await expireLease();
    await run(pool);
    expect(await outcome(), where).toEqual(expected);
    await cleanUp();
  }
}, 120_000);

describe.each<Breakage>(['lose answer', 'lose message', 'unavailable'])(
  'Broken messages (%s)',
  (breakage) => {
    test.each([1, 2, 3])(
      `A run in which many messages break (${breakage}, seed %s) ends with the same result`,
      async (seed) => {
        const random = seededRandom(seed);
        const broken = new BrokenPool(pool, breakage, () => random.chance(0.4));
        await run(broken);
        expect(broken.lasting.length).toBeGreaterThan(lastingMessages.length);
        expect(await outcome()).toEqual(expected);
      },
    );
  },
);

test('A run that meets conflicts and unavailable commits at random ends with the same result', async () => {
  dsql.setFaults({ conflictShare: 0.2, unavailableBeforeCommit: 0.1, unavailableAfterCommit: 0.2 });
  await run(pool, { retryFor: '60s' });
  dsql.setFaults({});
  expect(await outcome()).toEqual(expected);
});

test('A run whose connections are dropped again and again ends with the same result', async () => {
  const own = poolTo(dsql, 2);
  const timer = setInterval(() => dsql.dropConnections(), 60);
  try {
    await run(own, { retryFor: '60s' }).catch(async (error: { reason?: string }) => {
      // The first connection of all is not tried twice.
      if (error.reason !== 'unreachable') throw error;
      clearInterval(timer);
      await expireLease();
      await run(own);
    });
  } finally {
    clearInterval(timer);
    await own.end();
  }
  expect(await outcome()).toEqual(expected);
});

test('A job whose runner dies while it waits is waited for by the next run', async () => {
  const stop = new AbortController();
  const onProgress = ({ type }: { type: string }): void => {
    if (type === 'job') stop.abort();
  };
  expect(await rejectionOf(run(pool, { signal: stop.signal, onProgress }))).toMatchObject({
    reason: 'aborted',
  });
  await run(pool);
  expect(await outcome()).toEqual(expected);
});

test('Every DDL statement that DSQL accepts survives that its answer is lost', async () => {
  const all = new Folder({ '1.sql': acceptedDdl.join(';\n'), '2.sql': acceptedDrops.join(';\n') });
  await db.query('DROP SCHEMA app');
  const lost = new Set<string>();
  const broken = new BrokenPool(pool, 'unavailable', (_number, text) => {
    if (text === 'COMMIT' || text.includes('"records"') || lost.has(text)) return false;
    lost.add(text);
    return true;
  });
  const options = { directory: all.path, schema: 'records', retryFor: '60s' };
  try {
    await migrate(broken, { ...options, target: '1' });
    const { rows } = await db.query<{ names: string[] }>(
      `SELECT array_agg(indexname::text ORDER BY indexname) AS names FROM pg_indexes WHERE tablename = 'child'`,
    );
    // Names that PostgreSQL chooses would be there twice.
    expect(rows[0]?.names).toEqual([
      'child_a_idx',
      'child_b',
      'child_email_key',
      'child_lower',
      'child_partial',
      'child_pkey',
      'child_unique_c',
      'u',
    ]);
    await migrate(broken, options);
    expect(lost.size).toBe(new Set([...acceptedDdl, ...acceptedDrops]).size);
  } finally {
    all.remove();
  }
}, 60_000);
