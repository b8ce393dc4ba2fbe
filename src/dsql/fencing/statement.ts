/** The text of statements with quoted names, and their values as parameters. */

import { OptionReader } from '../../kernel/option-reader.js';
import { quoteName } from '../../sql/quote.js';
import type { ColumnValues } from './errors.js';

/** A name, or a schema and a name. A dot in a name is part of the name. */
export type TableName = string | readonly [schema: string, table: string];

/** PostgreSQL cuts longer names off, and two that differ beyond are the same then. */
const longestName = 63;

/** Names and values of one update, checked: all problems at once. */
export function checkUpdate(update: {
  readonly table: TableName;
  readonly key: ColumnValues;
  readonly expected?: ColumnValues;
  readonly set?: ColumnValues;
}): void {
  const read = new OptionReader(update);
  const names = typeof update.table === 'string' ? [update.table] : update.table;
  if (!Array.isArray(names) || names.length < 1 || names.length > 2 || !names.every(isName))
    read.problem('table', 'must be a name, or an array of a schema and a name');
  for (const part of ['key', 'expected', 'set'] as const) {
    const values = update[part];
    if (values === undefined && part !== 'key') continue;
    if (typeof values !== 'object' || values === null || Object.keys(values).length === 0) {
      read.problem(part, 'must be an object with at least one column');
      continue;
    }
    for (const [column, value] of Object.entries(values)) {
      if (!isName(column)) read.problem(part, `has a name that is not a column's: ${column.slice(0, 40)}`);
      // A parameter that is undefined would be sent as NULL.
      if (value === undefined)
        read.problem(`${part}.${column.slice(0, 40)}`, 'is undefined; use null for NULL');
    }
  }
  read.throwIfAnyProblem('the update');
}

function isName(name: unknown): boolean {
  return (
    typeof name === 'string' && name !== '' && !name.includes('\0') && Buffer.byteLength(name) <= longestName
  );
}

export function quoteTable(table: TableName): string {
  return (typeof table === 'string' ? [table] : table).map(quoteName).join('.');
}

/** Collects the values of a statement while its text is written. */
export class Parameters {
  readonly values: unknown[] = [];

  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  /** `=` can use an index, and never holds for NULL. */
  conditions(columns: ColumnValues): string {
    return Object.entries(columns)
      .map(([name, value]) => `${quoteName(name)} ${value === null ? 'IS NULL' : `= ${this.add(value)}`}`)
      .join(' AND ');
  }

  assignments(columns: ColumnValues): string {
    return Object.entries(columns)
      .map(([name, value]) => `${quoteName(name)} = ${this.add(value)}`)
      .join(', ');
  }
}
