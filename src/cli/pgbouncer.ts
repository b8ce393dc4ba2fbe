/** `headgate pgbouncer`: PgBouncer's command line, for what starts a pooler in its way. */
import { type OptionKind, readCommandLine, wrongUsage } from './options.js';
import { serveCommand } from './serve.js';
import type { Terminal } from './terminal.js';
import { UsageError } from './usage-error.js';

const help = `Usage: headgate pgbouncer [OPTION]... CONFIG_FILE

Runs a pooler from a pgbouncer.ini, with the command line of pgbouncer: what starts that can start this in its place.
headgate serve --pgbouncer-ini CONFIG_FILE does the same, and takes every other setting as well.

Options:
  -d, --daemon         run in background (as a daemon)
  -q, --quiet          run quietly
  -u, --user=USERNAME  assume identity of USERNAME
  -v, --verbose        increase verbosity
  -V, --version        show version, then exit
  -h, --help           show this help, then exit

-R (--reboot) of older versions is not there, as in PgBouncer since 1.26: start the new process beside the old one with
so_reuseport, and end the old one with SIGTERM, which waits for its clients.
`;

const kinds = new Map<string, OptionKind>([
  ...['daemon', 'quiet', 'verbose', 'version', 'reboot'].map((name) => [name, 'flag'] as const),
  ['user', 'text'],
]);
const shorts = { d: 'daemon', q: 'quiet', v: 'verbose', V: 'version', R: 'reboot', u: 'user' };

export const pgbouncerCommand = {
  summary: "run the pooler with PgBouncer's command line",
  help,
  run(args: readonly string[], terminal: Terminal): Promise<number> {
    return serveCommand.run(serveArguments(args), terminal);
  },
};

/** The arguments of `headgate serve` that do what these do. */
export function serveArguments(args: readonly string[]): string[] {
  const { values, positionals: files, mistakes } = readCommandLine(args, kinds, shorts);
  if (mistakes.length > 0) throw wrongUsage(mistakes);
  if (values.has('reboot'))
    throw new UsageError(
      '-R (online restart) is not supported; headgate pgbouncer --help says what to do instead',
    );
  const found = Object.entries({ daemon: '-d', quiet: '-q', verbose: '-v', version: '-V' }).flatMap(
    ([name, flag]) => (values.has(name) ? [flag] : []),
  );
  const user = values.get('user')?.at(-1);
  if (user !== undefined) found.push('--run-as', user);
  if (files.length > 1) throw new UsageError(`one configuration file is enough, not ${files.join(' and ')}`);
  if (files[0] !== undefined) found.push('--pgbouncer-ini', files[0]);
  else if (!values.has('version')) throw new UsageError('Need config file.  See headgate pgbouncer --help');
  return found;
}
