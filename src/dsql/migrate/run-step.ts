/**
 * Runs one step, exactly once as far as the server lets it be known.
 *
 * Data: statements and record share a transaction, and the record's key lets no second one commit.
 *
 * DDL on DSQL can't share a transaction with its record. So: (1) record `started`, with a checksum of the catalog's part that it concerns; (2) run
 * it; (3) record `done`. When the answer to (2) is lost, here or in an earlier run, the catalog is changed first: a comment with a new
 * number. DSQL then fails whatever is still under way with OC001. After that the checksum tells whether the statement happened.
 */

import { probeCatalog } from './catalog-probe.js';
import type { Database } from './database.js';
import { errorText, faultOf, MigrationError } from './errors.js';
import { dropInvalidIndex, indexesOf, waitForJob } from './index-jobs.js';
import type { MigrateSettings } from './migrate-options.js';
import { type MigrationLease, throwIfAborted } from './migration-lease.js';
import type { MigrationStep } from './migration-plan.js';
import type { MigrationServer } from './progress.js';
import type { RecordTables } from './record-tables.js';
import type { RecordWriter, StepRecord } from './records.js';

export interface StepRunnerParts {
  readonly database: Database;
  readonly lease: MigrationLease;
  readonly records: RecordWriter;
  readonly tables: RecordTables;
  readonly server: MigrationServer;
  readonly settings: MigrateSettings;
}

export type StepOutcome = 'ran' | 'found';

export class StepRunner {
  readonly #parts: StepRunnerParts;
  #catalogChanges = 0;

  constructor(parts: StepRunnerParts) {
    this.#parts = parts;
  }

  /** `found`: the record of an earlier run, which is not `done`. */
  async run(step: MigrationStep, found: StepRecord | undefined): Promise<StepOutcome> {
    const { database, server, lease, settings } = this.#parts;
    throwIfAborted(settings.signal);
    lease.assertHeld();
    database.useSettings(step.settings);
    try {
      // A plain PostgreSQL has no IAM.
      if (server === 'postgres')
        return await this.#runTogether(step, step.isIam ? [] : step.postgresStatements);
      if (step.kind === 'data') return await this.#runTogether(step, step.statements);
      return await this.#runBeside(step, found);
    } catch (error) {
      throw placed(error, step);
    } finally {
      database.useSettings([]);
    }
  }

