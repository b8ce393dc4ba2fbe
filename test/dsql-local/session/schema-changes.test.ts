/** DDL in transactions, OC001, and DDL that meets open transactions. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Client, conflict, schemaConflict, World } from '../conflicts/world.js';

let world: World;
let a: Client;
let b: Client;
let tables = 0;
let t: string;

beforeAll(async () => {
  world = await World.start();
  a = await world.connect();
  b = await world.connect();
});

afterAll(async () => {
  await world?.stop();
  expect(world.troubles).toEqual([]);
});

beforeEach(async () => {
  for (const client of [a, b]) await client.run('ROLLBACK');
  tables += 1;
  t = `t${tables}`;
  await a.must(`CREATE TABLE ${t} (id int PRIMARY KEY, v int)`);
  await a.must(`INSERT INTO ${t} VALUES (1, 0), (2, 0)`);
  await b.refresh();
});

const twoDdl = { code: '0A000', message: 'multiple ddl statements not supported in a transaction' };
const mixed = { code: '0A000', message: 'ddl and dml are not supported in the same transaction' };

test('a transaction with DDL has one DDL statement, GRANT included', async () => {
  for (const second of [
    `GRANT SELECT ON ${t} TO PUBLIC`,
    `CREATE TABLE ${t}b (id int)`,
    `CREATE INDEX ASYNC ON ${t} (v)`,
  ]) {
    await a.must('BEGIN');
    await a.must(`ALTER TABLE ${t} ADD COLUMN extra int`);
    expect(await a.run(second)).toMatchObject(twoDdl);
    expect(await a.run('COMMIT')).toMatchObject({ ok: true });
  }
  expect(await a.run(`CREATE TABLE ${t}c (id int); CREATE TABLE ${t}d (id int)`)).toMatchObject(twoDdl);
  expect(await a.run(`SELECT * FROM ${t}c`)).toMatchObject({ code: '42P01' });
});

test('a transaction with DDL has no DML, in neither order', async () => {
  const dml = `INSERT INTO ${t} VALUES (9, 9)`;
  for (const ddl of [
    `CREATE TABLE ${t}b (id int)`,
    `GRANT SELECT ON ${t} TO PUBLIC`,
    `CREATE INDEX ASYNC ON ${t} (v)`,
  ])
    for (const pair of [
      [ddl, dml],
      [dml, ddl],
      [ddl, `SELECT * FROM ${t} FOR UPDATE`],
    ]) {
      await a.must('BEGIN');
      await a.must(pair[0] ?? '');
      expect(await a.run(pair[1] ?? '')).toMatchObject(mixed);
      await a.must('ROLLBACK');
      expect(await a.run(pair.join('; '))).toMatchObject(mixed);
    }
  expect(await a.must(`SELECT count(*)::int FROM ${t}`)).toEqual([{ count: 2 }]);
});

test('a transaction with DDL may read, and CREATE INDEX ASYNC may stand alone in a transaction', async () => {
  await a.must('BEGIN');
  await a.must(`SELECT * FROM ${t}`);
  await a.must(`CREATE INDEX ASYNC ON ${t} (v)`);
  await a.must('COMMIT');
  await a.must(`BEGIN; CREATE INDEX ASYNC ${t}_i ON ${t} (v); COMMIT`);
});

test('OC001 comes on the next statement of an idle session, once', async () => {
  await a.must(`GRANT SELECT ON ${t} TO PUBLIC`);
  expect(await b.run(`SELECT count(*) FROM ${t}`)).toMatchObject(schemaConflict);
  expect(await b.run(`SELECT count(*) FROM ${t}`)).toMatchObject({ ok: true });
  await a.must(`ALTER TABLE ${t} ADD COLUMN extra int`);
  expect(await b.run(`INSERT INTO ${t} VALUES (3, 0)`)).toMatchObject(schemaConflict);
  expect(await b.run(`INSERT INTO ${t} VALUES (3, 0)`)).toMatchObject({ ok: true });
});

test('OC001 does not come to a new session', async () => {
  const fresh = await world.connect();
  await a.must(`ALTER TABLE ${t} ADD COLUMN extra int`);
  expect(await fresh.run(`SELECT count(*) FROM ${t}`)).toMatchObject({ ok: true });
  await fresh.pg.end();
});

test.each(['BEGIN', 'BEGIN READ ONLY'])(
  'OC001 comes at COMMIT when the schema changed in the middle: %s',
  async (begin) => {
    await b.must(begin);
    await b.must('SELECT 1');
    await a.must(`ALTER TABLE ${t} ADD COLUMN extra int`);
    expect(await b.run('COMMIT')).toMatchObject(schemaConflict);
    expect(await b.run(`SELECT count(*) FROM ${t}`)).toMatchObject({ ok: true });
  },
);

test('OC001 comes on a statement of a transaction that began before, and fails it', async () => {
  await b.must('BEGIN');
  await b.must('SELECT 1');
  await a.must(`ALTER TABLE ${t} ADD COLUMN extra int`);
  expect(await b.run('SELECT 1')).toMatchObject(schemaConflict);
  expect(await b.run('SELECT 1')).toMatchObject({ code: '25P02' });
  await b.must('ROLLBACK');
});

const changes = {
  'ALTER TABLE': 'ALTER TABLE %t ADD COLUMN extra int',
  'DROP TABLE': 'DROP TABLE %t',
  'CREATE INDEX ASYNC': 'CREATE INDEX ASYNC ON %t (v)',
};

test.each(Object.entries(changes))(
  'DDL on a table that another transaction has open does not wait, and the other gets OC001: %s',
  async (_name, sql) => {
    await b.must('BEGIN');
    await b.must(`UPDATE ${t} SET v = 1 WHERE id = 1`);
    const start = performance.now();
    await a.must(sql.replace('%t', t));
    expect(performance.now() - start).toBeLessThan(3_000);
    expect(await b.run('COMMIT')).toMatchObject(schemaConflict);
  },
);

test.each(Object.entries(changes))(
  'DDL on a table that another transaction has open does not wait for one that goes on with copies: %s',
  async (_name, sql) => {
    const c = await world.connect();
    await b.must('BEGIN');
    await c.must('BEGIN');
    await b.must(`UPDATE ${t} SET v = 1 WHERE id = 1`);
    await c.must(`UPDATE ${t} SET v = 2 WHERE id = 1`);
    await a.must(sql.replace('%t', t));
    expect(await c.run(`SELECT * FROM ${t}`)).toMatchObject(schemaConflict);
    expect(await b.run('COMMIT')).toMatchObject(schemaConflict);
    expect(await c.run('COMMIT')).toMatchObject({ ok: true });
    await c.pg.end();
  },
);

test('DDL on a table that another transaction has open does not wait for a statement that runs long', async () => {
  await b.must('BEGIN');
  const long = b.run(`SELECT pg_sleep(20), (SELECT count(*) FROM ${t})`);
  const locks = `SELECT count(*)::int AS n FROM pg_locks WHERE relation = '${t}'::regclass`;
  await expect.poll(async () => (await a.must(locks))[0], { timeout: 10_000 }).not.toEqual({ n: 0 });
  await a.must(`ALTER TABLE ${t} ADD COLUMN extra int`);
  expect(await long).toMatchObject(schemaConflict);
  await b.must('ROLLBACK');
});

const losesTo = async (first: string, second: string): Promise<void> => {
  for (const client of [a, b]) await client.must('BEGIN');
  await b.must('SELECT 1');
  await a.must(first);
  await b.must(second);
  await a.must('COMMIT');
  expect(await b.run('COMMIT')).toMatchObject(conflict);
};

test('capture of changes stays when triggers are disabled', async () => {
  for (const word of ['ALL', 'USER', 'all']) {
    expect(await a.run(`ALTER TABLE ${t} DISABLE TRIGGER ${word}`)).toMatchObject({ ok: true });
    await b.refresh();
    await losesTo(`UPDATE ${t} SET v = v + 1 WHERE id = 1`, `UPDATE ${t} SET v = v + 1 WHERE id = 1`);
    expect(await a.run(`ALTER TABLE ${t} ENABLE TRIGGER ${word}`)).toMatchObject({ ok: true });
    await b.refresh();
  }
});

test('capture of changes begins with a table inside of CREATE SCHEMA', async () => {
  await a.must(`CREATE SCHEMA s${t} CREATE TABLE inner_table (id int PRIMARY KEY, v int)`);
  await b.refresh();
  await a.must(`INSERT INTO s${t}.inner_table VALUES (1, 1)`);
  await losesTo(`UPDATE s${t}.inner_table SET v = 2`, `UPDATE s${t}.inner_table SET v = 3`);
  expect(await a.must(`SELECT v FROM s${t}.inner_table`)).toEqual([{ v: 2 }]);
  await a.must(`DROP TABLE s${t}.inner_table`);
  await a.must(`DROP SCHEMA s${t}`);
});
