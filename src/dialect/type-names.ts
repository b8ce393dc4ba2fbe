/** The types of columns: canonical names, which ones DSQL stores, and which ones it takes as keys. */
import type { TypeName } from 'libpg-query';
import { namesOf } from './parse-tree.js';
import type { Feature } from './profile.js';

export interface StoredType {
  /** SQL's name of the type, as in messages. */
  readonly canonical: string;
  readonly since?: Feature;
  /** Bytes in a key; `declared` for the length that the column declares. Undefined where it is no key. */
  readonly keyBytes?: number | 'declared';
  readonly keySince?: Feature;
}

/** By PostgreSQL's internal names. */
export const storedTypes: Readonly<Record<string, StoredType>> = {
  int2: { canonical: 'smallint', keyBytes: 2 },
  int4: { canonical: 'integer', keyBytes: 4 },
  int8: { canonical: 'bigint', keyBytes: 8 },
  float4: { canonical: 'real', keyBytes: 4 },
  float8: { canonical: 'double precision', keyBytes: 8 },
  numeric: { canonical: 'numeric', keyBytes: 0, keySince: 'numeric keys' },
  bpchar: { canonical: 'character', keyBytes: 'declared' },
  varchar: { canonical: 'character varying', keyBytes: 'declared' },
  text: { canonical: 'text', keyBytes: 0 },
  date: { canonical: 'date', keyBytes: 4 },
  time: { canonical: 'time without time zone', keyBytes: 8 },
  timetz: { canonical: 'time with time zone' },
  timestamp: { canonical: 'timestamp without time zone', keyBytes: 8 },
  timestamptz: { canonical: 'timestamp with time zone', keyBytes: 8 },
  interval: { canonical: 'interval' },
  bool: { canonical: 'boolean', keyBytes: 1 },
  bytea: { canonical: 'bytea' },
  uuid: { canonical: 'uuid', keyBytes: 16 },
  json: { canonical: 'json', since: 'json columns' },
  jsonb: { canonical: 'jsonb', since: 'jsonb columns' },
};

export const geometricTypes: ReadonlySet<string> = new Set([
  'point',
  'line',
  'lseg',
  'box',
  'path',
  'polygon',
  'circle',
]);

/** PostgreSQL's other types, which no column of DSQL has. A name in neither table is a domain, or unknown. */
const queryOnlyTypes: ReadonlySet<string> = new Set([
  ...geometricTypes,
  ...[
    'money',
    'xml',
    'inet',
    'cidr',
    'macaddr',
    'macaddr8',
    'tsvector',
    'tsquery',
    'bit',
    'varbit',
    'jsonpath',
  ],
  ...['int4range', 'int8range', 'numrange', 'tsrange', 'tstzrange', 'daterange'],
  ...[
    'int4multirange',
    'int8multirange',
    'nummultirange',
    'tsmultirange',
    'tstzmultirange',
    'datemultirange',
  ],
  ...[
    'pg_lsn',
    'pg_snapshot',
    'txid_snapshot',
    'oid',
    'name',
    'char',
    'xid',
    'xid8',
    'cid',
    'tid',
    'refcursor',
  ],
  ...['regclass', 'regcollation', 'regconfig', 'regdictionary', 'regnamespace', 'regoper', 'regoperator'],
  ...['regproc', 'regprocedure', 'regrole', 'regtype', 'int2vector', 'oidvector', 'aclitem', 'gtsvector'],
  ...['pg_node_tree', 'pg_ndistinct', 'pg_dependencies', 'pg_mcv_list', 'pg_brin_bloom_summary'],
  ...['record', 'cstring', 'void', 'unknown', 'any', 'anyelement', 'anyarray', 'trigger', 'event_trigger'],
]);

/** Not types in DSQL at all: PostgreSQL makes sequences of them. */
export const serialTypes: ReadonlySet<string> = new Set([
  ...['serial', 'serial2', 'serial4', 'serial8', 'smallserial', 'bigserial'],
]);

export interface NamedType {
  /** PostgreSQL's internal name of the element type. */
  readonly internal: string;
  readonly canonical: string;
  readonly isArray: boolean;
  readonly isBuiltIn: boolean;
}

export function readType(type: TypeName): NamedType {
  const names = namesOf(type.names);
  const last = names.at(-1) ?? '';
  const isQualified = names.length > 1;
  const isCatalog = isQualified && names[0] === 'pg_catalog';
  const isKnown = (name: string) => Object.hasOwn(storedTypes, name) || queryOnlyTypes.has(name);
  // PostgreSQL names an array type by its element, with an underscore before it.
  const isArrayName = last.startsWith('_') && (!isQualified || isCatalog) && isKnown(last.slice(1));
  const internal = isArrayName ? last.slice(1) : last;
  const isBuiltIn = isCatalog || (!isQualified && isKnown(internal));
  const isArray = isArrayName || (type.arrayBounds?.length ?? 0) > 0;
  const element = isBuiltIn ? canonicalName(internal) : names.join('.');
  return { internal, canonical: isArray ? `${element}[]` : element, isArray, isBuiltIn };
}

function canonicalName(internal: string): string {
  if (internal === 'varbit') return 'bit varying';
  if (internal === 'char') return '"char"';
  return storedTypes[internal]?.canonical ?? internal;
}
