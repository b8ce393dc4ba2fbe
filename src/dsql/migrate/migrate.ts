/** Runs the migrations of a folder, each statement once. */
import { createDialect } from '../../dialect/dialect.js';
import { HeadgateError } from '../../kernel/errors.js';
import {
  type ComparedFile,
  checkOrder,
  compareFiles,
  type FileState,
  problemsOf,
  throwProblems,
  upTo,
} from './compare.js';
import { Database } from './database.js';
import { errorText, MigrationError } from './errors.js';
import {
  type MigrateOptions,
  type MigrateSettings,
  type MigrationPool,
  type MigrationSource,
  readMigrateOptions,
} from './migrate-options.js';
import { readMigrations } from './migration-files.js';
import { MigrationLease } from './migration-lease.js';
import { type MigrationProblem, type PlannedFile, planFile } from './migration-plan.js';
import type { MigrationServer } from './progress.js';
import { makeTables, type RecordTables, recordsOf, recordTables, serverOf } from './record-tables.js';
import { noRecords, type Records, RecordWriter, readRecords } from './records.js';
import { StepRunner } from './run-step.js';

export interface MigrateResult {
  readonly server: MigrationServer;
  /** Files that were completed by this run, in order. */
  readonly files: readonly string[];
  /** Files that were recorded without being run. */
  readonly baseline: readonly string[];
  /** Statements that this run has run, or found to have taken effect. */
  readonly steps: number;
}

export interface MigrationFileStatus {
  readonly file: string;
  readonly state: FileState;
  /** Statements to run. */
  readonly pending: readonly {
    readonly step: number;
    readonly line: number;
    readonly sql: string;
    /** Outcome of an earlier attempt. */
    readonly state: 'new' | 'started' | 'failed';
    readonly error: string | undefined;
  }[];
}

export interface MigrationStatus {
  readonly server: MigrationServer;
  readonly files: readonly MigrationFileStatus[];
  /** Statements that DSQL would refuse. */
  readonly problems: readonly MigrationProblem[];
}

/**
 * Runs the migrations of a folder that have not run yet: one DDL statement for each transaction, background jobs waited for, each
 * statement recorded. A run that was cut off is resumed at the statement where it stopped. Throws a `MigrationError`.
 */
export async function migrate(pool: MigrationPool, options: MigrateOptions): Promise<MigrateResult> {
  const settings = readMigrateOptions(options, pool);
  return new MigrationRun(pool, settings).run().catch(rethrow);
}

/** Tells which files ran, which statements are to be run, and which of them DSQL would refuse. Changes nothing. */
export async function migrationStatus(
  pool: MigrationPool,
  options: MigrationSource & Pick<MigrateOptions, 'retryFor'>,
): Promise<MigrationStatus> {
  const settings = readMigrateOptions(options, pool);
  return new MigrationRun(pool, settings).status().catch(rethrow);
}

class MigrationRun {
  readonly #settings: MigrateSettings;
  readonly #database: Database;
  readonly #tables: RecordTables;
  readonly #lease: MigrationLease;

