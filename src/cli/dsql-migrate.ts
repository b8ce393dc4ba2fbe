/** `headgate dsql migrate`: runs the migrations of a folder, or tells what it would run. */
import { MigrationError } from '../dsql/migrate/errors.js';
import { migrate, migrationStatus } from '../dsql/migrate/migrate.js';
import type { MigrateOptions } from '../dsql/migrate/migrate-options.js';
import { connectionHelp, connectionKinds, openPool } from './dsql-connection.js';
import { readDuration } from './dsql-local-options.js';
import { errorJson, MigrationReporter, planText, statusText } from './dsql-migrate-report.js';
import { readOptions } from './options.js';
import type { Terminal } from './terminal.js';
import { exitCodes, UsageError } from './usage-error.js';

const help = `Usage: headgate dsql migrate DIR [options]

Runs the migrations in DIR that have not run yet, in the order of their names: *.sql, and */migration.sql. One DDL statement for each
transaction, jobs of indexes waited for, each statement recorded. A run that was cut off goes on at the statement where it stopped.

  --dry-run         prints what would be run and what DSQL would refuse, and changes nothing
  --status          prints which files have run
  --target FILE     runs no further than this file or version
  --baseline FILE   records the files up to this one as done without running them
  --out-of-order    also runs files that come before one that ran
  --schema NAME     where records are kept (headgate)
  --profile DAY     the day whose DSQL judges the statements (the newest known)
  --no-lint         leaves it to the server to refuse statements
  --wait TIME       how long to wait while another runner is at work (10m)
  --no-wait         ends at once when another runner is at work
  --retry-for TIME  how long a statement is tried again after conflicts and lost connections (1m)
  --lease-ttl TIME  how long the lease of a runner that died is respected (30s)
  --json            prints a line of JSON for each event

${connectionHelp}

Ends with 0 when all is done, with 1 when a statement, a job or a check failed, when --dry-run finds a statement that DSQL refuses, or when
--status finds something to run, with 2 when it was called in a wrong way, with 3 when another runner is at work.
`;

const kinds = {
  ...connectionKinds,
  'dry-run': 'flag',
  status: 'flag',
  target: 'text',
  baseline: 'text',
  'out-of-order': 'flag',
  schema: 'text',
  profile: 'text',
  'no-lint': 'flag',
  wait: 'text',
  'no-wait': 'flag',
  'retry-for': 'text',
  'lease-ttl': 'text',
  json: 'flag',
} as const;

type Values = ReturnType<typeof readOptions<typeof kinds>>['values'];

/** Another runner is at work. */
const busy = 3;

export const migrateCommand = {
  summary: 'run migrations on Aurora DSQL, statement by statement',
  help,
  async run(args: readonly string[], terminal: Terminal): Promise<number> {
    const { values, positionals } = readOptions(args, kinds);
    const [directory, ...others] = positionals;
    if (directory === undefined || others.length > 0)
      throw new UsageError(
        `migrate needs one folder, not ${positionals.length}. See headgate dsql migrate --help.`,
      );
    const options = optionsOf(directory, values);
    const pool = openPool(pickConnection(values), process.env);
    try {
      if (values['dry-run'] || values.status)
        return await show(await migrationStatus(pool, options), values, terminal);
      return await runMigrations(pool, options, values, terminal);
    } catch (error) {
      if (!(error instanceof MigrationError)) throw error;
      if (values.json) terminal.out(errorJson(error));
      else terminal.err(`headgate: ${error.message}\n`);
      return error.reason === 'lease_held' ? busy : exitCodes.failed;
    } finally {
      await pool.end();
    }
  },
};

function pickConnection(values: Values): Parameters<typeof openPool>[0] {
  return Object.fromEntries(
    Object.keys(connectionKinds).map((name) => [name, values[name as keyof typeof connectionKinds]]),
  );
}

function optionsOf(directory: string, values: Values): MigrateOptions {
  if (values['no-wait'] && values.wait !== undefined)
    throw new UsageError("--wait and --no-wait can't be given together");
  const time = (name: 'wait' | 'retry-for' | 'lease-ttl'): number | undefined => {
    const text = values[name];
    return text === undefined ? undefined : readDuration(name, text);
  };
  return {
    directory,
    target: values.target,
    profile: values.profile,
    lint: values['no-lint'] !== true,
    outOfOrder: values['out-of-order'] === true,
    retryFor: time('retry-for'),
    baseline: values.baseline,
    wait: values['no-wait'] ? 0 : time('wait'),
    leaseTtl: time('lease-ttl'),
    ...(values.schema === undefined ? {} : { schema: values.schema }),
  };
}

function show(
  status: Awaited<ReturnType<typeof migrationStatus>>,
  values: Values,
  terminal: Terminal,
): number {
  if (values.json) terminal.out(`${JSON.stringify(status)}\n`);
  else terminal.out(values.status ? statusText(status) : planText(status));
  const isPending = status.files.some(({ state }) => state === 'pending' || state === 'partial');
  const isBad = values.status ? isPending : status.problems.length > 0;
  return isBad ? exitCodes.failed : exitCodes.good;
}

async function runMigrations(
  pool: Parameters<typeof migrate>[0],
  options: MigrateOptions,
  values: Values,
  terminal: Terminal,
): Promise<number> {
  const reporter = new MigrationReporter(terminal, values.json === true);
  const stop = new AbortController();
  const onSignal = (): void => {
    // A second one does not wait for the statement that runs; the next run finds out what became of it.
    if (stop.signal.aborted) process.exit(exitCodes.failed);
    stop.abort();
    terminal.err('headgate: stopping after this statement; once more stops at once\n');
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  try {
    const onProgress = reporter.take;
    reporter.end(await migrate(pool, { ...options, signal: stop.signal, onProgress }));
    return exitCodes.good;
  } finally {
    reporter.close();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}
