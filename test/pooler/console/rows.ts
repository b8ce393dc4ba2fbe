import type { Value } from '../../../src/pooler/console/result-values.js';
import type { Rows } from '../../../src/pooler/console/show.js';

/** All rows of a result. */
export function listOf(rows: Rows): readonly (readonly Value[])[] {
  return Array.from({ length: rows.length }, (_, index) => rows.at(index) ?? []);
}
