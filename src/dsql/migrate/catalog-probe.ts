/**
 * Tells whether a DDL statement has happened, by comparing the catalog before and after.
 *
 * Covers what makes a second run fail or do more than the first: whether objects exist, and which columns, constraints, indexes and
 * statistics a table has. Left out: what the same statement sets to the same value again (defaults, owners, rights, comments,
 * bodies), and what background jobs change (validity of indexes and constraints).
 */
import { checksumOf } from './statement-text.js';

/** $1: names in lower case. */
const probe = `
WITH spaces AS (
  SELECT oid, nspname FROM pg_catalog.pg_namespace
  WHERE nspname NOT IN ('information_schema', 'sys', 'dsql_local') AND nspname NOT LIKE 'pg\\_%'
), relations AS (
  SELECT c.oid, c.relname, c.relkind, s.nspname FROM pg_catalog.pg_class c JOIN spaces s ON s.oid = c.relnamespace
  WHERE lower(c.relname) = ANY ($1::text[])
)
SELECT 'schema' AS kind, nspname::text AS a, '' AS b, '' AS c, '' AS d FROM spaces WHERE lower(nspname) = ANY ($1::text[])
UNION ALL SELECT 'relation', nspname, relname, relkind::text, '' FROM relations
UNION ALL SELECT 'column', r.nspname || '.' || r.relname, a.attname, a.atttypid::text || ' ' || a.atttypmod::text,
  a.attnotnull::text || a.attidentity::text || a.attgenerated::text
  FROM pg_catalog.pg_attribute a JOIN relations r ON r.oid = a.attrelid WHERE a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 'constraint', r.nspname || '.' || r.relname, k.conname, k.contype::text, ''
  FROM pg_catalog.pg_constraint k JOIN relations r ON r.oid = k.conrelid
UNION ALL SELECT 'index', r.nspname || '.' || r.relname, x.relname, i.indisunique::text, ''
  FROM pg_catalog.pg_index i JOIN relations r ON r.oid = i.indrelid JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
UNION ALL SELECT 'statistics', r.nspname || '.' || r.relname, e.stxname, '', ''
  FROM pg_catalog.pg_statistic_ext e JOIN relations r ON r.oid = e.stxrelid
UNION ALL SELECT 'statistics by name', s.nspname, e.stxname, '', ''
  FROM pg_catalog.pg_statistic_ext e JOIN spaces s ON s.oid = e.stxnamespace WHERE lower(e.stxname) = ANY ($1::text[])
UNION ALL SELECT 'routine', s.nspname, p.proname, p.proargtypes::text, p.prokind::text
  FROM pg_catalog.pg_proc p JOIN spaces s ON s.oid = p.pronamespace WHERE lower(p.proname) = ANY ($1::text[])
UNION ALL SELECT 'type', s.nspname, t.typname, t.typtype::text, coalesce(k.conname, '')
  FROM pg_catalog.pg_type t JOIN spaces s ON s.oid = t.typnamespace LEFT JOIN pg_catalog.pg_constraint k ON k.contypid = t.oid
  WHERE t.typtype IN ('d', 'e') AND lower(t.typname) = ANY ($1::text[])
UNION ALL SELECT 'role', rolname, '', '', '' FROM pg_catalog.pg_roles WHERE lower(rolname) = ANY ($1::text[])`;

const mappings = `
SELECT arn, pg_role_name FROM sys.iam_pg_role_mappings WHERE lower(pg_role_name) = ANY ($1::text[])`;

type Read = (sql: string, values: readonly unknown[]) => Promise<{ readonly rows: readonly object[] }>;

/** A checksum that changes when anything of these names is made, changed or dropped. */
export async function probeCatalog(
  read: Read,
  { names, isIam }: { readonly names: readonly string[]; readonly isIam: boolean },
): Promise<string> {
  const { rows } = await read(probe, [names]);
  const mapped = isIam ? (await read(mappings, [names])).rows : [];
  return checksumOf([...rows, ...mapped].map((row) => JSON.stringify(Object.values(row))).sort());
}
