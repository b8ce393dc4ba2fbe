/** Everything that is wrong with a configuration, each problem with where it is, told together. */
import { HeadgateError } from '../../kernel/errors.js';

/** Where something is written. */
export interface Place {
  /** A file, a flag such as `--pool-mode`, or an environment variable. */
  readonly source: string;
  /** In a file: from 1. */
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** One thing wrong with a configuration. */
export interface ConfigProblem {
  /** Which setting it is about: `databases.app.port`. Empty where it is about none. */
  readonly path: string;
  readonly message: string;
  /** Undefined where it is about something that is written nowhere. */
  readonly place: Place | undefined;
  /** What a pgbouncer.ini says there; never a secret. */
  readonly given?: GivenSetting | undefined;
}

/** A line of a pgbouncer.ini. */
export interface GivenSetting {
  readonly name: string;
  readonly value: string;
}

/** The pooler can't run with this configuration; `problems` lists all that is wrong with it, not only the first. */
export class ConfigError extends HeadgateError {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
    const lines = problems.map((problem) => `  ${describeProblem(problem)}`);
    super('HG_BAD_CONFIG', [`${count} with the configuration:`, ...lines].join('\n'));
    this.problems = Object.freeze([...problems]);
  }
}

export function describeProblem({ path, message, place }: ConfigProblem): string {
  const at = place === undefined ? '' : `${describePlace(place)}  `;
  return `${at}${path === '' ? '' : `${path}: `}${message}`;
}

/** As PgBouncer names it: by the name in its file, with the value. */
export function describeAsPgBouncer(problem: ConfigProblem): string {
  const { given } = problem;
  const what = describeProblem(problem);
  return given === undefined ? what : `invalid ${given.name} = ${given.value}: ${what}`;
}

/** `headgate.yaml:3:5`, `--pool-mode`. */
export function describePlace({ source, line, column }: Place): string {
  if (line === undefined) return source;
  return column === undefined ? `${source}:${line}` : `${source}:${line}:${column}`;
}

/** Collects problems while a configuration is read. The same one found twice is one. */
export class Problems {
  readonly #found = new Map<string, ConfigProblem>();
  /** By the path of the setting. */
  readonly given = new Map<string, GivenSetting>();

  /** In the order of the file, what is in no file last. */
  get list(): readonly ConfigProblem[] {
    return [...this.#found.values()].sort(
      (one, other) => lineOf(one) - lineOf(other) || (one.place?.column ?? 0) - (other.place?.column ?? 0),
    );
  }

  /** Something is wrong with this setting, or with what it is in. */
  concern(path: string): boolean {
    return [...this.#found.values()].some(
      (problem) => problem.path !== '' && (path === problem.path || path.startsWith(`${problem.path}.`)),
    );
  }

  add(path: string, message: string, place?: Place): void {
    const key = `${path}\n${message}\n${place === undefined ? '' : describePlace(place)}`;
    this.#found.set(key, { path, message, place, given: this.given.get(path) });
  }
}

function lineOf({ place }: ConfigProblem): number {
  return place?.line ?? Number.MAX_SAFE_INTEGER;
}

/** A value that is not of its kind; the message is to be read after the setting's name. */
export class Misread extends Error {}

/** The value for a message: its beginning, in one line, and nothing of what is inside of it. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40).replace(/\p{Cc}/gu, ' ')}'`;
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return String(value);
}
