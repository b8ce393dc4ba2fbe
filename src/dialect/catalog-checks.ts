/**
 * Queries that decide by the catalog, in the transaction of the statement. Each returns `code` and `message`, or no row.
 *
 * `to_regclass` follows the session's search_path, and is null for a missing table, which PostgreSQL then reports
 * itself.
 */

import type { RangeVar } from 'libpg-query';
import { quoteName, quoteText } from '../sql/quote.js';
import { keyTooLarge, mostKeyBytes } from './constraints.js';
import type { Profile } from './profile.js';
import { storedTypes } from './type-names.js';

const mostIndexesPerTable = 24;

function literals(texts: readonly string[]): string {
  return texts.map(quoteText).join(', ');
}

function relationOid(relation: RangeVar | undefined): string {
  const { schemaname, relname = '' } = relation ?? {};
  const name =
    schemaname === undefined ? quoteName(relname) : `${quoteName(schemaname)}.${quoteName(relname)}`;
  return `pg_catalog.to_regclass(${quoteText(name)})::pg_catalog.oid`;
}

/** Key columns of a type that DSQL doesn't index. A domain counts as its base type. */
export function keyTypeCheck(
  relation: RangeVar | undefined,
  columns: readonly string[],
  profile: Profile,
): string {
  const indexable = Object.entries(storedTypes)
    .filter(([, type]) => type.keyBytes !== undefined)
    .filter(([, type]) => type.keySince === undefined || profile.accepts(type.keySince))
    .map(([internal]) => internal);
  return `SELECT '0A000' AS code,
  'datatype ' || pg_catalog.format_type(coalesce(b.oid, t.oid), NULL) || ' is not supported in a key' AS message
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = nullif(t.typbasetype, 0)
WHERE a.attrelid = ${relationOid(relation)} AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attname IN (${literals(columns)})
  AND coalesce(b.typname, t.typname) NOT IN (${literals(indexable)})
ORDER BY a.attnum LIMIT 1`;
}

/** Declared lengths of the key columns together; a character type's modifier is its length and 4. */
export function keySizeCheck(relation: RangeVar | undefined, columns: readonly string[]): string {
  return `SELECT ${quoteText(keyTooLarge.code)} AS code, ${quoteText(keyTooLarge.message)} AS message
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = ${relationOid(relation)} AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attname IN (${literals(columns)})
HAVING sum(CASE
  WHEN a.atttypid IN ('pg_catalog.varchar'::pg_catalog.regtype, 'pg_catalog.bpchar'::pg_catalog.regtype)
  THEN greatest(a.atttypmod - 4, 0)
  ELSE greatest(a.attlen, 0) END) > ${mostKeyBytes}`;
}

export function indexCountCheck(relation: RangeVar | undefined): string {
  return `SELECT '54000' AS code, 'more than ${mostIndexesPerTable} indexes per table are not allowed' AS message
FROM pg_catalog.pg_index i WHERE i.indrelid = ${relationOid(relation)} HAVING count(*) >= ${mostIndexesPerTable}`;
}

export function primaryKeyColumnCheck(relation: RangeVar | undefined, column: string): string {
  return `SELECT '0A000' AS code, ${quoteText(`cannot drop primary key column ${column}`)} AS message
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::pg_catalog.int2[])
WHERE i.indrelid = ${relationOid(relation)} AND i.indisprimary AND a.attname = ${quoteText(column)}`;
}

export function finishedIndexCheck(relation: RangeVar | undefined, index: string): string {
  return `SELECT '55000' AS code, ${quoteText(`index "${index}" is not valid`)} AS message
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ${relationOid(relation)} AND c.relname = ${quoteText(index)} AND NOT i.indisvalid`;
}

/** An identity that is added to a column of another type than bigint. */
export function bigintColumnCheck(relation: RangeVar | undefined, column: string): string {
  return `SELECT '0A000' AS code, 'datatype ' || pg_catalog.format_type(a.atttypid, NULL)
  || ' not supported, identity column type must be bigint' AS message
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = ${relationOid(relation)} AND a.attname = ${quoteText(column)} AND NOT a.attisdropped
  AND a.atttypid <> 'pg_catalog.int8'::pg_catalog.regtype`;
}

/** For the time when FOR UPDATE needed an equality for each column of the primary key. */
export function lockedByKeyCheck(
  relation: RangeVar,
  equalColumns: readonly string[],
  message: string,
): string {
  const isMissing = equalColumns.length === 0 ? 'true' : `a.attname NOT IN (${literals(equalColumns)})`;
  return `SELECT '0A000' AS code, ${quoteText(message)} AS message
WHERE ${relationOid(relation)} IS NOT NULL AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_index i
  WHERE i.indrelid = ${relationOid(relation)} AND i.indisprimary AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::pg_catalog.int2[]) AND ${isMissing}))`;
}

/** Only the client's schemas: not PostgreSQL's, DSQL's, or the stand-in's own. */
const clientSchemas = `n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'sys', 'dsql_local')`;

function countLimit(relationKind: string, most: number, plural: string): string {
  return `SELECT '54000' AS code, 'creating more than ${most} ${plural} not allowed' AS message
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = '${relationKind}' AND ${clientSchemas} HAVING count(*) > ${most}`;
}

/** Limits of the whole database, after a DDL statement. */
export const limitCheck = [
  `SELECT '54000' AS code, 'more than 10 schemas not allowed' AS message
FROM pg_catalog.pg_namespace n WHERE n.nspname <> 'public' AND ${clientSchemas} HAVING count(*) > 10`,
  countLimit('r', 1000, 'tables'),
  countLimit('v', 5000, 'views'),
  countLimit('S', 5000, 'sequences'),
  `SELECT '54000', 'more than ${mostIndexesPerTable} indexes per table are not allowed' WHERE EXISTS (
  SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE ${clientSchemas} GROUP BY i.indrelid HAVING count(*) > ${mostIndexesPerTable})`,
  `SELECT '54011', 'tables can have at most 255 columns' WHERE EXISTS (
  SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relkind = 'r' AND c.relnatts > 256 AND ${clientSchemas} GROUP BY c.oid HAVING count(*) > 256)`,
  `SELECT '54000', 'more than 5 extended statistics per table are not allowed' WHERE EXISTS (
  SELECT FROM pg_catalog.pg_statistic_ext s JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace
  WHERE ${clientSchemas} GROUP BY s.stxrelid HAVING count(*) > 5)`,
]
  .join('\nUNION ALL ')
  .concat('\nLIMIT 1');
