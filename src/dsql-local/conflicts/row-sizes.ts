/** DSQL's limits of one row: the size of keys, of columns and of the whole. */
import { deflateRawSync } from 'node:zlib';
import { type Change, recordValues } from './changes.js';
import type { Relation } from './relations.js';

/** Bytes, as others have observed them on a cluster. */
const largestKey = 1_981;
/** Each further column of a key takes so many of them. */
const columnOverhead = 7;
const largestColumn = 1_048_576;
const largestRow = 2 * 1_048_576;
const mostKeyColumns = 16;

export type SizeExcess = 'key' | 'row';

/** A row or a key is too large. */
export class SizeExceeded extends Error {
  readonly excess: SizeExcess;

  constructor(excess: SizeExcess) {
    super(`${excess} too large`);
    this.excess = excess;
  }
}

/** Spares most rows the look at their columns. */
export function mayBeTooLarge({ after }: Change): boolean {
  return after.length > (largestKey - mostKeyColumns * columnOverhead) / 3;
}

/** Throws a `SizeExceeded`. */
export function checkSizeOf({ indexes, primaryKey }: Relation, change: Change): void {
  if (!mayBeTooLarge(change)) return;
  const values = recordValues(change.after);
  const sizes = values.map(sizeOfValue);
  for (const index of indexes) {
    // A secondary key carries the primary key.
    const columns = new Set([...index, ...primaryKey]);
    let size = (columns.size - 1) * columnOverhead;
    for (const place of columns) size += sizes[place] ?? 0;
    if (size > largestKey) throw new SizeExceeded('key');
  }
  let row = 0;
  for (const [place, size] of sizes.entries()) {
    if (size <= largestColumn / 4) {
      row += size;
      continue;
    }
    const compressed = compressedSize(values[place] ?? '');
    if (compressed > largestColumn) throw new SizeExceeded('row');
    row += compressed;
  }
  if (row > largestRow) throw new SizeExceeded('row');
}

/** Bytea stands as hexadecimal digits. */
function sizeOfValue(value: string | null): number {
  if (value === null) return 0;
  const size = Buffer.byteLength(value);
  return value.startsWith('\\x') ? size / 2 : size;
}

/** Limits hold for what is left after compression; DSQL's way of it is not known. */
function compressedSize(value: string): number {
  const bytes = value.startsWith('\\x') ? Buffer.from(value.slice(2), 'hex') : Buffer.from(value);
  return Math.min(bytes.length, deflateRawSync(bytes, { level: 1 }).length);
}
