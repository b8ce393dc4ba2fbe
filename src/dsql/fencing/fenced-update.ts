/**
 * Updates that change a row only if it is as the caller believes. DSQL has no lock that a slow process could hold too long:
 * a token in the row, which the caller got when it took charge, keeps those out who are no longer in charge.
 */
import { quoteName } from '../../sql/quote.js';
import { AmbiguousRowError, type ColumnValues, ConditionFailedError, show } from './errors.js';
import { checkUpdate, Parameters, quoteTable, type TableName } from './statement.js';

/** A pool or a client of node-postgres, or what works as they do. */
export interface QueryRunner {
  query(
    text: string,
    values: unknown[],
  ): Promise<{ readonly rows: Record<string, unknown>[]; readonly rowCount: number | null }>;
}

/** One row, what it must be, and what it becomes. */
export interface ConditionalUpdate {
  /** `'shards'`, or with its schema `['app', 'shards']`. */
  readonly table: TableName;
  /** All columns of a unique key, with the row's values. */
  readonly key: ColumnValues;
  /** Columns that must have these values; null stands for NULL. */
  readonly expected: ColumnValues;
  /** Columns that get these values. */
  readonly set: ColumnValues;
  /** Name of the row in errors. Default: the table and the key. */
  readonly entity?: string | undefined;
}

/**
 * Changes one row if it is as expected, in one statement. False: it is not, or there is no such row, and nothing was
 * changed. A key that holds for several rows is an `AmbiguousRowError`, and nothing was changed either.
 *
 * @example
 * ```ts
 * import { compareAndSet } from 'headgate/dsql';
 * import type { Pool } from 'headgate';
 *
 * async function takeJob(pool: Pool, id: string, worker: string): Promise<boolean> {
 *   return compareAndSet(pool, {
 *     table: 'jobs',
 *     key: { id },
 *     expected: { owner: null },
 *     set: { owner: worker },
 *   });
 * }
 * ```
 */
export async function compareAndSet(client: QueryRunner, update: ConditionalUpdate): Promise<boolean> {
  if (await changeRow(client, update)) return true;
  await look(client, update);
  return false;
}

/**
 * `compareAndSet` with a token that the caller holds: a caller that finds another one is no longer in charge, and gets a
 * `ConditionFailedError` with what was expected and found.
 *
 * @example
 * ```ts
 * import { fencedUpdate, type TransactionClient } from 'headgate/dsql';
 *
 * async function saveShard(client: TransactionClient, shardId: number, rangeId: string, data: Buffer): Promise<void> {
 *   await fencedUpdate(client, {
 *     table: 'shards',
 *     key: { shard_id: shardId },
 *     expected: { range_id: rangeId },
 *     set: { data },
 *   });
 * }
 * ```
 */
export async function fencedUpdate(client: QueryRunner, update: ConditionalUpdate): Promise<void> {
  if (await changeRow(client, update)) return;
  throw new ConditionFailedError(entityOf(update), { ...update.expected }, await look(client, update));
}

/** The count makes sure that several rows are left alone, outside of a transaction, too, where an error would come too late. */
async function changeRow(client: QueryRunner, update: ConditionalUpdate): Promise<boolean> {
  checkUpdate(update);
  const table = quoteTable(update.table);
  const parameters = new Parameters();
  const text =
    `UPDATE ${table} SET ${parameters.assignments(update.set)} ` +
    `WHERE ${parameters.conditions(update.key)} AND ${parameters.conditions(update.expected)} ` +
    `AND (SELECT count(*) FROM ${table} WHERE ${parameters.conditions(update.key)}) = 1`;
  const { rowCount } = await client.query(text, parameters.values);
  if (rowCount !== null && rowCount > 1) throw new AmbiguousRowError(entityOf(update));
  return rowCount === 1;
}

/** The present values of the expected columns. */
async function look(client: QueryRunner, update: ConditionalUpdate): Promise<ColumnValues | undefined> {
  const parameters = new Parameters();
  const columns = Object.keys(update.expected).map(quoteName).join(', ');
  const text = `SELECT ${columns} FROM ${quoteTable(update.table)} WHERE ${parameters.conditions(update.key)} LIMIT 2`;
  const { rows } = await client.query(text, parameters.values);
  if (rows.length > 1) throw new AmbiguousRowError(entityOf(update));
  return rows[0];
}

export function entityOf(update: Pick<ConditionalUpdate, 'table' | 'key' | 'entity'>): string {
  const { table, key, entity } = update;
  if (entity !== undefined) return entity;
  const name = typeof table === 'string' ? table : table.join('.');
  return `${name} (${Object.entries(key)
    .map(([column, value]) => `${column} ${show(value)}`)
    .join(', ')})`;
}
