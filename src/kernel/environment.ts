/**
 * Reads environment variables. Operators write them, and a typing mistake must not stop a service: an unreadable value
 * counts as not set, and causes a warning that shows the value and its replacement.
 */

/** Variables by their name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable, and a text for the value used if it is not set or unusable. */
export interface EnvironmentVariable {
  readonly name: string;
  readonly default: string;
}

/** A value that is not used as it was written. */
export interface EnvironmentWarning {
  readonly variable: string;
  /** The problem and the value used instead, to be read after the variable's name. */
  readonly text: string;
}

/** The valid values. Without any limit all are valid. */
export interface EnvironmentRange {
  /** Smaller values are not used. */
  readonly min?: number;
  /** This value and smaller ones are not used. */
  readonly above?: number;
  /** Replaces smaller values. */
  readonly floor?: number;
}

const yes: ReadonlySet<string> = new Set(['true', 't', '1']);
const no: ReadonlySet<string> = new Set(['false', 'f', '0']);

export class EnvironmentReader {
  readonly #environment: Environment;
  readonly #warnings: EnvironmentWarning[] = [];
  readonly #asked = new Set<string>();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  get warnings(): readonly EnvironmentWarning[] {
    return this.#warnings;
  }

  /** Something was corrected, or can't be done. */
  warn(name: string, text: string): void {
    this.#warnings.push({ variable: name, text });
  }

  /** The value without the space around it. An empty one is the same as none. */
  text(name: string): string | undefined {
    this.#asked.add(name);
    return this.#environment[name]?.trim() || undefined;
  }

  /** Accepts what Go's ParseBool does, in any case of letters. */
  boolean(variable: EnvironmentVariable): boolean | undefined {
    const text = this.text(variable.name)?.toLowerCase();
    if (text === undefined) return undefined;
    if (yes.has(text)) return true;
    return no.has(text) ? false : this.#leaveAside(variable, 'neither true nor false');
  }

  /** A whole number. */
  integer(variable: EnvironmentVariable, range: EnvironmentRange = {}): number | undefined {
    const text = this.text(variable.name);
    if (text === undefined) return undefined;
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(value)) return this.#leaveAside(variable, 'no whole number');
    return this.#within(variable, value, range);
  }

  /** A number that is written without an exponent. */
  number(variable: EnvironmentVariable, range: EnvironmentRange = {}): number | undefined {
    const text = this.text(variable.name);
    if (text === undefined) return undefined;
    if (!/^[+-]?\d{1,15}(\.\d{1,15})?$/.test(text)) return this.#leaveAside(variable, 'no number');
    return this.#within(variable, Number(text), range);
  }

  /** Milliseconds. */
  duration(variable: EnvironmentVariable, range: EnvironmentRange = {}): number | undefined {
    const text = this.text(variable.name);
    if (text === undefined) return undefined;
    const value = parseGoDuration(text);
    if (value === undefined) return this.#leaveAside(variable, "no duration such as '11m' or '45s'");
    return this.#within(variable, value, range);
  }

  /** One of a few words. */
  oneOf<T extends string>(variable: EnvironmentVariable, choices: readonly T[]): T | undefined {
    const text = this.text(variable.name);
    if (text === undefined || choices.includes(text as T)) return text as T | undefined;
    return this.#leaveAside(variable, `none of ${choices.join(', ')}`);
  }

  /** The names of all variables that are set and not blank. */
  names(): string[] {
    return Object.keys(this.#environment).filter((name) => Boolean(this.#environment[name]?.trim()));
  }

  wasAsked(name: string): boolean {
    return this.#asked.has(name);
  }

  /** The value for a message: its beginning, in one line. */
  quote(name: string): string {
    return `'${(this.#environment[name] ?? '')
      .trim()
      .slice(0, 40)
      .replace(/\p{Cc}/gu, ' ')}'`;
  }

  #within(variable: EnvironmentVariable, value: number, range: EnvironmentRange): number | undefined {
    const { min = -Infinity, above = -Infinity, floor } = range;
    if (value < min) return this.#leaveAside(variable, `less than ${min}`);
    if (value <= above) return this.#leaveAside(variable, `not more than ${above}`);
    if (floor === undefined || value >= floor) return value;
    this.warn(variable.name, `is ${this.quote(variable.name)}, less than ${floor}: ${floor} is used`);
    return floor;
  }

  /** Treats the variable as not set. */
  #leaveAside({ name, default: usual }: EnvironmentVariable, why: string): undefined {
    this.warn(name, `is ${this.quote(name)}, ${why}: the default, ${usual}, is used`);
    return undefined;
  }
}

const millisecondsPer: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  // The two ways to write a mu.
  '\u00b5s': 1e-3,
  '\u03bcs': 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const onePart = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h|d)/y;

/**
 * Milliseconds, of a duration as Go writes and reads it: `11m0s`, `1.5h`, `-250us`, and days beside. A number without a
 * unit is none, but for 0: some would mean seconds, and others milliseconds.
 */
export function parseGoDuration(text: string): number | undefined {
  const [, sign, rest = ''] = /^([+-]?)(.{1,40})$/.exec(text) ?? [];
  if (rest === '0') return 0;
  let total = 0;
  onePart.lastIndex = 0;
  while (onePart.lastIndex < rest.length) {
    const part = onePart.exec(rest);
    if (part === null) return undefined;
    total += Number(part[1]) * (millisecondsPer[part[2] as string] as number);
  }
  if (rest === '') return undefined;
  return sign === '-' ? 0 - total : total;
}
