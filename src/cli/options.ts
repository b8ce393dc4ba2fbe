/**
 * Reads the command line of every command, all mistakes at once. `--name value` and `--name=value` are the same, `--` ends the options,
 * and of an option that is given twice the last one counts. An unknown option is answered with the one that was most likely meant.
 */
import { parseArgs } from 'node:util';
import { nearest } from '../kernel/nearest.js';
import { UsageError } from './usage-error.js';

/**
 * - `text`: has a value, which is not empty and begins with dashes only behind `=`.
 * - `value`: the same, but may be empty.
 * - `flag`: has no value.
 * - `switch`: on, off as `--no-name`, or with a value behind `=`.
 */
export type OptionKind = 'text' | 'value' | 'flag' | 'switch';

export interface CommandLine {
  /** By name without dashes, in the order in which they are given. `true` and `false` are the values of flags and switches. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
  readonly mistakes: readonly string[];
}

export type OptionKinds = Readonly<Record<string, 'text' | 'flag'>>;

export interface ReadOptions<Kinds extends OptionKinds> {
  readonly values: { readonly [K in keyof Kinds]?: Kinds[K] extends 'text' ? string : true };
  readonly positionals: readonly string[];
}

/** Limit of what is repeated from a command line. */
const longestEcho = 40;

/** For a command without short options. Throws a UsageError with all mistakes. */
export function readOptions<Kinds extends OptionKinds>(
  args: readonly string[],
  kinds: Kinds,
): ReadOptions<Kinds> {
  const { values, positionals, mistakes } = readCommandLine(args, new Map(Object.entries(kinds)));
  if (mistakes.length > 0) throw wrongUsage(mistakes);
  const last = Array.from(values, ([name, given]) => {
    const value = given.at(-1) as string;
    return [name, kinds[name] === 'flag' ? true : value] as const;
  });
  return { values: Object.fromEntries(last) as ReadOptions<Kinds>['values'], positionals };
}

export function wrongUsage(mistakes: readonly string[]): UsageError {
  return new UsageError(mistakes.join('\nheadgate: '));
}

/** `shorts`: by letter, the name of the option, or `name=value`. */
export function readCommandLine(
  args: readonly string[],
  kinds: ReadonlyMap<string, OptionKind>,
  shorts: Readonly<Record<string, string>> = {},
): CommandLine {
  const line = new Line(kinds, shorts);
  for (let rest = args; rest.length > 0; ) rest = line.read(rest);
  return line;
}

class Line implements CommandLine {
  readonly values = new Map<string, string[]>();
  readonly positionals: string[] = [];
  readonly mistakes: string[] = [];
  readonly #kinds: ReadonlyMap<string, OptionKind>;
  readonly #shorts: Readonly<Record<string, string>>;

  constructor(kinds: ReadonlyMap<string, OptionKind>, shorts: Readonly<Record<string, string>>) {
    this.#kinds = kinds;
    this.#shorts = shorts;
  }

  /** Answers the arguments that are still to be read: those behind an option without its value. */
  read(args: readonly string[]): readonly string[] {
    // Node's own strictness stops at the first mistake and knows no nearest name.
    const { tokens } = parseArgs({
      args: [...args],
      options: this.#options(),
      strict: false,
      allowPositionals: true,
      tokens: true,
    });
    for (const token of tokens) {
      if (token.kind === 'positional') this.positionals.push(token.value);
      if (token.kind !== 'option') continue;
      if (token.value?.startsWith('--') && token.inlineValue === false) {
        this.#needsValue(token.rawName);
        return args.slice(token.index + 1);
      }
      this.#take(token.name, token.rawName, token.value);
    }
    return [];
  }

  #options(): Record<string, { type: 'string' | 'boolean'; short?: string }> {
    const letters = new Map(Object.entries(this.#shorts).map(([letter, name]) => [name, letter]));
    return Object.fromEntries(
      Array.from(this.#kinds, ([name, kind]) => {
        const type = kind === 'text' || kind === 'value' ? ('string' as const) : ('boolean' as const);
        const short = letters.get(name);
        return [name, short === undefined ? { type } : { type, short }];
      }),
    );
  }

  #take(name: string, rawName: string, value: string | undefined): void {
    const [meant, fixed] = rawName.startsWith('--') ? [] : (this.#shorts[name]?.split('=') ?? []);
    if (meant !== undefined && fixed !== undefined) {
      this.#add(meant, fixed);
      return;
    }
    const kind = this.#kinds.get(name);
    if (kind === undefined) this.#takeNegated(name, rawName, value);
    else if (kind === 'switch') this.#add(name, value ?? 'true');
    else if (kind === 'flag') {
      if (value === undefined) this.#add(name, 'true');
      else this.mistakes.push(`${rawName} has no value, but got '${value.slice(0, longestEcho)}'`);
    } else if (value === undefined || (value === '' && kind === 'text')) this.#needsValue(rawName);
    else this.#add(name, value);
  }

  #takeNegated(name: string, rawName: string, value: string | undefined): void {
    const positive = name.startsWith('no-') ? name.slice(3) : name;
    if (positive === name || this.#kinds.get(positive) !== 'switch') this.#unknown(name, rawName);
    else if (value === undefined) this.#add(positive, 'false');
    else this.mistakes.push(`${rawName} has no value, but got '${value.slice(0, longestEcho)}'`);
  }

  #unknown(name: string, rawName: string): void {
    const guess = rawName.startsWith('--')
      ? nearest(name.replaceAll('_', '-'), this.#kinds.keys())
      : undefined;
    const hint = guess === undefined ? '' : `; did you mean --${guess}?`;
    this.mistakes.push(`${rawName.slice(0, longestEcho)} is not an option${hint}`);
  }

  #needsValue(rawName: string): void {
    this.mistakes.push(`${rawName} needs a value`);
  }

  #add(name: string, value: string): void {
    const values = this.values.get(name);
    if (values === undefined) this.values.set(name, [value]);
    else values.push(value);
  }
}

/** For a command with actions, where `given` is none of them. */
export function wrongAction(command: string, actions: readonly string[], given: string): UsageError {
  const guess = nearest(given, actions);
  const instead = given === '' ? '' : `, not '${given.slice(0, longestEcho)}'`;
  const hint = guess === undefined ? '' : ` Did you mean ${guess}?`;
  return new UsageError(`${command} needs one of ${actions.join(', ')}${instead}.${hint}`);
}

export function wholeNumber(name: string, text: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= max) return value;
  throw new UsageError(`--${name} must be a whole number from 0 to ${max}, not '${text}'`);
}
