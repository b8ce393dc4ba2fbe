/** The options of `migrate()`, and their checks. */
import { type Duration, formatDuration } from '../../kernel/duration.js';
import { OptionReader } from '../../kernel/option-reader.js';
import type { MigrationProgress } from './progress.js';

/** A checked-out connection, as `pg` and Headgate have it. */
export interface MigrationClient {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: object[]; readonly rowCount: number | null }>;
  release(error?: Error | boolean): void;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
}

/** `DsqlPool`, `Pool`, or a `pg.Pool`. Two connections are needed at the same time. */
export interface MigrationPool {
  connect(): Promise<MigrationClient>;
  readonly options?: { readonly max?: number | undefined };
}

export interface MigrationSource {
  /** The folder of the migrations. */
  readonly directory: string;
  /** Where the records are kept; made when it is missing. Default `headgate`. */
  readonly schema?: string | undefined;
  /** The last file to run: its name or its version. Default: all. */
  readonly target?: string | undefined;
  /** The day whose DSQL judges the statements. Default: the newest known. */
  readonly profile?: string | undefined;
  /** True if statements that DSQL would refuse are refused before anything runs. Default true. */
  readonly lint?: boolean | undefined;
  /** True if a new file may come before one that ran. Default false. */
  readonly outOfOrder?: boolean | undefined;
}

export interface MigrateOptions extends MigrationSource {
  /** Records the files up to this one as done, without running them, and runs what comes after. */
  readonly baseline?: string | undefined;
  /** How long to wait while another runner is at work; 0: not at all. Default 10 minutes. */
  readonly wait?: Duration | undefined;
  /** How long the lease of a runner that died is respected. Default 30 seconds. */
  readonly leaseTtl?: Duration | undefined;
  /** How long a statement is tried again after conflicts and lost connections. Default 1 minute. */
  readonly retryFor?: Duration | undefined;
  /** Stops before the next statement. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: MigrationProgress) => void) | undefined;
}

export interface MigrateSettings {
  readonly directory: string;
  readonly schema: string;
  readonly target: string | undefined;
  readonly profile: string | undefined;
  readonly lint: boolean;
  readonly outOfOrder: boolean;
  readonly baseline: string | undefined;
  readonly waitMs: number;
  readonly leaseTtlMs: number;
  readonly retryForMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: (progress: MigrationProgress) => void;
}

const defaults = { waitMs: 600_000, leaseTtlMs: 30_000, retryForMs: 60_000 };
/** Shorter ones would expire between two renewals of a slow network. */
const shortestTtlMs = 1_000;

export function readMigrateOptions(options: MigrateOptions, pool: MigrationPool): MigrateSettings {
  const read = new OptionReader(options);
  const text = (name: 'target' | 'profile' | 'baseline'): string | undefined =>
    options[name] === undefined ? undefined : read.string(name, '');
  const settings: MigrateSettings = {
    directory: read.string('directory', ''),
    schema: read.string('schema', 'headgate'),
    target: text('target'),
    profile: text('profile'),
    lint: read.boolean('lint', true),
    outOfOrder: read.boolean('outOfOrder', false),
    baseline: text('baseline'),
    waitMs: read.duration('wait', defaults.waitMs, 0),
    leaseTtlMs: read.duration('leaseTtl', defaults.leaseTtlMs, 0),
    retryForMs: read.duration('retryFor', defaults.retryForMs, 0),
    signal: options.signal,
    onProgress: read.callback<(progress: MigrationProgress) => void>('onProgress', false) ?? (() => {}),
  };
  if (options.directory === undefined) read.problem('directory', 'is missing: the folder of the migrations');
  if (settings.leaseTtlMs < shortestTtlMs)
    read.problem('leaseTtl', `must be at least ${formatDuration(shortestTtlMs)}`);
  if (Buffer.byteLength(settings.schema) > 63) read.problem('schema', 'must have at most 63 bytes');
  const max = pool.options?.max;
  if (max !== undefined && max < 2)
    read.problem('max', `of the pool must be at least 2, not ${max}: the lease is renewed beside the work`);
  read.has('signal');
  read.refuseUnknown();
  read.throwIfAnyProblem('the options of migrate()');
  return settings;
}
