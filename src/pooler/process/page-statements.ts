/** The statements of the page: the costliest and the slowest of a process, and those of several processes together. */
import type { StatementRecord } from '../../dashboard/observation.js';
import { FirstFew } from '../../kernel/first-few.js';
import { type QueryBook, type QueryCount, quantileOf } from '../servers/query-stats.js';
import { addCounts } from './page-digest-sums.js';

/** Numbers of one process for a statement: its percentile is found when the calls of all processes are known. */
export interface StatementDigest extends Omit<StatementRecord, 'meanMs' | 'p99Ms'> {
  readonly buckets: readonly number[];
}

/** Longer texts are cut, as all of them are sent again when one number has changed; those that begin alike are one row. */
const longestText = 500;
/** A statement may be among the costliest of all processes, and not be among those of each. */
const sentForEachShown = 4;

/** `top`: how many of the costliest are shown, and how many of the slowest. Undefined where nothing is counted. */
export function shownStatements(
  book: QueryBook | undefined,
  top: number,
): readonly StatementDigest[] | undefined {
  if (book === undefined) return undefined;
  const costliest = new FirstFew<QueryCount>(top * sentForEachShown, ({ totalMs }) => -totalMs);
  const slowest = new FirstFew<QueryCount>(top, ({ longestMs }) => -longestMs);
  for (const entry of book.entries()) {
    if (entry.calls === 0) continue;
    costliest.add(entry);
    slowest.add(entry);
  }
  return [...new Set([...costliest.list, ...slowest.list])].map(statementDigest);
}

/** As the page shows it. */
export function pageText(text: string): string {
  return text.length <= longestText ? text : `${text.slice(0, longestText)} ...`;
}

function statementDigest(entry: QueryCount): StatementDigest {
  const { database, user, text, calls, errors, rows, totalMs, longestMs, waitMs, buckets } = entry;
  return {
    ...{ database, user, text: pageText(text), calls, errors, rows, totalMs, longestMs, waitMs },
    buckets: [...buckets],
  };
}

/** Undefined where no process counts. */
export function mergeStatements(
  all: readonly (readonly StatementDigest[] | undefined)[],
  top: number,
): readonly StatementRecord[] | undefined {
  const counted = all.filter((of) => of !== undefined);
  if (counted.length === 0) return undefined;
  const byName = new Map<string, StatementDigest>();
  for (const one of counted.flat()) {
    const key = JSON.stringify([one.database, one.user, one.text]);
    const known = byName.get(key);
    byName.set(key, known === undefined ? one : addStatements(known, one));
  }
  const costliest = [...byName.values()].sort((one, other) => other.totalMs - one.totalMs);
  const slowest = [...byName.values()].sort((one, other) => other.longestMs - one.longestMs);
  const shown = new Set([...costliest.slice(0, top), ...slowest.slice(0, top)]);
  return [...shown].map(statementRecord);
}

function addStatements(one: StatementDigest, other: StatementDigest): StatementDigest {
  const buckets = [...one.buckets];
  addCounts(buckets, other.buckets);
  return {
    ...one,
    calls: one.calls + other.calls,
    errors: one.errors + other.errors,
    rows: one.rows + other.rows,
    totalMs: one.totalMs + other.totalMs,
    longestMs: Math.max(one.longestMs, other.longestMs),
    waitMs: one.waitMs + other.waitMs,
    buckets,
  };
}

function statementRecord({ buckets, ...statement }: StatementDigest): StatementRecord {
  const { totalMs, longestMs, calls } = statement;
  return {
    ...statement,
    meanMs: totalMs / Math.max(1, calls),
    p99Ms: Math.min(longestMs, quantileOf(buckets, 0.99)),
  };
}
