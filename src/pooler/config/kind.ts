/** Kinds of option values, for all sources: files, the command line, variables and pgbouncer.ini. */
import type { Environment } from '../../kernel/environment.js';
import { nearest } from '../../kernel/nearest.js';
import { Misread, show } from './config-problems.js';

/** Context for reading a value. */
export interface ReadContext {
  /** Base folder of relative paths. */
  readonly folder: string;
  readonly environment: Environment;
  /** False: contents of files are not checked, since they may be on another machine. */
  readonly readsFiles: boolean;
}

export interface Kind<T> {
  /** For the documentation. */
  readonly name: string;
  /** Placeholder for the value in the help; none where a flag needs no value. */
  readonly placeholder: string | undefined;
  /** From a YAML or JSON file. Throws `Misread`. */
  fromData(value: unknown, context: ReadContext): T;
  /** From a flag, an environment variable or a connection string. Throws `Misread`. */
  fromText(text: string, context: ReadContext): T;
  /** The YAML value for this text of pgbouncer.ini. Throws `Misread`. */
  iniToData(text: string): unknown;
  /** The closest value for a text beyond the kind's range, and why. Throws `Misread`. */
  iniBeyond?(text: string): { readonly data: unknown; readonly why: string } | undefined;
  /** For display. Never a secret. */
  show(value: T): string;
  /** As PgBouncer's console shows it. Never a secret. */
  toIni(value: T): string;
  /** Meaning of 0, where it is special. */
  readonly zero?: string | undefined;
}

export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A number without quotes may have lost something: 007 is read as 7. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean')
    throw new Misread(`must be a text, not ${show(value)}; put it in quotes`);
  throw new Misread(`must be a text, not ${show(value)}`);
}

export function choiceOf<C extends string>(text: string, choices: readonly C[]): C {
  const found = choices.find((choice) => choice.toLowerCase() === text.toLowerCase());
  if (found !== undefined) return found;
  const guess = nearest(text, choices);
  const meant = guess === undefined ? '' : `; did you mean ${guess}?`;
  throw new Misread(`must be one of ${choices.join(', ')}, not ${show(text)}${meant}`);
}

/** Items between commas, without the space around them. */
export function itemsOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** As C reads integers: 0x is hexadecimal, a leading 0 octal. */
export function iniInteger(text: string): number {
  const [, sign, digits = ''] = /^([+-]?)(0x[0-9a-f]+|\d+)$/i.exec(text) ?? [];
  const octal = /^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits;
  const value = digits === '' ? Number.NaN : Number(octal);
  if (!Number.isSafeInteger(value)) throw new Misread(`must be a whole number, not ${show(text)}`);
  return sign === '-' ? 0 - value : value;
}
