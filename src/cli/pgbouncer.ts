/** `headgate pgbouncer`: PgBouncer's command line, for what starts a pooler in its way. */
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

/** Without a value. */
const switches: Readonly<Record<string, string>> = {
  '-d': '-d',
  '--daemon': '-d',
  '-q': '-q',
  '--quiet': '-q',
  '-v': '-v',
  '--verbose': '-v',
  '-V': '-V',
  '--version': '-V',
};

export const pgbouncerCommand = {
  summary: "run the pooler with PgBouncer's command line",
  help,
  run(args: readonly string[], terminal: Terminal): Promise<number> {
    return serveCommand.run(serveArguments(args), terminal);
  },
};

/** The same for `headgate serve`. */
export function serveArguments(args: readonly string[]): string[] {
  const found: string[] = [];
  const files: string[] = [];
  const rest = args.flatMap(apart);
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, user] = /^--user=(.*)$/s.exec(arg) ?? [];
    if (arg === '-u' || arg === '--user' || user !== undefined) {
      const name = user ?? rest.shift();
      if (!name) throw new UsageError(`${arg} needs the name of a user`);
      found.push('--run-as', name);
    } else if (arg === '-R' || arg === '--reboot')
      throw new UsageError(`${arg} is not there; headgate pgbouncer --help says what to do in its place`);
    else if (arg.startsWith('-')) {
      const flag = switches[arg];
      if (flag === undefined) throw new UsageError(`${arg} is not an option; see headgate pgbouncer --help`);
      found.push(flag);
    } else files.push(arg);
  }
  if (files.length > 1) throw new UsageError(`one configuration file is enough, not ${files.join(' and ')}`);
  if (files[0] !== undefined) found.push('--pgbouncer-ini', files[0]);
  else if (!found.includes('-V')) throw new UsageError('Need config file.  See headgate pgbouncer --help');
  return found;
}

/** `-dq` is `-d -q`, and `-upostgres` is `-u postgres`. */
function apart(arg: string): string[] {
  const [, letters] = /^-([A-Za-z]{2,})$/.exec(arg) ?? [];
  if (letters === undefined) return [arg];
  const user = letters.indexOf('u');
  const flags = user === -1 ? letters : letters.slice(0, user);
  const name = user === -1 ? [] : ['-u', ...(letters.length > user + 1 ? [letters.slice(user + 1)] : [])];
  return [...Array.from(flags, (letter) => `-${letter}`), ...name];
}