  constructor(pool: MigrationPool, settings: MigrateSettings) {
    this.#settings = settings;
    this.#tables = recordTables(settings.schema);
    this.#lease = new MigrationLease(this.#tables, settings, pool);
    this.#database = new Database(pool, {
      retryForMs: settings.retryForMs,
      mayRetry: () => this.#lease.assertHeld(),
    });
  }

  async status(): Promise<MigrationStatus> {
    const planned = await this.#plan();
    try {
      const server = await serverOf(this.#database);
      const hasRecords = (await recordsOf(this.#database, this.#tables)) === 'all';
      const records = hasRecords ? await readRecords(this.#database, this.#tables) : noRecords;
      const compared = this.#compare(planned, records);
      return { server, files: compared.map(statusOf), problems: problemsOf(compared) };
    } finally {
      this.#database.close();
    }
  }

  async run(): Promise<MigrateResult> {
    const planned = await this.#plan();
    try {
      const server = await serverOf(this.#database);
      await this.#checkBefore(planned);
      await makeTables(this.#database, this.#tables);
      await this.#lease.acquire(this.#database);
      try {
        return await this.#runHeld(planned, server);
      } finally {
        await this.#lease.release(this.#database);
      }
    } finally {
      this.#database.close();
    }
  }

  async #plan(): Promise<PlannedFile[]> {
    const { directory, profile } = this.#settings;
    const dialect = await createDialect({ profile });
    return (await readMigrations(directory)).map((file) => planFile(file, dialect));
  }

  /** Nothing is made in the database for files that can't be run. */
  async #checkBefore(planned: readonly PlannedFile[]): Promise<void> {
    if ((await recordsOf(this.#database, this.#tables)) === 'all') return;
    this.#refuse(this.#withoutBaseline(this.#compare(planned, noRecords)));
  }

  #compare(planned: readonly PlannedFile[], records: Records): ComparedFile[] {
    const compared = compareFiles(planned, records);
    const wanted = upTo(compared, this.#settings.target);
    if (!this.#settings.outOfOrder) checkOrder(compared);
    return wanted;
  }

  #withoutBaseline(compared: readonly ComparedFile[]): ComparedFile[] {
    const { baseline } = this.#settings;
    if (baseline === undefined) return [...compared];
    return compared.slice(upTo(compared, baseline).length);
  }

  /** Without lint, only what can't be run in any case. */
  #refuse(files: readonly ComparedFile[]): void {
    const problems = problemsOf(files);
    throwProblems(this.#settings.lint ? problems : problems.filter(isNotOfDsql));
  }

  async #runHeld(planned: readonly PlannedFile[], server: MigrationServer): Promise<MigrateResult> {
    const { onProgress } = this.#settings;
    // Read after the lease is held: another runner may just have finished.
    const compared = this.#compare(planned, await readRecords(this.#database, this.#tables));
    const files = this.#withoutBaseline(compared).filter(isToRun);
    this.#refuse(files);
    const records = new RecordWriter(this.#database, this.#tables, this.#lease);
    const baseline: string[] = [];
    for (const { planned: file, state } of compared.slice(
      0,
      compared.length - this.#withoutBaseline(compared).length,
    )) {
      if (file === undefined || state !== 'pending') continue;
      await records.finishFile(file, true);
      baseline.push(file.name);
      onProgress({ type: 'file done', file: file.name, isBaseline: true });
    }
    const steps = files.reduce((sum, { pending }) => sum + pending.length, 0);
    onProgress({ type: 'plan', files: files.length, steps, server });
    const runner = new StepRunner({
      database: this.#database,
      lease: this.#lease,
      records,
      tables: this.#tables,
      server,
      settings: this.#settings,
    });
    for (const file of files) await this.#runFile(file, runner, records);
    return { server, files: files.map(({ name }) => name), baseline, steps };
  }

  async #runFile(
    { planned, pending }: ComparedFile,
    runner: StepRunner,
    records: RecordWriter,
  ): Promise<void> {
    if (planned === undefined) return;
    const { onProgress } = this.#settings;
    for (const { step, found } of pending) {
      const { file, number, line, summary } = step;
      onProgress({ type: 'step', file, step: number, steps: planned.steps.length, line, summary });
      const start = performance.now();
      const outcome = await runner.run(step, found);
      const ms = Math.round(performance.now() - start);
      onProgress({ type: 'step done', file, step: number, outcome, ms });
    }
    await records.finishFile(planned, false);
    onProgress({ type: 'file done', file: planned.name, isBaseline: false });
  }
}

/** Errors of the server outside of any statement: a right that is missing, most likely. */
function rethrow(error: unknown): never {
  if (error instanceof HeadgateError) throw error;
  throw new MigrationError(
    'statement_failed',
    `The records can't be read or written: ${errorText(error)}`,
    undefined,
    error,
  );
}

function isToRun({ state }: ComparedFile): boolean {
  return state === 'pending' || state === 'partial';
}

function isNotOfDsql({ code, step }: MigrationProblem): boolean {
  return code === undefined || step === undefined;
}

function statusOf({ name, state, pending }: ComparedFile): MigrationFileStatus {
  return {
    file: name,
    state,
    pending: pending.map(({ step, found }) => ({
      step: step.number,
      line: step.line,
      sql: step.statements.join(';\n'),
      state: found === undefined || found.state === 'done' ? 'new' : found.state,
      error: found?.error,
    })),
  };
}
