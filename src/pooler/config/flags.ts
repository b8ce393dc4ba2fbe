/** Command line of `headgate serve`: every option is a flag. */
import { nearest } from '../../kernel/nearest.js';
import { boolean } from './kinds.js';
import { flagOf } from './option.js';
import { allOptions } from './option-table.js';

/** Flags that are not options of the configuration. */
const own = {
  config: 'text',
  'pgbouncer-ini': 'text',
  check: 'switch',
  connect: 'switch',
  explain: 'switch',
  database: 'text',
  user: 'text',
  daemon: 'switch',
  quiet: 'switch',
  version: 'switch',
} as const;

/** PgBouncer's short flags, and the flag that each stands for. */
const shortFlags: Readonly<Record<string, string>> = {
  '-d': '--daemon',
  '-q': '--quiet',
  '-V': '--version',
  '-u': '--run-as',
  '-v': '--log-level=debug',
};

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

/** Kinds of the flags, by name without dashes. */
const kinds: ReadonlyMap<string, 'text' | 'switch'> = new Map([
  ...Object.entries(own),
  ...allOptions.map(
    ({ option }) => [flagOf(option).slice(2), option.kind.name === boolean.name ? 'switch' : 'text'] as const,
  ),
]);

/** Option names have underscores, flags have dashes. */
const entryNames: Readonly<Record<string, string>> = { database: 'databases', user: 'users' };

export function readFlags(args: readonly string[]): ServeFlags {
  const found = new Map<string, string[]>();
  const mistakes: string[] = [];
  const rest = [...args];
  for (let given = rest.shift(); given !== undefined; given = rest.shift()) {
    const arg = shortFlags[given] ?? given;
    const [, raw = '', inline] = /^--([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (raw === '') {
      mistakes.push(
        `'${arg.slice(0, 40)}' is not expected here; a configuration file is given with --config FILE`,
      );
      continue;
    }
    const isNegated = raw.startsWith('no-') && kinds.get(raw.slice(3)) === 'switch' && !kinds.has(raw);
    const name = isNegated ? raw.slice(3) : raw;
    const kind = kinds.get(name);
    if (kind === undefined) mistakes.push(unknown(raw));
    else if (kind === 'switch') {
      if (isNegated && inline !== undefined) mistakes.push(`--${raw} has no value`);
      add(found, name, isNegated ? 'false' : (inline ?? 'true'));
    } else {
      const value = inline ?? (rest[0]?.startsWith('--') ? undefined : rest.shift());
      if (value === undefined) mistakes.push(`--${name} needs a value`);
      else add(found, name, value);
    }
  }
  return sortOut(found, mistakes);
}

function sortOut(given: ReadonlyMap<string, string[]>, mistakes: string[]): ServeFlags {
  const options = new Map<string, readonly string[]>();
  for (const [name, values] of given) {
    if (!Object.hasOwn(own, name)) options.set(name.replaceAll('-', '_'), values);
    else if (Object.hasOwn(entryNames, name)) options.set(entryNames[name] as string, values);
  }
  const last = (name: keyof typeof own) => given.get(name)?.at(-1) || undefined;
  const isOn = (name: keyof typeof own) => last(name) === 'true';
  if (given.has('config') && given.has('pgbouncer-ini'))
    mistakes.push('give either --config or --pgbouncer-ini; headgate import makes one of the other');
  if (isOn('connect') && !isOn('check')) mistakes.push('--connect goes with --check');
  return {
    configFile: last('config'),
    pgbouncerIni: last('pgbouncer-ini'),
    check: isOn('check'),
    connect: isOn('connect'),
    explain: isOn('explain'),
    daemon: isOn('daemon'),
    quiet: isOn('quiet'),
    version: isOn('version'),
    options,
    mistakes,
  };
}

function add(given: Map<string, string[]>, name: string, value: string): void {
  const values = given.get(name);
  if (values === undefined) given.set(name, [value]);
  else values.push(value);
}

function unknown(name: string): string {
  const guess = nearest(name.replaceAll('_', '-'), kinds.keys());
  return `--${name.slice(0, 40)} is not an option${guess === undefined ? '' : `; did you mean --${guess}?`}`;
}
