/** First row of the answer to one of the pooler's own queries, collected from its pieces. */
import { readDataRow } from '../../wire/rows.js';

/** Limit in bytes; a longer row counts as none. */
const longestRow = 65_536;

export class OwnRow {
  #pieces: Buffer[] = [];
  #size = 0;
  #isComplete = false;

  /** Adds a piece of a DataRow; only pieces of the first row are kept. */
  add(source: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#isComplete) return;
    this.#size += end - start;
    if (this.#size <= longestRow) this.#pieces.push(Buffer.from(source.subarray(start, end)));
    this.#isComplete = isLast;
  }

  /** Values of the row as bytes; undefined where there was no row, or one that is too long. */
  values(): readonly (Buffer | null)[] | undefined {
    if (!this.#isComplete || this.#size > longestRow) return undefined;
    const row = Buffer.concat(this.#pieces);
    return readDataRow(row, 0, row.length);
  }
}
