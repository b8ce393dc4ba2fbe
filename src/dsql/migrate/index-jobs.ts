/**
 * Background jobs of CREATE INDEX ASYNC and ALTER TABLE ASYNC.
 *
 * `sys.jobs` is polled: `CALL sys.wait_for_job` would hold a transaction open, and DSQL ends those after 5 minutes. DSQL forgets jobs after a
 * while; then the catalog tells whether the index is valid.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AsyncJob } from '../../dialect/judgement.js';
import { quoteName } from '../../sql/quote.js';
import type { Database } from './database.js';

interface TableIndex {
  readonly schema: string;
  readonly name: string;
  readonly isValid: boolean;
}

const firstPollMs = 50;
const longestPollMs = 2_000;
const running: ReadonlySet<string> = new Set(['submitted', 'processing', 'cancelling']);

/** Indexes of the job's table. */
export async function indexesOf(database: Database, job: AsyncJob): Promise<TableIndex[]> {
  const { rows } = await database.read(
    `SELECT n.nspname AS schema, x.relname AS name, i.indisvalid AS valid FROM pg_catalog.pg_index i
     JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
     JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
     WHERE t.relname = $1 AND (n.nspname = $2 OR ($2::text IS NULL AND pg_catalog.pg_table_is_visible(t.oid))) ORDER BY x.relname`,
    [job.table, job.schema ?? null],
  );
  return rows.map((row) => ({
    schema: String(row['schema']),
    name: String(row['name']),
    isValid: row['valid'] === true,
  }));
}

/** The index that a job builds or has built: by its name, or since it was not there before. */
async function builtBy(
  database: Database,
  job: AsyncJob,
  before: readonly string[],
): Promise<TableIndex | undefined> {
  const indexes = await indexesOf(database, job);
  if (job.object !== undefined) return indexes.find(({ name }) => name === job.object);
  return indexes.find(({ name }) => !before.includes(name));
}

export interface JobWait {
  readonly job: AsyncJob;
  readonly jobId: string | undefined;
  readonly indexesBefore: readonly string[];
  /** Called before each look. Throws to stop waiting. */
  readonly onStatus: (status: string) => void;
}

/** Answers why the job failed, or undefined once it has succeeded. */
export async function waitForJob(database: Database, wait: JobWait): Promise<string | undefined> {
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 2, longestPollMs)) {
    const [status, details] = await statusOf(database, wait);
    wait.onStatus(status);
    if (status === 'completed') return undefined;
    if (!running.has(status)) return details === '' ? `the job is ${status}` : details;
    await sleep(pollMs);
  }
}

async function statusOf(
  database: Database,
  { job, jobId, indexesBefore }: JobWait,
): Promise<[status: string, details: string]> {
  const told = jobId === undefined ? undefined : await jobRow(database, jobId);
  if (told !== undefined && told[0] !== 'completed') return told;
  if (job.type !== 'INDEX_BUILD') return told ?? ['completed', ''];
  const index = await builtBy(database, job, indexesBefore);
  if (index?.isValid) return ['completed', ''];
  if (index === undefined) return ['failed', told?.[1] || 'the index is not there'];
  if (told === undefined && (await isBeingBuilt(database, index))) return ['processing', ''];
  return ['failed', 'the index is not valid, and no job builds it'];
}

async function jobRow(database: Database, jobId: string): Promise<[string, string] | undefined> {
  const sql = 'SELECT status, details FROM sys.jobs WHERE job_id = $1';
  const [row] = (await database.read(sql, [jobId])).rows;
  return row === undefined ? undefined : [String(row['status']), String(row['details'] ?? '')];
}

/** Where the answer with the job's id was lost. */
async function isBeingBuilt(database: Database, { name }: TableIndex): Promise<boolean> {
  const { rows } = await database.read(
    `SELECT object_name FROM sys.jobs WHERE job_type = 'INDEX_BUILD' AND status = ANY ($1::text[])`,
    [[...running]],
  );
  return rows.some((row) => String(row['object_name']).replaceAll('"', '').split('.').at(-1) === name);
}

/** Drops what a failed job has left. Answers its name. */
export async function dropInvalidIndex(
  database: Database,
  job: AsyncJob,
  before: readonly string[],
): Promise<string | undefined> {
  if (job.type !== 'INDEX_BUILD') return undefined;
  const index = await builtBy(database, job, before);
  if (index === undefined || index.isValid) return undefined;
  const name = `${quoteName(index.schema)}.${quoteName(index.name)}`;
  await database.retrying(() => database.query(`DROP INDEX IF EXISTS ${name}`));
  return name;
}
