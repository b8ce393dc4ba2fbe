/** Writes console results in the formats that the client requested. */
import { writeNotice } from '../../wire/error-fields.js';
import { noData, portalSuspended } from '../../wire/fixed-messages.js';
import type { MessageWriter } from '../../wire/message-writer.js';
import { writeCommandComplete, writeDataRow, writeRowDescription } from '../../wire/rows.js';
import { describeColumns, encodeRow, type ResultColumn } from './result-values.js';
import type { Outcome } from './run-command.js';

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

/** Writes the answer to one command of a simple query. */
export function writeOutcome(
  writer: MessageWriter,
  columns: readonly ResultColumn[] | undefined,
  { rows, tag, notice }: Outcome,
): void {
  if (notice !== undefined) writeNotice(writer, notice);
  if (columns !== undefined) {
    writeDescription(writer, columns);
    for (const row of rows) writeDataRow(writer, encodeRow(columns, row, allText));
  }
  writeCommandComplete(writer, tag);
}

/** A result that can be fetched in parts. */
export class ResultCursor {
  readonly #columns: readonly ResultColumn[];
  readonly #formats: readonly number[];
  readonly #outcome: Pick<Outcome, 'rows' | 'tag'>;
  #written = 0;

  constructor(
    columns: readonly ResultColumn[] | undefined,
    formats: readonly number[],
    outcome: Pick<Outcome, 'rows' | 'tag'>,
  ) {
    this.#columns = columns ?? [];
    this.#formats = formats;
    this.#outcome = outcome;
  }

  /** Writes up to `maxRows` rows, or all for 0. After exactly `maxRows` rows, it stays open whether there are more. */
  write(writer: MessageWriter, maxRows: number): void {
    const { rows, tag } = this.#outcome;
    const from = this.#written;
    const next = rows.slice(from, maxRows > 0 ? from + maxRows : undefined);
    for (const row of next) writeDataRow(writer, encodeRow(this.#columns, row, this.#formats));
    this.#written += next.length;
    if (next.length > 0 && next.length === maxRows) writer.append(portalSuspended);
    else writeCommandComplete(writer, tag);
  }
}
