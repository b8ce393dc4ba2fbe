/** Reads a command's options; an unknown one is answered with the one that was most likely meant. */
import { parseArgs } from 'node:util';
import { nearest } from '../kernel/nearest.js';
import { UsageError } from './usage-error.js';

/** `text` options have a value, `flag` options have none. */
export type OptionKinds = Readonly<Record<string, 'text' | 'flag'>>;

export interface ReadOptions<Kinds extends OptionKinds> {
  readonly values: { readonly [K in keyof Kinds]?: Kinds[K] extends 'text' ? string : true };
  readonly positionals: readonly string[];
}

export function readOptions<Kinds extends OptionKinds>(
  args: readonly string[],
  kinds: Kinds,
): ReadOptions<Kinds> {
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [
      name,
      { type: kind === 'text' ? ('string' as const) : ('boolean' as const) },
    ]),
  );
  // Its own strictness stops at the first mistake and knows no nearest name.
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values: Record<string, string | true> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind === 'option') values[token.name] = read(token.name, token.rawName, token.value, kinds);
  }
  return { values: values as ReadOptions<Kinds>['values'], positionals };
}

function read(name: string, rawName: string, value: string | undefined, kinds: OptionKinds): string | true {
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (kind === undefined) {
    const guess = nearest(name, Object.keys(kinds));
    throw new UsageError(
      `${rawName} is not an option${guess === undefined ? '' : `; did you mean --${guess}?`}`,
    );
  }
  if (kind === 'flag') {
    if (value !== undefined) throw new UsageError(`${rawName} has no value, but got '${value}'`);
    return true;
  }
  if (value === undefined || value === '' || value.startsWith('--'))
    throw new UsageError(`${rawName} needs a value`);
  return value;
}

export function wholeNumber(name: string, text: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= max) return value;
  throw new UsageError(`--${name} must be a whole number from 0 to ${max}, not '${text}'`);
}
