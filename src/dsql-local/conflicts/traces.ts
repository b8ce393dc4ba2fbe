/**
 * Rows that committed transactions had locked without changing them. PostgreSQL forgets such locks at COMMIT; in DSQL an
 * older transaction that changes the row conflicts with them all the same. Kept as long as such a transaction is open.
 */
import { type Change, recordValues } from './changes.js';
import type { Relation } from './relations.js';

/** `update`: FOR UPDATE. `key_share`: FOR KEY SHARE, or the check of a foreign key. */
export type LockMode = 'update' | 'key_share';

/** A row by the values of some of its columns; by its whole text where it has no key. */
export interface RowLock {
  readonly table: number;
  readonly mode: LockMode;
  readonly columns: readonly number[];
  readonly values: readonly (string | null)[];
}

interface Trace extends RowLock {
  readonly commit: number;
}

/** More than this many are not kept: the oldest go, and with them the conflicts of transactions that old. */
const largestCount = 100_000;

export class Traces {
  #traces: Trace[] = [];

  get size(): number {
    return this.#traces.length;
  }

  add(commit: number, locks: readonly RowLock[]): void {
    for (const lock of locks) this.#traces.push({ ...lock, commit });
    if (this.#traces.length > largestCount) this.#traces = this.#traces.slice(-largestCount);
  }

  /** Forgets those that are not newer than the oldest open snapshot. */
  forgetBefore(snapshot: number): void {
    if (this.#traces.length === 0 || (this.#traces[0] as Trace).commit > snapshot) return;
    this.#traces = this.#traces.filter(({ commit }) => commit > snapshot);
  }

  /** Those that a transaction with this snapshot has not seen. */
  newerThan(snapshot: number): readonly RowLock[] {
    return this.#traces.filter(({ commit }) => commit > snapshot);
  }
}

/** The row of a table by its primary key, or by its whole text. */
export function lockOf(relation: Relation, row: string, mode: LockMode): RowLock {
  const { id: table, primaryKey } = relation;
  if (primaryKey.length === 0) return { table, mode, columns: [], values: [row] };
  const values = recordValues(row);
  return { table, mode, columns: primaryKey, values: primaryKey.map((place) => values[place] ?? null) };
}

/** The parents' rows that the foreign keys of a changed row refer to. */
export function parentLocks(relation: Relation, { operation, after, before }: Change): RowLock[] {
  if (operation === 'DELETE' || relation.foreignKeys.length === 0) return [];
  const values = recordValues(after);
  const old = operation === 'UPDATE' ? recordValues(before) : undefined;
  return relation.foreignKeys.flatMap(({ columns, parent, parentColumns }) => {
    const key = columns.map((place) => values[place] ?? null);
    // PostgreSQL looks the parent up again only where the key has changed.
    if (key.includes(null) || (old !== undefined && columns.every((place) => old[place] === values[place])))
      return [];
    return [{ table: parent, mode: 'key_share' as const, columns: parentColumns, values: key }];
  });
}

/** Whether a committed lock and a change of its row exclude each other. */
export function conflictsWithChange(lock: RowLock, change: Change, relation: Relation): boolean {
  if (lock.table !== change.table) return false;
  const { operation, before, after } = change;
  if (operation === 'INSERT') return lock.mode === 'update' && isRow(lock, after);
  if (!isRow(lock, before) && !(after !== '' && lock.mode === 'update' && isRow(lock, after))) return false;
  return lock.mode === 'update' || operation === 'DELETE' || changesKey(change, relation);
}

/** Whether two locks are of the same row and exclude each other. */
export function excludes(one: RowLock, other: RowLock): boolean {
  return (
    one.table === other.table &&
    (one.mode === 'update' || other.mode === 'update') &&
    one.columns.join() === other.columns.join() &&
    one.values.every((value, index) => value === other.values[index])
  );
}

function isRow({ columns, values }: RowLock, row: string): boolean {
  if (columns.length === 0) return values[0] === row;
  const found = recordValues(row);
  return columns.every((place, index) => found[place] === values[index]);
}

function changesKey({ operation, before, after }: Change, { keyColumns }: Relation): boolean {
  if (operation !== 'UPDATE') return true;
  const old = recordValues(before);
  const values = recordValues(after);
  return [...keyColumns].some((place) => old[place] !== values[place]);
}
