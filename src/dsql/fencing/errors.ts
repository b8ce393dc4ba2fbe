/** Errors of updates that depend on the row's present values. */
import { HeadgateError } from '../../kernel/errors.js';

/** Columns and their values. */
export type ColumnValues = Readonly<Record<string, unknown>>;

/** A fenced update found other values than expected, or no row. Nothing was changed. Not to be retried: someone else is in charge. */
export class ConditionFailedError extends HeadgateError {
  /** Which row, for a log. */
  readonly entity: string;
  readonly expected: ColumnValues;
  /** The values of the same columns; undefined where there is no such row. */
  readonly found: ColumnValues | undefined;

  constructor(entity: string, expected: ColumnValues, found: ColumnValues | undefined) {
    super(
      'HG_CONDITION_FAILED',
      `${entity}: expected ${describe(expected)}, found ${found === undefined ? 'no row' : describe(found)}. Nothing was changed.`,
    );
    this.entity = entity;
    this.expected = expected;
    this.found = found;
  }
}

/** The key of an update holds for more than one row. Nothing was changed. */
export class AmbiguousRowError extends HeadgateError {
  readonly entity: string;

  constructor(entity: string) {
    super(
      'HG_AMBIGUOUS_ROW',
      `${entity}: the key holds for more than one row, so nothing was changed. Name all columns of a unique key.`,
    );
    this.entity = entity;
  }
}

/** The row was changed between reading and writing. `optimisticUpdate` tries again by itself. */
export class OptimisticConflictError extends HeadgateError {
  constructor(entity: string, version: unknown) {
    super(
      'HG_OPTIMISTIC_CONFLICT',
      `${entity}: changed by another writer since version ${show(version)} was read.`,
    );
  }
}

function describe(values: ColumnValues): string {
  return Object.entries(values)
    .map(([column, value]) => `${column} ${show(value)}`)
    .join(', ');
}

/** Short: a value may be long, or not meant for logs. */
export function show(value: unknown): string {
  if (typeof value === 'string') return value.length > 40 ? `'${value.slice(0, 40)}...'` : `'${value}'`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid date' : value.toISOString();
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return String(value);
}
