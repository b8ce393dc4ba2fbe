/** Writes console results in the formats that the client requested. */
import { noData, portalSuspended } from '../../wire/fixed-messages.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { writeCommandComplete, writeDataRow, writeRowDescription } from '../../wire/rows.js';
import { describeColumns, encodeRow, type ResultColumn } from './result-values.js';
import type { Outcome } from './run-command.js';
import type { Rows } from './show.js';

const allText: readonly number[] = [];

/** RowDescription, or NoData. */
export function writeDescription(
  writer: MessageWriter,
  columns: readonly ResultColumn[] | undefined,
  formats: readonly number[] = allText,
): void {
  if (columns === undefined) writer.append(noData);
  else writeRowDescription(writer, describeColumns(columns, formats));
}

/** Most rows that are written before other clients are served. */
const mostAtOnce = 64;

/** A result that can be fetched in parts, and is written in portions. */
export class ResultCursor {
  readonly #columns: readonly ResultColumn[];
  readonly #formats: readonly number[];
  readonly #rows: Rows;
  readonly #tag: string;
  #written = 0;
  /** Rows up to which the present part goes. */
  #end = 0;
  #isSuspending = false;

  constructor(
    columns: readonly ResultColumn[] | undefined,
    { rows, tag }: Pick<Outcome, 'rows' | 'tag'>,
    formats: readonly number[] = allText,
  ) {
    this.#columns = columns ?? [];
    this.#formats = formats;
    this.#rows = rows;
    this.#tag = tag;
  }

  /** The next part has up to `maxRows` rows, or all for 0. After exactly `maxRows` rows, it stays open whether there are more. */
  fetch(maxRows: number): void {
    const left = this.#rows.length - this.#written;
    this.#isSuspending = maxRows > 0 && left >= maxRows;
    this.#end = this.#written + (this.#isSuspending ? maxRows : left);
  }

  /** Writes a portion of the part. Returns whether the part is over. */
  write(writer: MessageWriter): boolean {
    const end = Math.min(this.#end, this.#written + mostAtOnce);
    while (this.#written < end) {
      const row = this.#rows.at(this.#written++) ?? [];
      writeDataRow(writer, encodeRow(this.#columns, row, this.#formats));
    }
    if (end < this.#end) return false;
    if (this.#isSuspending) writer.append(portalSuspended);
    else writeCommandComplete(writer, this.#tag);
    return true;
  }
}
