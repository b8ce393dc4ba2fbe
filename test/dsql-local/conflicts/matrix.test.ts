/** DSQL's conflict matrix, cell by cell: in both orders of statements and of COMMITs, and with the loser's statement after the winner's COMMIT. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Client, conflict, World } from './world.js';

let world: World;
let setup: Client;
let a: Client;
let b: Client;

beforeAll(async () => {
  world = await World.start();
  setup = await world.connect();
  a = await world.connect();
  b = await world.connect();
  await setup.must('CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, v int)');
  await setup.must('CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)');
  for (const client of [setup, a, b]) await client.refresh();
});

afterAll(async () => {
  await world?.stop();
});

beforeEach(async () => {
  await setup.must('DELETE FROM child');
  await setup.must('DELETE FROM parent');
  await setup.must('INSERT INTO parent VALUES (1, 10, 0), (2, 20, 0)');
});

/** Operations on the row 1, or on a row 3 that both insert. `n` tells the two transactions apart. */
const operations = {
  insert: { sql: 'INSERT INTO parent VALUES (3, 30 + $1, $1)', row: 3, mode: 'strong' },
  delete: { sql: 'DELETE FROM parent WHERE id = 1 AND $1 > 0', row: 1, mode: 'strong' },
  'update key': { sql: 'UPDATE parent SET code = 100 + $1 WHERE id = 1', row: 1, mode: 'strong' },
  'for update': { sql: 'SELECT id FROM parent WHERE id = 1 AND $1 > 0 FOR UPDATE', row: 1, mode: 'strong' },
  'update non-key': { sql: 'UPDATE parent SET v = $1 WHERE id = 1', row: 1, mode: 'weak' },
  'for key share': {
    sql: 'SELECT id FROM parent WHERE id = 1 AND $1 > 0 FOR KEY SHARE',
    row: 1,
    mode: 'share',
  },
  'insert child': { sql: 'INSERT INTO child VALUES ($1, 1)', row: 1, mode: 'share' },
} as const;

type Name = keyof typeof operations;
const names = Object.keys(operations) as Name[];

function excludes(one: Name, other: Name): boolean {
  const [x, y] = [operations[one], operations[other]];
  if (x.row !== y.row) return false;
  if (x.mode === 'strong' || y.mode === 'strong') return true;
  return x.mode === 'weak' && y.mode === 'weak';
}

const orders = ['winner first', 'loser first', 'loser after the commit'] as const;

describe.each(names)('%s commits first', (first) => {
  describe.each(names)('before %s', (second) => {
    it.each(orders)('has the outcome of the matrix, statements in the order: %s', async (order) => {
      await a.must('BEGIN');
      await b.must('BEGIN');
      // Both have their snapshots before anything is changed.
      await a.must('SELECT count(*) FROM parent');
      await b.must('SELECT count(*) FROM parent');
      const runA = (): Promise<unknown> => a.run(operations[first].sql, [1]);
      const runB = (): Promise<unknown> => b.run(operations[second].sql, [2]);
      const done = { ok: true, count: 1, rows: expect.anything() };
      if (order === 'loser first') {
        expect(await runB()).toEqual(done);
        expect(await runA()).toEqual(done);
      } else {
        expect(await runA()).toEqual(done);
        if (order === 'winner first') expect(await runB()).toEqual(done);
      }
      expect(await a.run('COMMIT')).toMatchObject({ ok: true });
      if (order === 'loser after the commit') expect(await runB()).toEqual(done);
      expect(await b.run('COMMIT')).toMatchObject(excludes(first, second) ? conflict : { ok: true });
      expect(world.troubles).toEqual([]);
    });
  });
});
