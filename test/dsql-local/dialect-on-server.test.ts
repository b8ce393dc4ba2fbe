// The dialect against a real PostgreSQL 16: what it accepts runs there, and its catalog checks and limits say what they should.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDialect } from '../../src/dialect/dialect.js';
import type { Dialect } from '../../src/dialect/judgement.js';
import { findPostgres } from '../../src/dsql-local/cluster/find-postgres.js';
import { type Cluster, startCluster } from '../../src/dsql-local/cluster/start-cluster.js';
import {
  acceptedDdl,
  acceptedDrops,
  acceptedOrmTexts,
  acceptedQueries,
  acceptedTransactions,
} from '../dialect/accepted.js';

interface Refused {
  readonly code: string;
  readonly message: string;
}

let cluster: Cluster;
let client: pg.Client;
let dialect: Dialect;

beforeAll(async () => {
  dialect = await createDialect();
  cluster = await startCluster({ programs: await findPostgres() });
  const { host, port, user, password } = cluster;
  client = new pg.Client({ host, port, user, password, database: 'postgres' });
  await client.connect();
}, 60_000);

afterAll(async () => {
  await client?.end();
  await cluster?.stop();
});

/** Runs the checks of a statement, and then the statement. The first refusal ends it. */
async function run(sql: string, by = dialect): Promise<Refused | undefined> {
  for (const statement of by.judge(sql).statements) {
    if (statement.refusal !== undefined) return statement.refusal;
    for (const check of statement.checks) {
      const refused = await firstRow(check);
      if (refused !== undefined) return refused;
    }
    await client.query(statement.sql);
  }
  return undefined;
}

async function firstRow(query: string): Promise<Refused | undefined> {
  const { rows } = await client.query<Refused>(query);
  expect(rows.length).toBeLessThanOrEqual(1);
  return rows[0];
}

test('PostgreSQL runs every accepted statement, and no limit is exceeded', async () => {
  const failures: string[] = [];
  const isRunnable = (sql: string) => !sql.startsWith('COPY');
  for (const sql of [...acceptedDdl, ...acceptedQueries, ...acceptedTransactions, ...acceptedDrops].filter(
    isRunnable,
  )) {
    const refused = await run(sql).catch((error: Error) => error);
    if (refused !== undefined) failures.push(`${sql}: ${refused.message}`);
  }
  expect(failures).toEqual([]);
  expect(await firstRow(dialect.limitCheck)).toBeUndefined();
});

test('PostgreSQL plans every text of an ORM', async () => {
  for (const text of acceptedOrmTexts) {
    const [statement] = dialect.judge(text).statements;
    const sql = statement?.sql ?? '';
    await client.query(statement?.kind === 'ddl' ? sql : `PREPARE p AS ${sql}`);
    await client.query('DEALLOCATE ALL');
  }
  const { rows } = await client.query(
    `SELECT format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = 'users'::regclass AND attname = 'balance'`,
  );
  expect(rows).toEqual([{ type: 'numeric(18,6)' }]);
});

