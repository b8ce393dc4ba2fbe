/** The tables in which migrations are recorded, and the statements that read and write them. */
import { quoteName } from '../../sql/quote.js';
import type { Database } from './database.js';
import type { MigrationServer } from './progress.js';

/** Names of the tables, quoted and with their schema. */
export interface RecordTables {
  readonly schema: string;
  readonly files: string;
  readonly steps: string;
  readonly lock: string;
}

export function recordTables(schema: string): RecordTables {
  const quoted = quoteName(schema);
  return {
    schema,
    files: `${quoted}.migration_files`,
    steps: `${quoted}.migration_steps`,
    lock: `${quoted}.migration_lock`,
  };
}

const tableNames = ['migration_files', 'migration_steps', 'migration_lock'];

/** DSQL is recognised by its own view of jobs. */
export async function serverOf(database: Database): Promise<MigrationServer> {
  const { rows } = await database.read(
    `SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = 'sys' AND c.relname = 'jobs'`,
  );
  return rows.length > 0 ? 'dsql' : 'postgres';
}

/** `none`: nothing was ever recorded here. */
export async function recordsOf(
  database: Database,
  { schema }: RecordTables,
): Promise<'none' | 'some' | 'all'> {
  const { rows } = await database.read(
    `SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relname = ANY ($2::text[])`,
    [schema, tableNames],
  );
  if (rows.length === 0) return 'none';
  return rows.length === tableNames.length ? 'all' : 'some';
}

/** Makes what is missing, each in a transaction of its own. Several runners may do so at once. */
export async function makeTables(database: Database, tables: RecordTables): Promise<void> {
  if ((await recordsOf(database, tables)) === 'all') return;
  const { rows } = await database.read('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [
    tables.schema,
  ]);
  const statements = rows.length > 0 ? [] : [`CREATE SCHEMA IF NOT EXISTS ${quoteName(tables.schema)}`];
  for (const statement of [...statements, ...tableStatements(tables)])
    await database.retrying(() => database.query(statement).catch(ignoreTwin));
}

/** On PostgreSQL, IF NOT EXISTS can meet another's that is not yet committed. */
function ignoreTwin(error: unknown): void {
  const { code } = error as { code?: unknown };
  if (code !== '23505' && code !== '42P06' && code !== '42P07' && code !== '42710') throw error;
}

function tableStatements({ files, steps, lock }: RecordTables): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${files} (
  file varchar(400) PRIMARY KEY, checksum varchar(64) NOT NULL, steps integer NOT NULL, is_baseline boolean NOT NULL,
  finished_at timestamptz NOT NULL
)`,
    `CREATE TABLE IF NOT EXISTS ${steps} (
  file varchar(400) NOT NULL, step integer NOT NULL, checksum varchar(64) NOT NULL, kind varchar(20) NOT NULL,
  state varchar(20) NOT NULL, statement text NOT NULL, catalog_before varchar(64), indexes_before text, job_id varchar(64),
  error text, owner varchar(40) NOT NULL, fence bigint NOT NULL, started_at timestamptz NOT NULL, finished_at timestamptz,
  PRIMARY KEY (file, step)
)`,
    `CREATE TABLE IF NOT EXISTS ${lock} (
  part varchar(20) PRIMARY KEY, owner varchar(40) NOT NULL, fence bigint NOT NULL, holder text, expires_at timestamptz
)`,
  ];
}
