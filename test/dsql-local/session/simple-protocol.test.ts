/** Query messages, answered message by message as PostgreSQL answers them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Script, step } from '../../pooler/raw/trace.js';
import { Pair } from './pair.js';

let pair: Pair;

beforeAll(async () => {
  pair = await Pair.start();
  await pair.setUp(
    'CREATE TABLE t (id int PRIMARY KEY, v text)',
    `INSERT INTO t VALUES (1, 'one'), (2, 'two')`,
  );
});

afterAll(async () => {
  await pair?.stop();
});

const query = (sql: string) => step((s: Script) => s.query(sql));

const texts: Readonly<Record<string, readonly string[]>> = {
  'an empty text': [''],
  'blanks and comments only': ['  /* a */ -- b\n ;;', ';', ' '],
  'a result without rows and one with NULL': ['SELECT * FROM t WHERE id = 0', 'SELECT NULL::int, 1'],
  'several statements in one text': [
    `SELECT 1; INSERT INTO t VALUES (3, 'three'); SELECT count(*) FROM t; DELETE FROM t WHERE id = 3`,
  ],
  'an error in the middle of a text, which undoes all of it': [
    `INSERT INTO t VALUES (3, 'three'); SELECT 1/0; INSERT INTO t VALUES (4, 'four')`,
    'SELECT count(*) FROM t',
  ],
  'a syntax error with its position': ['SELECT 1 FROM WHERE', 'SELEC 1', `SELECT 'open`, 'SELECT 1; SELEC 2'],
  'errors of names with their positions': [
    'SELECT x FROM t',
    'SELECT é, x FROM t',
    'SELECT * FROM missing',
    'SELECT 1; SELECT nope',
  ],
  'BEGIN and COMMIT inside of a text': [
    `BEGIN; INSERT INTO t VALUES (5, 'five'); COMMIT; SELECT v FROM t WHERE id = 5; DELETE FROM t WHERE id = 5`,
  ],
  'a text that leaves a transaction open': [
    `INSERT INTO t VALUES (6, 'six'); BEGIN; SELECT 1`,
    'ROLLBACK',
    'SELECT count(*) FROM t',
  ],
  'COMMIT in the middle of a text, and an error behind it': [
    `INSERT INTO t VALUES (7, 'seven'); COMMIT; INSERT INTO t VALUES (8, 'eight'); SELECT 1/0`,
    'SELECT id FROM t ORDER BY id',
    'DELETE FROM t WHERE id > 2',
  ],
  'ROLLBACK in the middle of a text': [`INSERT INTO t VALUES (7, 'x'); ROLLBACK; SELECT count(*) FROM t`],
  'an error inside of a transaction of a text': [
    'BEGIN; SELECT 1/0; COMMIT',
    'SELECT 1',
    'COMMIT',
    'SELECT 1',
  ],
  'statements after an error, up to ROLLBACK': [
    'BEGIN',
    'SELECT 1/0',
    'SELECT 1',
    'SELEC',
    '',
    'BEGIN',
    'SET timezone = UTC',
    'ROLLBACK',
    'SELECT 1',
  ],
  'COMMIT of a failed transaction': ['BEGIN', 'SELECT 1/0', 'COMMIT', 'COMMIT'],
  'BEGIN twice, and ends without a beginning': [
    'BEGIN',
    'BEGIN',
    'COMMIT',
    'COMMIT',
    'ROLLBACK',
    'END',
    'ABORT',
  ],
  'START TRANSACTION with its own tag': ['START TRANSACTION', 'START TRANSACTION READ ONLY', 'ROLLBACK'],
  'AND CHAIN': [
    'BEGIN READ ONLY',
    'COMMIT AND CHAIN',
    `INSERT INTO t VALUES (9, 'x')`,
    'ROLLBACK AND CHAIN',
    'SELECT 1',
    'ROLLBACK',
    'COMMIT AND CHAIN',
    'ROLLBACK AND CHAIN',
    'SELECT 1; COMMIT AND CHAIN',
    'SELECT 1',
  ],
  'AND CHAIN after an error': ['BEGIN', 'SELECT 1/0', 'COMMIT AND CHAIN', 'SELECT 1', 'COMMIT'],
  'a READ ONLY transaction': [
    'BEGIN READ ONLY',
    'SELECT count(*) FROM t',
    `UPDATE t SET v = 'x'`,
    'ROLLBACK',
    'BEGIN READ ONLY',
    'SELECT id FROM t FOR UPDATE',
    'ROLLBACK',
    'BEGIN READ ONLY',
    'CREATE TABLE u (id int)',
    'ROLLBACK',
    'BEGIN READ WRITE',
    'COMMIT',
  ],
  'settings of a transaction that is rolled back': [
    `SET timezone = 'UTC'`,
    'BEGIN',
    `SET timezone = 'Europe/Rome'`,
    'SHOW timezone',
    'ROLLBACK',
    'SHOW timezone',
    'BEGIN',
    `SET timezone = 'Asia/Tokyo'`,
    'COMMIT',
    'SHOW timezone',
    'RESET ALL',
    'SHOW timezone',
  ],
  'SET LOCAL': [
    `SET LOCAL datestyle = 'SQL, DMY'`,
    'BEGIN',
    `SET LOCAL datestyle = 'SQL, DMY'`,
    `SELECT date '2026-02-03'`,
    'COMMIT',
    `SELECT date '2026-02-03'`,
    `SET LOCAL datestyle = 'German'; SELECT date '2026-02-03'`,
  ],
  'constraint errors with their details': [
    `INSERT INTO t VALUES (1, 'again')`,
    'INSERT INTO t VALUES (NULL, NULL)',
    `INSERT INTO t VALUES ('x', 'y')`,
  ],
  RETURNING: [
    `INSERT INTO t VALUES (10, 'ten') RETURNING *`,
    `UPDATE t SET v = upper(v) WHERE id = 10 RETURNING v`,
    'DELETE FROM t WHERE id = 10 RETURNING id',
  ],
  upserts: [
    `INSERT INTO t VALUES (1, 'ein') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING v`,
    `INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING`,
    `UPDATE t SET v = 'one' WHERE id = 1`,
  ],
  'writes in CTEs': [
    `WITH n AS (INSERT INTO t VALUES (11, 'eleven') RETURNING id) SELECT id FROM n`,
    'DELETE FROM t WHERE id = 11',
  ],
  'DEALLOCATE ALL': [
    'DEALLOCATE ALL',
    'SELECT 1',
    'BEGIN',
    'DEALLOCATE ALL',
    `INSERT INTO t VALUES (12, 'x')`,
    'DEALLOCATE ALL',
    'ROLLBACK',
    'SELECT 1; DEALLOCATE ALL; SELECT 2',
  ],
  'EXPLAIN of a write': [
    'EXPLAIN (COSTS OFF) DELETE FROM t',
    'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT 1',
    'SELECT count(*) FROM t',
  ],
  'COPY TO STDOUT': [
    'COPY t TO STDOUT',
    `COPY (SELECT 1, NULL, E'a\\tb') TO STDOUT`,
    'COPY t TO STDOUT (FORMAT csv, HEADER)',
    'COPY missing TO STDOUT',
    'SELECT 1; COPY t TO STDOUT; SELECT 2',
    'COPY (SELECT 1/(id - 2) FROM t ORDER BY id) TO STDOUT',
  ],
};

test.each(Object.entries(texts))(
  'a Query message is answered as PostgreSQL answers: %s',
  async (_name, steps) => {
    await pair.same(steps.map(query));
  },
);

test('a Query message answers several Query messages that come at once one after the other', async () => {
  await pair.same([
    step((s) => s.query('SELECT 1').query('SELEC').query('BEGIN').query('SELECT 2').query('COMMIT'), 5),
  ]);
});

test('a Query message answers a refused statement in the middle of a text after the answers before it, and undoes those', async () => {
  const { local } = await pair.play([
    query(`INSERT INTO t VALUES (20, 'x'); SAVEPOINT s; SELECT 1`),
    query('SELECT count(*) FROM t'),
  ]);
  expect(local).toEqual([
    'C INSERT 0 1',
    'E ERROR 0A000 unsupported transaction statement: SAVEPOINT {}',
    'Z I',
    '--',
    'T count: 20 8 -1 0.0 0',
    'D 2',
    'C SELECT 1',
    'Z I',
    '--',
  ]);
});
