/** The record of files and statements that ran: read by everybody, written only by the holder of the lease. */
import type { Database, Query } from './database.js';
import type { MigrationLease } from './migration-lease.js';
import type { MigrationStep, PlannedFile } from './migration-plan.js';
import type { RecordTables } from './record-tables.js';

/**
 * - `started`: a DDL statement may have taken effect.
 * - `failed`: the statement, or its job, has certainly failed.
 * - `done`: it has taken effect, and so has its job.
 */
export type StepState = 'started' | 'failed' | 'done';

export interface StepRecord {
  readonly file: string;
  readonly step: number;
  readonly checksum: string;
  readonly state: StepState;
  readonly statement: string;
  readonly catalogBefore: string | undefined;
  /** Indexes of the table before CREATE INDEX ASYNC. */
  readonly indexesBefore: readonly string[];
  readonly jobId: string | undefined;
  readonly error: string | undefined;
}

export interface FileRecord {
  readonly file: string;
  readonly checksum: string;
  readonly isBaseline: boolean;
}

export interface Records {
  readonly files: ReadonlyMap<string, FileRecord>;
  /** By file, in order. */
  readonly steps: ReadonlyMap<string, readonly StepRecord[]>;
}

export const noRecords: Records = { files: new Map(), steps: new Map() };

export async function readRecords(database: Database, tables: RecordTables): Promise<Records> {
  const files = await database.read(`SELECT file, checksum, is_baseline FROM ${tables.files} ORDER BY file`);
  const steps = await database.read(`${selectSteps(tables)} ORDER BY file, step`);
  const byFile = new Map<string, StepRecord[]>();
  for (const row of steps.rows.map(stepOf)) {
    const list = byFile.get(row.file);
    if (list === undefined) byFile.set(row.file, [row]);
    else list.push(row);
  }
  return {
    files: new Map(
      files.rows.map((row) => {
        const file = String(row['file']);
        return [file, { file, checksum: String(row['checksum']), isBaseline: row['is_baseline'] === true }];
      }),
    ),
    steps: byFile,
  };
}

function selectSteps({ steps }: RecordTables): string {
  return `SELECT file, step, checksum, state, statement, catalog_before, indexes_before, job_id, error FROM ${steps}`;
}

function stepOf(row: Record<string, unknown>): StepRecord {
  const text = (name: string): string | undefined => (row[name] === null ? undefined : String(row[name]));
  return {
    file: String(row['file']),
    step: Number(row['step']),
    checksum: String(row['checksum']),
    state: String(row['state']) as StepState,
    statement: String(row['statement']),
    catalogBefore: text('catalog_before'),
    indexesBefore: JSON.parse(text('indexes_before') ?? '[]') as string[],
    jobId: text('job_id'),
    error: text('error'),
  };
}

export interface StepStart {
  readonly state: 'started' | 'done';
  readonly catalogBefore?: string | undefined;
  readonly indexesBefore?: readonly string[] | undefined;
}

const longestStatement = 10_000;

export class RecordWriter {
  readonly #database: Database;
  readonly #tables: RecordTables;
  readonly #lease: MigrationLease;

  constructor(database: Database, tables: RecordTables, lease: MigrationLease) {
    this.#database = database;
    this.#tables = tables;
    this.#lease = lease;
  }

  async find(step: MigrationStep): Promise<StepRecord | undefined> {
    const sql = `${selectSteps(this.#tables)} WHERE file = $1 AND step = $2`;
    const { rows } = await this.#database.read(sql, [step.file, step.number]);
    return rows[0] === undefined ? undefined : stepOf(rows[0]);
  }

  /** A transaction that begins with the check of the lease, tried again until it is known to be committed. */
  async fenced(work: (query: Query) => Promise<void>, isDone: () => Promise<boolean>): Promise<void> {
    await this.#database.retrying(
      () =>
        this.#database.transaction(async (query) => {
          await this.#lease.check(query);
          await work(query);
          return true;
        }),
      async () => (await isDone()) || undefined,
    );
  }

  /** Throws if another runner has taken over. */
  verifyLease(): Promise<void> {
    return this.fenced(
      () => Promise.resolve(),
      () => Promise.resolve(false),
    );
  }

  /** Replaces a record of an earlier attempt that did not happen. */
  async write(query: Query, step: MigrationStep, start: StepStart): Promise<void> {
    const { state, catalogBefore = null, indexesBefore = [] } = start;
    await query(`DELETE FROM ${this.#tables.steps} WHERE file = $1 AND step = $2 AND state <> 'done'`, [
      step.file,
      step.number,
    ]);
    const finished = state === 'done' ? 'now()' : 'NULL';
    await query(
      `INSERT INTO ${this.#tables.steps}
       (file, step, checksum, kind, state, statement, catalog_before, indexes_before, owner, fence, started_at, finished_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now(), ${finished})`,
      [
        step.file,
        step.number,
        step.checksum,
        step.kind,
        state,
        step.statements.join(';\n').slice(0, longestStatement),
        catalogBefore,
        JSON.stringify(indexesBefore),
        this.#lease.owner,
        this.#lease.fence,
      ],
    );
  }

  async start(step: MigrationStep, start: Omit<StepStart, 'state'>): Promise<void> {
    await this.fenced(
      (query) => this.write(query, step, { state: 'started', ...start }),
      async () => (await this.find(step))?.state === 'started',
    );
  }

  async finish(step: MigrationStep): Promise<void> {
    await this.#update(step, `state = 'done', error = NULL, finished_at = now()`, []);
  }

  async setJob(step: MigrationStep, jobId: string): Promise<void> {
    await this.#update(step, 'job_id = $3', [jobId]);
  }

  async fail(step: MigrationStep, error: string): Promise<void> {
    await this.#update(step, `state = 'failed', error = $3, finished_at = now()`, [error]);
  }

  async finishFile(file: PlannedFile, isBaseline: boolean): Promise<void> {
    await this.fenced(
      async (query) => {
        const sql = `SELECT 1 FROM ${this.#tables.files} WHERE file = $1`;
        if ((await query(sql, [file.name])).rows.length > 0) return;
        // Records of statements that failed and were taken out of the file.
        await query(`DELETE FROM ${this.#tables.steps} WHERE file = $1 AND state <> 'done'`, [file.name]);
        await query(
          `INSERT INTO ${this.#tables.files} (file, checksum, steps, is_baseline, finished_at) VALUES ($1, $2, $3, $4, now())`,
          [file.name, file.checksum, file.steps.length, isBaseline],
        );
      },
      () => Promise.resolve(false),
    );
  }

  /** Repeating it changes nothing. */
  async #update(step: MigrationStep, change: string, values: readonly unknown[]): Promise<void> {
    const sql = `UPDATE ${this.#tables.steps} SET ${change} WHERE file = $1 AND step = $2`;
    await this.fenced(
      async (query) => {
        await query(sql, [step.file, step.number, ...values]);
      },
      () => Promise.resolve(false),
    );
  }
}