  /** Statements and record in one transaction. */
  async #runTogether(step: MigrationStep, statements: readonly string[]): Promise<StepOutcome> {
    const { records } = this.#parts;
    try {
      await records.fenced(
        async (query) => {
          // First, so that a statement can't take away the right to write it.
          await records.write(query, step, { state: 'done' });
          for (const statement of statements) await query(statement);
        },
        async () => (await records.find(step))?.state === 'done',
      );
    } catch (error) {
      if (isTwin(error) && (await records.find(step))?.state === 'done') return 'found';
      throw error;
    }
    return 'ran';
  }

  /** The record before and after. */
  async #runBeside(step: MigrationStep, found: StepRecord | undefined): Promise<StepOutcome> {
    const { records } = this.#parts;
    const resumed = found === undefined ? undefined : await this.#resume(step, found);
    if (resumed !== undefined) {
      await this.#finish(step, resumed);
      return 'found';
    }
    const started = await this.#start(step);
    let jobId: string | undefined;
    let outcome: StepOutcome = 'ran';
    try {
      jobId = await this.#parts.database.retrying(
        () => this.#execute(step),
        async (error) => {
          this.#tell(step, errorText(error));
          await records.verifyLease();
          // A conflict leaves nothing behind.
          if (faultOf(error) === 'conflict') return undefined;
          if (!(await this.#hasHappened(step, started.catalogBefore))) return undefined;
          outcome = 'found';
          return noJob;
        },
      );
    } catch (error) {
      if (faultOf(error) === 'failed') await records.fail(step, errorText(error));
      throw error;
    }
    await this.#finish(step, { ...started, jobId: jobId === noJob ? undefined : jobId });
    return outcome;
  }

  async #start(step: MigrationStep): Promise<StartedStep> {
    const { database, records } = this.#parts;
    const { job } = step;
    const catalogBefore = await this.#probe(step);
    const indexesBefore =
      job?.type === 'INDEX_BUILD' ? (await indexesOf(database, job)).map(({ name }) => name) : [];
    await records.start(step, { catalogBefore, indexesBefore });
    return { catalogBefore, indexesBefore, jobId: undefined };
  }

  /** Answers what is known of a statement that has happened in an earlier run; undefined where it has to be run. */
  async #resume(step: MigrationStep, found: StepRecord): Promise<StartedStep | undefined> {
    const { database } = this.#parts;
    const { job } = step;
    if (found.state === 'failed') {
      if (job !== undefined) await dropInvalidIndex(database, job, found.indexesBefore);
      return undefined;
    }
    // Running these again does no harm.
    if (step.kind === 'repeatable' || job?.type === 'VALIDATE_CONSTRAINT') return undefined;
    if (found.jobId === undefined && !(await this.#hasHappened(step, found.catalogBefore))) return undefined;
    return found;
  }

  async #execute({ statements, kind }: MigrationStep): Promise<string> {
    const { database, lease } = this.#parts;
    lease.assertHeld();
    const [only, second] = statements;
    if (only === undefined) return noJob;
    if (second === undefined || kind === 'repeatable') return jobIdOf((await database.query(only)).rows);
    return database.transaction(async (query) => {
      let jobId = noJob;
      for (const statement of statements) {
        const id = jobIdOf((await query(statement)).rows);
        if (id !== noJob) jobId = id;
      }
      return jobId;
    });
  }

  async #hasHappened(step: MigrationStep, before: string | undefined): Promise<boolean> {
    const { database, tables, lease } = this.#parts;
    lease.assertHeld();
    const mark = `fence ${lease.fence}, change ${++this.#catalogChanges}`;
    await database.retrying(() => database.query(`COMMENT ON TABLE ${tables.lock} IS '${mark}'`));
    return (await this.#probe(step)) !== before;
  }

  #probe(step: MigrationStep): Promise<string> {
    return probeCatalog((sql, values) => this.#parts.database.read(sql, values), step);
  }

  /** Waits for the job, and records the step as done. */
  async #finish(step: MigrationStep, started: StartedStep): Promise<void> {
    const { database, records, settings, lease } = this.#parts;
    const { job, file, number } = step;
    const { jobId, indexesBefore } = started;
    if (job !== undefined) {
      if (jobId !== undefined) await records.setJob(step, jobId);
      const onStatus = (status: string): void => {
        throwIfAborted(settings.signal);
        lease.assertHeld();
        settings.onProgress({ type: 'job', file, step: number, jobId, status });
      };
      const why = await waitForJob(database, { job, jobId, indexesBefore, onStatus });
      if (why !== undefined) {
        await records.fail(step, why);
        throw new MigrationError('job_failed', `The job failed: ${why}. ${adviceFor(step)}`, placeOf(step));
      }
    }
    await records.finish(step);
  }

  #tell({ file, number }: MigrationStep, why: string): void {
    this.#parts.settings.onProgress({ type: 'retry', file, step: number, why });
  }
}

interface StartedStep {
  readonly catalogBefore: string | undefined;
  readonly indexesBefore: readonly string[];
  readonly jobId: string | undefined;
}

const noJob = '';

function jobIdOf(rows: readonly Record<string, unknown>[]): string {
  const id = rows[0]?.['job_id'];
  return typeof id === 'string' ? id : noJob;
}

function adviceFor({ job }: MigrationStep): string {
  return job?.type === 'INDEX_BUILD'
    ? 'Mend the rows and run it again: the invalid index is dropped first.'
    : 'Mend the rows and run it again.';
}

/** The record was written by an attempt whose answer was lost. */
function isTwin(error: unknown): boolean {
  return (error as { code?: unknown }).code === '23505';
}

function placeOf({ file, number, line }: MigrationStep): { file: string; step: number; line: number } {
  return { file, step: number, line };
}

function placed(error: unknown, step: MigrationStep): MigrationError {
  if (!(error instanceof MigrationError)) {
    const message = `${errorText(error)}\n  ${step.summary}`;
    return new MigrationError('statement_failed', message, placeOf(step), error);
  }
  if (error.file !== undefined || error.reason === 'aborted' || error.reason === 'lease_lost') return error;
  return new MigrationError(error.reason, error.message, placeOf(step), error.cause);
}
