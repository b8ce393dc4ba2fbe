/** Reads untrusted options one by one, remembers everything that is wrong, and throws it all at once. */
import { parseDuration } from './duration.js';
import { type OptionProblem, PoolOptionsError } from './errors.js';
import { nearest } from './nearest.js';

interface IntegerRange {
  readonly min: number;
  readonly max?: number;
  /** `Infinity` is a legal value too. */
  readonly orInfinity?: boolean;
}

export class OptionReader {
  readonly #options: Readonly<Record<string, unknown>>;
  #problems: OptionProblem[] = [];
  /** The prefix of these options in the whole: `reservoir.` for the options inside it. */
  #place = '';
  readonly #known = new Set<string>();
  readonly #userNames: Readonly<Record<string, string>>;

  /** `userNames`: the user's name of an option, where it differs from the one it is read by. */
  constructor(options: object, userNames: Readonly<Record<string, string>> = {}) {
    this.#options = options as Record<string, unknown>;
    this.#userNames = userNames;
  }

  /** Reads the options inside of an option; undefined if it is left out. `true` means the defaults. */
  group(name: string): OptionReader | undefined {
    const value = this.#take(name);
    if (value === undefined || value === false) return undefined;
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isObject && value !== true) this.problem(name, `must be an object or true, not ${show(value)}`);
    const inner = new OptionReader(isObject ? value : {});
    inner.#problems = this.#problems;
    inner.#place = `${this.#place}${this.#nameFor(name)}.`;
    return inner;
  }

  problem(name: string, message: string): void {
    this.#problems.push({ path: this.#place + this.#nameFor(name), message });
  }

  /** True if the option is set, and not merely switched off. */
  has(name: string): boolean {
    const value = this.#take(name);
    return value !== undefined && value !== false;
  }

  integer(name: string, fallback: number, range: IntegerRange): number {
    const value = this.#take(name);
    if (value === undefined) return fallback;
    const { min, max = Number.MAX_SAFE_INTEGER, orInfinity = false } = range;
    if (orInfinity && value === Infinity) return value;
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    const upTo = range.max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
    this.problem(
      name,
      `must be a whole number ${upTo}${orInfinity ? ', or Infinity' : ''}, not ${show(value)}`,
    );
    return fallback;
  }

  /** A finite number above 0; there is no default. */
  positive(name: string): number {
    const value = this.#take(name);
    if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
    this.problem(name, `must be a number above 0, not ${show(value)}`);
    return 1;
  }

  /** A number, not necessarily a whole one. */
  number(
    name: string,
    fallback: number,
    { min, max }: { readonly min: number; readonly max: number },
  ): number {
    const value = this.#take(name);
    if (value === undefined) return fallback;
    if (typeof value === 'number' && value >= min && value <= max) return value;
    this.problem(name, `must be a number from ${min} to ${max}, not ${show(value)}`);
    return fallback;
  }

  /** A number from 0 to 1. */
  share(name: string, fallback: number): number {
    const value = this.#take(name);
    if (value === undefined) return fallback;
    if (typeof value === 'number' && value >= 0 && value <= 1) return value;
    this.problem(name, `must be a number from 0 to 1, not ${show(value)}`);
    return fallback;
  }

  /** Milliseconds; 0 means `whenZero` (usually "off"). */
  duration(name: string, fallback: number, whenZero: number): number {
    const value = this.#take(name);
    if (value === undefined) return fallback;
    if (value === Infinity) return whenZero === 0 ? fallback : whenZero;
    const milliseconds = parseDuration(value);
    if (milliseconds !== undefined) return milliseconds === 0 ? whenZero : milliseconds;
    this.problem(name, `must be a duration such as 500 (ms), '500ms', '45s' or '11m', not ${show(value)}`);
    return fallback;
  }

  oneOf<T extends string>(name: string, fallback: T, choices: readonly T[]): T {
    const value = this.#take(name);
    if (value === undefined) return fallback;
    if (choices.includes(value as T)) return value as T;
    this.problem(name, `must be one of ${choices.map((c) => `'${c}'`).join(', ')}, not ${show(value)}`);
    return fallback;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.#take(name);
    if (value === undefined) return fallback;
    if (typeof value === 'boolean') return value;
    this.problem(name, `must be true or false, not ${show(value)}`);
    return fallback;
  }

  string(name: string, fallback: string): string {
    const value = this.#take(name);
    if (value === undefined) return fallback;
    if (typeof value === 'string' && value.length > 0) return value;
    this.problem(name, `must be a text that is not empty, not ${show(value)}`);
    return fallback;
  }

  /** A function, or undefined where it is left out and not required. */
  callback<F>(name: string, required: boolean): F | undefined {
    const value = this.#take(name);
    if (typeof value === 'function') return value as F;
    if (value !== undefined) this.problem(name, `must be a function, not ${show(value)}`);
    else if (required) this.problem(name, 'is missing: it must be a function');
    return undefined;
  }

  /** An object that has the given methods, or undefined. */
  object<T>(name: string, methods: readonly (keyof T & string)[]): T | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    const candidate = value as Record<string, unknown> | null;
    const missing =
      typeof candidate === 'object' && candidate !== null
        ? methods.filter((method) => typeof candidate[method] !== 'function')
        : methods;
    if (missing.length === 0) return value as T;
    this.problem(
      name,
      `must be an object with ${missing.map((m) => `${m}()`).join(', ')}, not ${show(value)}`,
    );
    return undefined;
  }

  /** Call after the last option was read: a name that was never read is most likely a typing mistake. */
  refuseUnknown(): void {
    for (const name of Object.keys(this.#options)) {
      if (this.#known.has(name) || this.#options[name] === undefined) continue;
      const guess = nearest(name, this.#known);
      this.problem(
        name,
        guess === undefined ? 'is not an option' : `is not an option; did you mean ${guess}?`,
      );
    }
  }

  /** `subject`: the options, as the message calls them. */
  throwIfAnyProblem(subject?: string): void {
    if (this.#problems.length > 0) throw new PoolOptionsError(this.#problems, subject);
  }

  /** The option's name as the user wrote it. */
  #nameFor(name: string): string {
    return Object.hasOwn(this.#userNames, name) ? (this.#userNames[name] as string) : name;
  }

  #take(name: string): unknown {
    this.#known.add(name);
    return this.#options[name];
  }
}

/** The value for a message: short, and without the contents of objects, which may be secret. */
function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return String(value);
}
