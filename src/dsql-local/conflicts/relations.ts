/** Tables with their keys and foreign keys, read from the catalog once for each version of it. */
import type { Link } from '../postgres/link.js';

export interface ForeignKey {
  /** Places of the columns in the child's row, and of those they refer to in the parent's. */
  readonly columns: readonly number[];
  readonly parent: number;
  readonly parentColumns: readonly number[];
}

export interface Relation {
  readonly id: number;
  readonly schema: string;
  readonly name: string;
  /** Places in the row's text, dropped columns not counted. Empty: no primary key. */
  readonly primaryKey: readonly number[];
  /** Columns of each unique index that is neither partial nor on an expression. */
  readonly uniqueKeys: readonly (readonly number[])[];
  readonly foreignKeys: readonly ForeignKey[];
  /** Columns of every index, the primary key's too; those of expressions and INCLUDE left out. */
  readonly indexes: readonly (readonly number[])[];
}

const relationsSql = `
WITH places AS (
  SELECT attrelid, attnum, row_number() OVER (PARTITION BY attrelid ORDER BY attnum) - 1 AS place
  FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped
), tables AS (
  SELECT c.oid, c.relname, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'dsql_local', 'pg_toast')
)
SELECT json_build_object(
  'id', t.oid::bigint, 'schema', t.nspname, 'name', t.relname,
  'primaryKey', coalesce((SELECT json_agg(p.place ORDER BY p.place) FROM pg_index x JOIN places p ON p.attrelid = t.oid AND p.attnum = ANY (x.indkey)
    WHERE x.indrelid = t.oid AND x.indisprimary), '[]'),
  'uniqueKeys', coalesce((SELECT json_agg((SELECT json_agg(p.place) FROM places p WHERE p.attrelid = t.oid
    AND p.attnum = ANY (x.indkey[0:x.indnkeyatts - 1]))) FROM pg_index x
    WHERE x.indrelid = t.oid AND x.indisunique AND x.indisvalid AND x.indpred IS NULL AND x.indexprs IS NULL), '[]'),
  'indexes', coalesce((SELECT json_agg((SELECT json_agg(p.place) FROM places p WHERE p.attrelid = t.oid
    AND p.attnum = ANY (x.indkey[0:x.indnkeyatts - 1]))) FROM pg_index x WHERE x.indrelid = t.oid
    AND 0 <> ANY (x.indkey[0:x.indnkeyatts - 1])), '[]'),
  'foreignKeys', coalesce((SELECT json_agg(json_build_object('parent', k.confrelid::bigint,
      'columns', (SELECT json_agg(p.place ORDER BY o.place) FROM unnest(k.conkey) WITH ORDINALITY o(number, place)
        JOIN places p ON p.attrelid = k.conrelid AND p.attnum = o.number),
      'parentColumns', (SELECT json_agg(p.place ORDER BY o.place) FROM unnest(k.confkey) WITH ORDINALITY o(number, place)
        JOIN places p ON p.attrelid = k.confrelid AND p.attnum = o.number)))
    FROM pg_constraint k WHERE k.conrelid = t.oid AND k.contype = 'f'), '[]')
)::text FROM tables t`;

export class Relations {
  #version = -1;
  #byId = new Map<number, Relation>();
  #referred = new Set<number>();

  /** Reads the catalog again where its version is another one. */
  async read(link: Link, version: number): Promise<void> {
    if (this.#version === version) return;
    const rows = await link.query(relationsSql);
    const relations = rows.map(([text]) => JSON.parse(text ?? '') as Relation);
    this.#byId = new Map(relations.map((relation) => [relation.id, relation]));
    this.#referred = new Set(relations.flatMap(({ foreignKeys }) => foreignKeys.map(({ parent }) => parent)));
    this.#version = version;
  }

  /** True if a foreign key refers to the table. */
  isReferred(id: number): boolean {
    return this.#referred.has(id);
  }

  get(id: number): Relation | undefined {
    return this.#byId.get(id);
  }

  /** All tables of this name, in the schema where one is given. */
  named(name: string, schema: string | undefined): Relation[] {
    return [...this.#byId.values()].filter(
      (relation) => relation.name === name && (schema === undefined || relation.schema === schema),
    );
  }
}
