/** Collects all problems of a configuration, each with its place. */
import { HeadgateError } from '../../kernel/errors.js';

/** Place of a setting. */
export interface Place {
  /** A file, a flag such as `--pool-mode`, or an environment variable. */
  readonly source: string;
  /** In a file: from 1. */
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** A problem of a configuration. */
export interface ConfigProblem {
  /** Path of the setting: `databases.app.port`. Empty where it is about none. */
  readonly path: string;
  readonly message: string;
  /** Undefined where the problem is about something that is not written anywhere. */
  readonly place: Place | undefined;
  /** The setting in a pgbouncer.ini; never a secret. */
  readonly given?: GivenSetting | undefined;
}

/** A line of a pgbouncer.ini. */
export interface GivenSetting {
  readonly name: string;
  readonly value: string;
}

/** The pooler can't run with this configuration; `problems` lists all problems, not only the first. */
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

/** Problem as PgBouncer reports it: by the name in its file, with the value. */
export function describeAsPgBouncer(problem: ConfigProblem): string {
  const { given } = problem;
  const what = describeProblem(problem);
  return given === undefined ? what : `invalid ${given.name} = ${given.value}: ${what}`;
}

const tlsPath = /^(?:clientTls|serverTls)\.|_tls/;

/** Problem of a TLS setting as PgBouncer logs it; undefined for other settings. */
export function describeAsTlsProblem(problem: ConfigProblem): string | undefined {
  const { path } = problem;
  if (!tlsPath.test(path)) return undefined;
  // PgBouncer writes errors of the system as strerror() does.
  const what = describeAsPgBouncer(problem).replace(/\bE[A-Z]+: ([a-z])/g, (_, first) => first.toUpperCase());
  if (!/ciphers$/i.test(path)) return `TLS setup failed: ${what}`;
  const isTls13 = /13_?ciphers$/i.test(path);
  return `TLS setup failed: failed to set ${isTls13 ? 'the TLSv1.3 cipher suites' : 'ciphers'}: ${what}`;
}

/** `headgate.yaml:3:5`, `--pool-mode`. */
export function describePlace({ source, line, column }: Place): string {
  if (line === undefined) return source;
  return column === undefined ? `${source}:${line}` : `${source}:${line}:${column}`;
}

/** Collects problems while a configuration is read. Duplicates count once. */
export class Problems {
  readonly #found = new Map<string, ConfigProblem>();
  /** By the path of the setting. */
  readonly given = new Map<string, GivenSetting>();

  /** In the order of the file; problems without a place come last. */
  get list(): readonly ConfigProblem[] {
    return [...this.#found.values()].sort(
      (one, other) => lineOf(one) - lineOf(other) || (one.place?.column ?? 0) - (other.place?.column ?? 0),
    );
  }

  /** True if there is a problem with this setting, or with one that contains it. */
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

/** A value of the wrong kind; the message is to be read after the setting's name. */
export class Misread extends Error {}

/** The value for a message: its beginning, in one line, without any nested content. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 40).replace(/\p{Cc}/gu, ' ')}'`;
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return String(value);
}
