/** `optimisticUpdate`: read a row, change it, write it if it has not changed meanwhile, and else begin anew. */
import { OptionReader } from '../../kernel/option-reader.js';
import type { TransactionPool } from '../transaction/pg-shapes.js';
import { type TransactionOptions, transaction } from '../transaction/transaction.js';
import {
  AmbiguousRowError,
  type ColumnValues,
  ConditionFailedError,
  OptimisticConflictError,
} from './errors.js';
import { compareAndSet, entityOf, type QueryRunner } from './fenced-update.js';
import { checkUpdate, Parameters, quoteTable, type TableName } from './statement.js';

/** A row as it was read. */
export type Row = Record<string, unknown>;

/** Which row, and how it changes. */
export interface OptimisticUpdate {
  /** `'users'`, or with its schema `['app', 'users']`. */
  readonly table: TableName;
  /** All columns of a unique key, with the row's values. */
  readonly key: ColumnValues;
  /** The column that counts changes: a number, which every writer raises. Default: `version`. */
  readonly version?: string | undefined;
  /** The columns to change and their values; undefined to leave the row as it is. May run several times. */
  readonly change: (row: Row) => ColumnValues | undefined | Promise<ColumnValues | undefined>;
  /** Name of the row in errors. Default: the table and the key. */
  readonly entity?: string | undefined;
}

/**
 * Reads a row, lets `change` say what becomes of it, and writes that if the row has not changed meanwhile; else it begins
 * anew, as `transaction` does. Resolves to the row as it was read and changed. Without a row: `ConditionFailedError`.
 *
 * Protects against lost updates, not against a process that is no longer in charge: for that, see `fencedUpdate`.
 *
 * @example
 * ```ts
 * import { optimisticUpdate } from 'headgate/dsql';
 * import type { Pool } from 'headgate';
 *
 * async function deposit(pool: Pool, id: string, cents: number): Promise<void> {
 *   await optimisticUpdate(pool, {
 *     table: 'accounts',
 *     key: { id },
 *     change: (account) => ({ cents: Number(account.cents) + cents }),
 *   });
 * }
 * ```
 */
export async function optimisticUpdate(
  pool: TransactionPool,
  update: OptimisticUpdate,
  options: TransactionOptions = {},
): Promise<Row> {
  const { table, key, version: column = 'version', change } = update;
  checkUpdate({ table, key, expected: { [column]: 0 } });
  const read = new OptionReader(update);
  read.callback('change', true);
  read.throwIfAnyProblem('the update');
  const entity = entityOf(update);
  return transaction(
    pool,
    async (client) => {
      const row = await readRow(client as QueryRunner, update, entity);
      const version = row[column];
      const next = nextVersion(version, entity, column);
      const set = await change({ ...row });
      if (set === undefined) return row;
      const changed = { ...set, [column]: next };
      const isSet = await compareAndSet(client as QueryRunner, {
        table,
        key,
        expected: { [column]: version },
        set: changed,
        entity,
      });
      if (!isSet) throw new OptimisticConflictError(entity, version);
      return { ...row, ...changed };
    },
    options,
  );
}

async function readRow(client: QueryRunner, { table, key }: OptimisticUpdate, entity: string): Promise<Row> {
  const parameters = new Parameters();
  const text = `SELECT * FROM ${quoteTable(table)} WHERE ${parameters.conditions(key)} LIMIT 2`;
  const { rows } = await client.query(text, parameters.values);
  if (rows.length > 1) throw new AmbiguousRowError(entity);
  if (rows[0] === undefined) throw new ConditionFailedError(entity, key, undefined);
  return rows[0];
}

/** node-postgres reads a bigint as a text; the next one has the same type. */
function nextVersion(version: unknown, entity: string, column: string): unknown {
  if (typeof version === 'number' && Number.isSafeInteger(version)) return version + 1;
  if (typeof version === 'bigint') return version + 1n;
  if (typeof version === 'string' && /^-?\d{1,19}$/.test(version)) return String(BigInt(version) + 1n);
  throw new TypeError(`${entity}: the column ${column} must be a whole number that is not null.`);
}