describe('Catalog checks', () => {
  beforeEach(async () => {
    await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP SCHEMA IF EXISTS app CASCADE');
  });

  test.each([
    ['bytea', 'bytea'],
    ['interval', 'interval'],
    ['jsonb', 'jsonb'],
    ['timetz', 'time with time zone'],
    ['blob', 'bytea'],
  ])('An index on a column of type %s is refused', async (type, named) => {
    await client.query('CREATE DOMAIN blob AS bytea');
    await client.query(`CREATE TABLE "T'x" (a int, "b""" ${type})`);
    expect(await run(`CREATE INDEX ASYNC ON "T'x" (a, "b""")`)).toEqual({
      code: '0A000',
      message: `datatype ${named} is not supported in a key`,
    });
  });

  test('An index on columns that declare more than 2000 bytes is refused', async () => {
    await client.query('CREATE TABLE t (a varchar(1500), b char(500), c int, d text, e varchar)');
    const tooLarge = { code: '54000', message: 'key size greater than 2000 bytes not supported' };
    expect(await run('CREATE INDEX ASYNC ON t (a, b, c)')).toEqual(tooLarge);
    expect(await run('CREATE INDEX ASYNC ON t (a, b)')).toBeUndefined();
    expect(await run('CREATE INDEX ASYNC ON t (d, e, a)')).toBeUndefined();
  });

  test('A 25th index is refused', async () => {
    await client.query('CREATE TABLE t (a int PRIMARY KEY)');
    for (let index = 0; index < 23; index++) expect(await run('CREATE INDEX ASYNC ON t (a)')).toBeUndefined();
    const tooMany = { code: '54000', message: 'more than 24 indexes per table are not allowed' };
    expect(await run('CREATE INDEX ASYNC ON t (a)')).toEqual(tooMany);
    expect(await firstRow(dialect.limitCheck)).toBeUndefined();
    await client.query('CREATE INDEX ON t (a)');
    expect(await firstRow(dialect.limitCheck)).toEqual(tooMany);
  });

  test('A column of the primary key is not dropped', async () => {
    await client.query('CREATE SCHEMA app; CREATE TABLE app.t (a int, id int, PRIMARY KEY (a, id))');
    expect(await run('ALTER TABLE app.t DROP COLUMN id')).toEqual({
      code: '0A000',
      message: 'cannot drop primary key column id',
    });
    await client.query('CREATE TABLE t (a int, id int PRIMARY KEY)');
    expect(await run('ALTER TABLE t DROP COLUMN a')).toBeUndefined();
  });

  test('A unique constraint does not take over an index that is still building', async () => {
    await client.query('CREATE TABLE t (a int)');
    await run('CREATE UNIQUE INDEX ASYNC i ON t (a)');
    await client.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'i'::regclass`);
    const sql = 'ALTER TABLE t ADD CONSTRAINT c UNIQUE USING INDEX i';
    expect(await run(sql)).toEqual({ code: '55000', message: 'index "i" is not valid' });
    await client.query(`UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'i'::regclass`);
    expect(await run(sql)).toBeUndefined();
  });

  test('An identity is added to bigint columns only', async () => {
    await client.query('CREATE TABLE t (a int NOT NULL, b bigint NOT NULL)');
    const add = (column: string) =>
      run(`ALTER TABLE t ALTER ${column} ADD GENERATED ALWAYS AS IDENTITY (CACHE 1)`);
    expect(await add('a')).toEqual({
      code: '0A000',
      message: 'datatype integer not supported, identity column type must be bigint',
    });
    expect(await add('b')).toBeUndefined();
  });

  test('Before 2026-08-24, FOR UPDATE needs an equality for each column of the primary key', async () => {
    const older = await createDialect({ profile: '2026-08-23' });
    await client.query('CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b)); CREATE TABLE n (a int)');
    const refused = {
      code: '0A000',
      message:
        'locking clause such as FOR UPDATE can be applied only on tables with equality predicates on the key',
    };
    expect(await run('SELECT * FROM t WHERE a = 1 AND b = 2 AND c > 0 FOR UPDATE', older)).toBeUndefined();
    expect(await run('SELECT * FROM t WHERE a = 1 AND c = 2 FOR UPDATE', older)).toEqual(refused);
    expect(await run('SELECT * FROM t WHERE a = 1 AND (b = 2 OR b = 3) FOR UPDATE', older)).toEqual(refused);
    expect(await run('SELECT * FROM n WHERE a = 1 FOR UPDATE', older)).toEqual(refused);
  });

  test('A table that does not exist is left to PostgreSQL', async () => {
    await expect(run('CREATE INDEX ASYNC ON no_such (a)')).rejects.toMatchObject({ code: '42P01' });
    await expect(run('ALTER TABLE no_such DROP COLUMN a')).rejects.toMatchObject({ code: '42P01' });
  });
});

describe('Limits of the database', () => {
  beforeEach(async () => {
    await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  });

  test.each([
    [
      "DO $$ BEGIN FOR i IN 1..11 LOOP EXECUTE format('CREATE SCHEMA many%s', i); END LOOP; END $$",
      '54000',
      'more than 10 schemas not allowed',
    ],
    [
      "DO $$ BEGIN FOR i IN 1..1001 LOOP EXECUTE format('CREATE TABLE t%s (a int)', i); END LOOP; END $$",
      '54000',
      'creating more than 1000 tables not allowed',
    ],
    [
      "DO $$ BEGIN CREATE TABLE t (); FOR i IN 1..257 LOOP EXECUTE format('ALTER TABLE t ADD c%s int', i); END LOOP; END $$",
      '54011',
      'tables can have at most 255 columns',
    ],
    [
      "DO $$ BEGIN CREATE TABLE t (a int, b int); FOR i IN 1..6 LOOP EXECUTE format('CREATE STATISTICS s%s ON a, b FROM t', i); END LOOP; END $$",
      '54000',
      'more than 5 extended statistics per table are not allowed',
    ],
  ])('After %s a limit is exceeded', async (sql, code, message) => {
    await client.query('BEGIN');
    await client
      .query('SET LOCAL max_locks_per_transaction TO DEFAULT')
      .catch(() => client.query('ROLLBACK; BEGIN'));
    await client.query(sql);
    expect(await firstRow(dialect.limitCheck)).toEqual({ code, message });
    await client.query('ROLLBACK');
    expect(await firstRow(dialect.limitCheck)).toBeUndefined();
  });

  test('The schemas of the stand-in and of PostgreSQL count for nothing', async () => {
    await client.query('BEGIN; CREATE SCHEMA dsql_local; CREATE SCHEMA sys');
    await client.query(
      "DO $$ BEGIN FOR i IN 1..1001 LOOP EXECUTE format('CREATE TABLE dsql_local.t%s (a int)', i); END LOOP; END $$",
    );
    expect(await firstRow(dialect.limitCheck)).toBeUndefined();
    await client.query('ROLLBACK');
  });
});
