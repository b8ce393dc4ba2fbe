/** Reads the keys of one part of a scenario, remembers what is wrong and where, and goes on. */
import { formatDuration, parseDuration } from '../../kernel/duration.js';
import { nearest } from '../../kernel/nearest.js';
import { count } from '../format.js';
import { type KeyOf, type ScenarioPart, scenarioKeys } from './scenario-reader-keys.js';
import type { Problems } from './scenario-reader-problems.js';

export interface Range {
  readonly min: number;
  readonly max: number;
}

export type Mapping = Readonly<Record<string, unknown>>;

export class Fields<Part extends ScenarioPart> {
  readonly path: string;
  readonly problems: Problems;
  readonly #values: Mapping;

  /** A value that is not a mapping is a problem, and is read as an empty one. Unknown keys are found at once. */
  constructor(part: Part, value: unknown, path: string, problems: Problems) {
    this.path = path;
    this.problems = problems;
    this.#values = isMapping(value) ? value : {};
    if (!isMapping(value)) problems.add(path, `must be a mapping of keys to values, not ${show(value)}`);
    refuseUnknown(this.#values, scenarioKeys[part], path, problems);
  }

  has(key: KeyOf<Part>): boolean {
    return this.raw(key) !== undefined;
  }

  /** YAML's `key:` without a value is as good as no key. */
  raw(key: KeyOf<Part>): unknown {
    return Object.hasOwn(this.#values, key) ? (this.#values[key] ?? undefined) : undefined;
  }

  pathOf(key: KeyOf<Part>): string {
    return this.path === '' ? key : `${this.path}.${key}`;
  }

  problem(key: KeyOf<Part>, message: string): void {
    this.problems.add(this.pathOf(key), message);
  }

  /** A missing key is a problem; the number returned for it is only for reading on. */
  required<T>(key: KeyOf<Part>, read: () => T | undefined, example: string, readOn: T): T {
    if (!this.has(key)) this.problem(key, `is missing: ${example}`);
    return read() ?? readOn;
  }

  number(key: KeyOf<Part>, { min, max }: Range): number | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && value >= min && value <= max) return value;
    this.problem(key, `must be a number from ${count(min)} to ${count(max)}, not ${show(value)}`);
    return undefined;
  }

  integer(key: KeyOf<Part>, { min, max }: Range): number | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    this.problem(key, `must be a whole number from ${count(min)} to ${count(max)}, not ${show(value)}`);
    return undefined;
  }

  /** Milliseconds. A range that begins below 0 allows a sign. */
  duration(key: KeyOf<Part>, range: Range): number | undefined {
    const value = this.raw(key);
    return value === undefined
      ? undefined
      : readDuration(value, range, (message) => this.problem(key, message));
  }

  flag(key: KeyOf<Part>): boolean | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === 'boolean') return value;
    this.problem(key, `must be true or false, not ${show(value)}`);
    return undefined;
  }

  text(key: KeyOf<Part>, longest: number): string | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (typeof value === 'string' && value.trim() !== '' && value.length <= longest) return value;
    this.problem(key, `must be a text of 1 to ${count(longest)} characters, not ${show(value)}`);
    return undefined;
  }

  /** A name that can be written in a file's name, a table and a command without quotes. */
  name(key: KeyOf<Part>): string | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (typeof value === 'string' && /^[A-Za-z0-9][\w.-]{0,59}$/.test(value)) return value;
    this.problem(
      key,
      `must be a name of up to 60 letters, digits, '.', '_' and '-' that begins with a letter or a digit, not ${show(value)}`,
    );
    return undefined;
  }

  oneOf<T extends string>(key: KeyOf<Part>, choices: readonly T[]): T | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (choices.includes(value as T)) return value as T;
    const guess = typeof value === 'string' ? nearest(value, choices) : undefined;
    const meant = guess === undefined ? '' : `; did you mean ${guess}?`;
    this.problem(key, `must be one of ${choices.join(', ')}, not ${show(value)}${meant}`);
    return undefined;
  }

  group<Inner extends ScenarioPart>(key: KeyOf<Part>, part: Inner): Fields<Inner> | undefined {
    const value = this.raw(key);
    return value === undefined ? undefined : new Fields(part, value, this.pathOf(key), this.problems);
  }

  /** A list of mappings; a single mapping is a list of one. */
  groups<Inner extends ScenarioPart>(key: KeyOf<Part>, part: Inner, most: number): Fields<Inner>[] {
    const value = this.raw(key);
    if (value === undefined) return [];
    if (!Array.isArray(value)) return [new Fields(part, value, this.pathOf(key), this.problems)];
    if (value.length > most)
      this.problem(key, `has ${count(value.length)} entries, more than the ${count(most)} it may have`);
    return value
      .slice(0, most)
      .map((item, index) => new Fields(part, item, `${this.pathOf(key)}[${index}]`, this.problems));
  }

  /** One text, or a list of texts, each with its path. */
  texts(key: KeyOf<Part>): { readonly text: string; readonly path: string }[] {
    const value = this.raw(key);
    if (value === undefined) return [];
    const items = Array.isArray(value) ? value : [value];
    return items.flatMap((item: unknown, index) => {
      const path = Array.isArray(value) ? `${this.pathOf(key)}[${index}]` : this.pathOf(key);
      if (typeof item === 'string') return [{ text: item, path }];
      this.problems.add(path, `must be a text, not ${show(item)}`);
      return [];
    });
  }
}

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Also for what has no fixed part of its own, such as a delay. */
export function refuseUnknown(
  values: Mapping,
  known: readonly string[],
  path: string,
  problems: Problems,
): void {
  for (const key of Object.keys(values)) {
    if (known.includes(key)) continue;
    const at = path === '' ? key : `${path}.${key}`;
    const guess = nearest(key, known);
    if (key === '<<')
      problems.add(at, 'merging is not supported; what pools have in common goes to defaults');
    else if (guess !== undefined) problems.add(at, `is not known here; did you mean ${guess}?`);
    else problems.add(at, `is not known here; known are ${known.join(', ')}`);
  }
}

export function readDuration(
  value: unknown,
  { min, max }: Range,
  problem: (message: string) => void,
): number | undefined {
  const text = typeof value === 'string' && min < 0 ? value.replace(/^[-+]/, '') : value;
  const isNegative = typeof value === 'string' && min < 0 && value.startsWith('-');
  // A number without a unit would be taken for seconds by one reader and for milliseconds by the next.
  const size = typeof text === 'string' || text === 0 ? parseDuration(text) : undefined;
  if (size === undefined) {
    problem(`must be a duration with its unit, such as 500ms, 45s or 11m, not ${show(value)}`);
    return undefined;
  }
  const milliseconds = isNegative ? -size : size;
  if (milliseconds >= min && milliseconds <= max) return milliseconds === 0 ? 0 : milliseconds;
  problem(`must be from ${written(min)} to ${written(max)}, not ${show(value)}`);
  return undefined;
}

function written(milliseconds: number): string {
  return milliseconds < 0 ? `-${formatDuration(-milliseconds)}` : formatDuration(milliseconds);
}

/** The value for a message, short. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40)}'`;
  if (Array.isArray(value)) return 'a list';
  if (isMapping(value)) return 'a mapping';
  return String(value);
}
