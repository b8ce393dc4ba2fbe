// DSQL's conflict matrix: two transactions on one row, in every order of statements and COMMITs.
import type pg from 'pg';
import { type DsqlTarget, patiently } from './target.js';

/** Operations on the row 1, or on a row 3 that both insert. `$1` tells the two transactions apart. */
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

type Operation = keyof typeof operations;

export const operationNames = Object.keys(operations) as Operation[];
export const orders = ['winner first', 'loser first', 'loser after the commit'] as const;

export interface Cell {
  /** Commits first. */
  readonly first: Operation;
  readonly second: Operation;
  readonly order: (typeof orders)[number];
}

export const cells: readonly Cell[] = operationNames.flatMap((first) =>
  operationNames.flatMap((second) => orders.map((order) => ({ first, second, order }))),
);

export function excludes({ first, second }: Cell): boolean {
  const [x, y] = [operations[first], operations[second]];
  if (x.row !== y.row) return false;
  if (x.mode === 'strong' || y.mode === 'strong') return true;
  return x.mode === 'weak' && y.mode === 'weak';
}

export interface MatrixClients {
  readonly setup: pg.Client;
  readonly a: pg.Client;
  readonly b: pg.Client;
}

export async function prepareMatrix(target: DsqlTarget): Promise<MatrixClients> {
  const [setup, a, b] = [await target.connect(), await target.connect(), await target.connect()];
  await patiently(setup, 'CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, v int)');
  await patiently(setup, 'CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)');
  // The first statement after a change of the schema may meet OC001.
  for (const client of [setup, a, b]) await patiently(client, 'SELECT count(*) FROM parent');
  return { setup, a, b };
}

/** How the second COMMIT ends, or the statement that failed before it: SQLSTATE, undefined where all went well, and message. */
export async function runCell(
  { setup, a, b }: MatrixClients,
  { first, second, order }: Cell,
): Promise<[code: string | undefined, message: string]> {
  await patiently(setup, 'DELETE FROM child');
  await patiently(setup, 'DELETE FROM parent');
  await patiently(setup, 'INSERT INTO parent VALUES (1, 10, 0), (2, 20, 0)');
  const runA = (): Promise<void> => one(a, operations[first].sql, 1);
  const runB = (): Promise<void> => one(b, operations[second].sql, 2);
  try {
    await a.query('BEGIN');
    await b.query('BEGIN');
    // Both have their snapshots before anything is changed.
    await a.query('SELECT count(*) FROM parent');
    await b.query('SELECT count(*) FROM parent');
    if (order === 'loser first') await runB();
    await runA();
    if (order === 'winner first') await runB();
    await a.query('COMMIT');
    if (order === 'loser after the commit') await runB();
    await b.query('COMMIT');
    return [undefined, ''];
  } catch (error) {
    const { code = 'none', message } = error as { code?: string; message: string };
    return [code, message];
  } finally {
    await a.query('ROLLBACK');
    await b.query('ROLLBACK');
  }
}

/** Each operation concerns one row, whatever the other one does. */
async function one(client: pg.Client, sql: string, number: number): Promise<void> {
  const { rowCount } = await client.query(sql, [number]);
  if (rowCount !== 1) throw Object.assign(new Error(`${rowCount} rows, not 1: ${sql}`), { code: 'rows' });
}
