/** Command line of `headgate serve`: every option of the configuration is a flag. */
import { boolean } from '../pooler/config/kinds.js';
import { flagOf } from '../pooler/config/option.js';
import { allOptions } from '../pooler/config/option-table.js';
import { type OptionKind, readCommandLine } from './options.js';

/** Flags that are not options of the configuration. */
const own = {
  config: 'text',
  'pgbouncer-ini': 'text',
  check: 'flag',
  connect: 'flag',
  explain: 'flag',
  database: 'text',
  user: 'text',
  daemon: 'flag',
  quiet: 'flag',
  version: 'flag',
} as const;

/** PgBouncer's short flags, and the flag that each stands for. */
const shortFlags = { d: 'daemon', q: 'quiet', V: 'version', u: 'run-as', v: 'log-level=debug' };

export interface ServeFlags {
  readonly configFile: string | undefined;
  readonly pgbouncerIni: string | undefined;
  readonly check: boolean;
  /** With `check`: tries a login to every database. */
  readonly connect: boolean;
  readonly explain: boolean;
  /** Runs in the background. */
  readonly daemon: boolean;
  /** Prints nothing on the terminal: the log goes to its file, or to the system's log. */
  readonly quiet: boolean;
  readonly version: boolean;
  /** By option name; `databases` and `users` have one text per entry. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  /** All mistakes on the command line. */
  readonly mistakes: readonly string[];
}

/** By name without dashes. Nothing behind `=` switches an option of the configuration off. */
const kinds: ReadonlyMap<string, OptionKind> = new Map<string, OptionKind>([
  ...Object.entries(own),
  ...allOptions.map(
    ({ option }) =>
      [flagOf(option).slice(2), option.kind.name === boolean.name ? 'switch' : 'value'] as const,
  ),
]);

/** Option names have underscores, flags have dashes. */
const entryNames: Readonly<Record<string, string>> = { database: 'databases', user: 'users' };

export function readFlags(args: readonly string[]): ServeFlags {
  const { values, positionals, mistakes } = readCommandLine(args, kinds, shortFlags);
  const options = new Map<string, readonly string[]>();
  for (const [name, given] of values) {
    if (!Object.hasOwn(own, name)) options.set(name.replaceAll('-', '_'), given);
    else if (Object.hasOwn(entryNames, name)) options.set(entryNames[name] as string, given);
  }
  const last = (name: keyof typeof own) => values.get(name)?.at(-1);
  const strays = positionals.map(
    (given) =>
      `'${given.slice(0, 40)}' is not expected here; a configuration file is given with --config FILE`,
  );
  return {
    configFile: last('config'),
    pgbouncerIni: last('pgbouncer-ini'),
    check: values.has('check'),
    connect: values.has('connect'),
    explain: values.has('explain'),
    daemon: values.has('daemon'),
    quiet: values.has('quiet'),
    version: values.has('version'),
    options,
    mistakes: [...mistakes, ...strays, ...contradictions(values)],
  };
}

function contradictions(values: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = [];
  if (values.has('config') && values.has('pgbouncer-ini'))
    found.push('give either --config or --pgbouncer-ini; headgate import makes one of the other');
  if (values.has('connect') && !values.has('check')) found.push('--connect goes with --check');
  return found;
}
