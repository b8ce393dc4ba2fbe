/**
 * Claims of transactions on rows and keys, and which exclude each other: DSQL's conflict matrix. Claims of committed
 * transactions are kept as long as a transaction is open that has not seen them.
 */
import { type Change, recordValues } from './changes.js';
import type { Relation } from './relations.js';

/** `strong`: INSERT, DELETE, UPDATE of a key, FOR UPDATE. `weak`: UPDATE of other columns. `share`: FOR KEY SHARE, a foreign key's check. */
export type ClaimMode = 'strong' | 'weak' | 'share';

/** A row or a key, by the values of a unique index's columns. */
export interface Claim {
  readonly key: string;
  readonly mode: ClaimMode;
}

interface Committed {
  readonly commit: number;
  readonly mode: ClaimMode;
}

/** Beyond, the oldest are forgotten; a transaction older than those can no longer commit. */
const mostClaims = 200_000;

export class Claims {
  readonly #byKey = new Map<string, Committed[]>();
  /** In the order of their commits. */
  #keys: { readonly key: string; readonly commit: number }[] = [];
  #forgotten = 0;

  get size(): number {
    return this.#keys.length;
  }

  add(commit: number, claims: readonly Claim[]): void {
    for (const { key, mode } of claims) {
      const committed = this.#byKey.get(key);
      if (committed === undefined) this.#byKey.set(key, [{ commit, mode }]);
      else committed.push({ commit, mode });
      this.#keys.push({ key, commit });
    }
    if (this.#keys.length > mostClaims)
      this.forgetUpTo(this.#keys[this.#keys.length - mostClaims]?.commit ?? commit);
  }

  /** Forgets what every open transaction has seen. */
  forgetUpTo(commit: number): void {
    const kept = this.#keys.findIndex((one) => one.commit > commit);
    const gone = kept === -1 ? this.#keys : this.#keys.slice(0, kept);
    if (gone.length === 0) return;
    for (const { key } of gone) {
      const left = this.#byKey.get(key)?.filter((one) => one.commit > commit) ?? [];
      if (left.length === 0) this.#byKey.delete(key);
      else this.#byKey.set(key, left);
    }
    this.#keys = kept === -1 ? [] : this.#keys.slice(kept);
    this.#forgotten = commit;
  }

  /** True if a transaction with this snapshot and these claims may not commit. */
  conflictWith(snapshot: number, claims: readonly Claim[]): boolean {
    if (claims.length > 0 && snapshot < this.#forgotten) return true;
    return claims.some((mine) =>
      this.#byKey.get(mine.key)?.some(({ commit, mode }) => commit > snapshot && exclude(mine.mode, mode)),
    );
  }
}

function exclude(one: ClaimMode, other: ClaimMode): boolean {
  return one === 'strong' || other === 'strong' || (one === 'weak' && other === 'weak');
}

/** Claims of a changed row: itself, its keys, and its parents' keys. */
export function claimsOfChange(relation: Relation, change: Change): Claim[] {
  const { operation, before, after } = change;
  if (operation === 'INSERT')
    return [...keysOf(relation, after, 'strong', false), ...parentsOf(relation, undefined, after)];
  if (operation === 'DELETE') return keysOf(relation, before, 'strong', true);
  const isKeyed = changesKey(relation, before, after);
  return [
    ...(isKeyed ? keysOf(relation, before, 'strong', true) : [identityOf(relation, before, 'weak')]),
    ...(isKeyed ? keysOf(relation, after, 'strong', false) : []),
    ...parentsOf(relation, before, after),
  ];
}

/** Claims of a row that FOR UPDATE or FOR KEY SHARE has locked. */
export function claimsOfLock(relation: Relation, row: string, mode: 'strong' | 'share'): Claim[] {
  return keysOf(relation, row, mode, true);
}

/** One claim for each unique key of the row; a row without any is known by its whole text, where it existed before. */
function keysOf(relation: Relation, row: string, mode: ClaimMode, isExisting: boolean): Claim[] {
  const values = recordValues(row);
  const keys = relation.uniqueKeys.flatMap((columns) => claimOf(relation.id, columns, values, mode));
  if (keys.length > 0 || !isExisting) return keys;
  return [identityOf(relation, row, mode)];
}

/** By its primary key, by its first unique key, or by its whole text. */
function identityOf({ id, primaryKey, uniqueKeys }: Relation, row: string, mode: ClaimMode): Claim {
  const values = recordValues(row);
  const columns = [primaryKey, ...uniqueKeys].find(
    (key) => key.length > 0 && key.every((place) => values[place] !== null),
  );
  return columns === undefined
    ? { key: `${id} row ${row}`, mode }
    : {
        key: keyText(
          id,
          columns,
          columns.map((place) => values[place] ?? null),
        ),
        mode,
      };
}

/** PostgreSQL looks a parent up only where the foreign key is new or has changed. */
function parentsOf({ foreignKeys }: Relation, before: string | undefined, after: string): Claim[] {
  if (foreignKeys.length === 0) return [];
  const values = recordValues(after);
  const old = before === undefined ? undefined : recordValues(before);
  return foreignKeys.flatMap(({ columns, parent, parentColumns }) => {
    const key = columns.map((place) => values[place] ?? null);
    if (key.includes(null) || (old !== undefined && columns.every((place) => old[place] === values[place])))
      return [];
    return [{ key: keyText(parent, parentColumns, key), mode: 'share' as const }];
  });
}

function claimOf(
  table: number,
  columns: readonly number[],
  values: readonly (string | null)[],
  mode: ClaimMode,
): Claim[] {
  const key = columns.map((place) => values[place] ?? null);
  return key.includes(null) ? [] : [{ key: keyText(table, columns, key), mode }];
}

/** Columns in the order of their places, so that an index and a foreign key mean the same. */
function keyText(table: number, columns: readonly number[], values: readonly (string | null)[]): string {
  const pairs = columns.map((place, index) => [place, values[index]] as const).sort(([a], [b]) => a - b);
  return `${table} ${JSON.stringify(pairs)}`;
}

function changesKey({ uniqueKeys }: Relation, before: string, after: string): boolean {
  const old = recordValues(before);
  const values = recordValues(after);
  return uniqueKeys.some((key) => key.some((place) => old[place] !== values[place]));
}
