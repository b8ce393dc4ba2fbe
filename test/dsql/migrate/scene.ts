// A folder of migrations, pools to a stand-in, and what is left in the database after a run.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type pg from 'pg';
import { DsqlPool, type MigrationPool } from '../../../src/dsql.js';
import type { TestDsql } from '../../support/dsql-local.js';

export type Files = Readonly<Record<string, string>>;

export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'headgate-migrations-'));

  constructor(files: Files) {
    this.write(files);
  }

  write(files: Files): this {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.path, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    return this;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export function poolTo(dsql: TestDsql, max = 2): DsqlPool {
  const { connection, credentials } = dsql;
  return new DsqlPool({ ...connection, credentials, max, warmup: false, keeper: false, env: {} });
}

/** A pool in which some queries are answered by the test: for states that the stand-in's jobs never have. */
export function answering(
  pool: DsqlPool,
  answer: (text: string) => readonly object[] | undefined,
): MigrationPool {
  return {
    async connect() {
      const client = await pool.connect();
      return {
        async query(text, values) {
          const rows = answer(text);
          return rows === undefined ? client.query(text, values) : { rows: [...rows], rowCount: rows.length };
        },
        release: (error) => client.release(error),
      };
    },
  };
}

/** Tries again after conflicts: every session meets OC001 once after a change of the schema. */
export function patient(pool: DsqlPool): Pick<pg.Client, 'query'> {
  const query = async (sql: string, values?: unknown[]): Promise<unknown> => {
    for (;;) {
      try {
        return await pool.query(sql, values);
      } catch (error) {
        if ((error as { code?: string }).code !== '40001') throw error;
      }
    }
  };
  return { query } as unknown as Pick<pg.Client, 'query'>;
}

/** Tables with columns, indexes, constraints and rows of these schemas, as text. */
export async function contentOf(
  client: Pick<pg.Client, 'query'>,
  schemas: readonly string[],
): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(
    `SELECT format('%s.%s %s %s', n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod)) AS line
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped
     UNION ALL SELECT format('index %s %s %s', x.relname, i.indisvalid, i.indisunique) FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
     JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY ($1)
     UNION ALL SELECT format('constraint %s %s', conname, convalidated) FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
     WHERE n.nspname = ANY ($1)`,
    [schemas],
  );
  const tables = await client.query<{ name: string }>(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = ANY ($1) AND c.relkind = 'r'`,
    [schemas],
  );
  const contents: string[] = [];
  for (const { name } of tables.rows) {
    const { rows: found } = await client.query<{ t: string }>(`SELECT t::text FROM ${name} t`);
    contents.push(...found.map(({ t }) => `${name} ${t}`));
  }
  return [...rows.map(({ line }) => line), ...contents].sort();
}

/** Records without times, owners and jobs. */
export async function recordsIn(client: Pick<pg.Client, 'query'>, schema: string): Promise<object[]> {
  const files = await client.query(
    `SELECT file, checksum, steps, is_baseline FROM ${schema}.migration_files ORDER BY file`,
  );
  const steps = await client.query(
    `SELECT file, step, checksum, kind, state, statement, error, finished_at IS NOT NULL AS finished
     FROM ${schema}.migration_steps ORDER BY file, step`,
  );
  return [...files.rows, ...steps.rows];
}
