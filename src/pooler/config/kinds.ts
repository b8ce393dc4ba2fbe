/** Kinds of values that most options have. */
import { formatDuration, parseDuration } from '../../kernel/duration.js';
import { Misread, show } from './config-problems.js';
import { choiceOf, iniInteger, itemsOf, type Kind, textOf } from './kind.js';

/** Limit of Node's timers, rounded down. */
const longestMs = 24 * 86_400_000;
const longest = formatDuration(longestMs);

/** Stands for "nothing" on a command line, where an empty value is hard to write. */
const none = 'none';

/** An empty value is allowed. */
export const text: Kind<string | undefined> = {
  name: 'text',
  placeholder: 'TEXT',
  fromData: (value) => textOf(value) || undefined,
  fromText: (value) => (value === none ? undefined : value || undefined),
  iniToData: (value) => value,
  show: (value) => value ?? none,
  toIni: (value) => value ?? '',
};

/** The text unchanged, even if empty. */
export const query: Kind<string> = {
  name: 'SQL',
  placeholder: 'SQL',
  fromData: textOf,
  fromText: (value) => (value === none ? '' : value),
  iniToData: (value) => value,
  show: (value) => value || none,
  toIni: (value) => value,
};

export const list: Kind<readonly string[]> = {
  name: 'list',
  placeholder: 'A,B',
  fromData(value) {
    if (!Array.isArray(value)) return Object.freeze(itemsOf(textOf(value)));
    return Object.freeze(value.map(textOf).filter((item) => item !== ''));
  },
  fromText: (value) => Object.freeze(value === none ? [] : itemsOf(value)),
  iniToData: itemsOf,
  show: (items) => items.join(', ') || none,
  toIni: (items) => items.join(', '),
};

export function oneOf<const C extends string>(...choices: readonly C[]): Kind<C> {
  return {
    name: choices.map((choice) => `\`${choice}\``).join(', '),
    placeholder: 'WORD',
    fromData: (value) => choiceOf(textOf(value), choices),
    fromText: (value) => choiceOf(value, choices),
    iniToData: (value) => choiceOf(value, choices),
    show: (value) => value,
    toIni: (value) => value,
  };
}

export const boolean: Kind<boolean> = {
  name: 'boolean',
  placeholder: undefined,
  fromData(value) {
    if (typeof value === 'boolean') return value;
    throw new Misread(`must be true or false, not ${show(value)}`);
  },
  fromText(value) {
    if (/^(?:true|t|yes|on|1)$/i.test(value)) return true;
    if (/^(?:false|f|no|off|0)$/i.test(value)) return false;
    throw new Misread(`must be true or false, not ${show(value)}`);
  },
  iniToData: (value) => iniInteger(value) !== 0,
  show: String,
  toIni: (value) => (value ? '1' : '0'),
};

interface IntegerRange {
  readonly min: number;
  readonly max?: number;
  /** Meaning of 0. */
  readonly zero?: string;
}

export function integer({ min, max = 0x7fff_ffff, zero }: IntegerRange): Kind<number> {
  const check = (value: unknown): number => {
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    throw new Misread(`must be a whole number from ${min} to ${max}, not ${show(value)}`);
  };
  return {
    name: 'integer',
    placeholder: 'N',
    fromData: check,
    fromText: (value) => check(/^-?\d{1,15}$/.test(value) ? Number(value) : value),
    iniToData: iniInteger,
    show: (value) => (value === 0 && zero !== undefined ? `0 (${zero})` : String(value)),
    toIni: String,
    zero,
  };
}

/** `zero`: meaning of 0, for which `off` can be written, too; without it 0 is refused. */
export function duration(zero: string | undefined): Kind<number> {
  const read = (value: unknown): number => {
    // A number without a unit is ambiguous: some readers expect seconds, others milliseconds.
    const milliseconds =
      typeof value === 'string' || value === 0 ? parseDuration(value === 'off' ? 0 : value) : undefined;
    if (milliseconds === undefined)
      throw new Misread(`must be a duration with its unit, such as 500ms, 45s or 11m, not ${show(value)}`);
    if (milliseconds > longestMs) throw new Misread(`must be at most ${longest}, not ${show(value)}`);
    if (milliseconds === 0 && zero === undefined) throw new Misread('must be more than 0');
    return milliseconds;
  };
  return {
    name: 'duration',
    placeholder: 'TIME',
    fromData: read,
    fromText: read,
    iniToData: secondsToData,
    iniBeyond: (value) =>
      secondsOf(value) * 1_000 > longestMs
        ? { data: longest, why: `${longest} is as long as it gets` }
        : undefined,
    show: (value) => (value === 0 ? `0 (${zero ?? 'none'})` : formatDuration(value)),
    toIni: (value) => String(value / 1_000),
    zero,
  };
}

/** pgbouncer.ini has seconds, possibly with a fraction. */
function secondsOf(value: string): number {
  const seconds = /^\+?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,2})?$/i.test(value) ? Number(value) : Number.NaN;
  if (!Number.isFinite(seconds)) throw new Misread(`must be a number of seconds, not ${show(value)}`);
  return seconds;
}

function secondsToData(value: string): string | number {
  const seconds = secondsOf(value);
  return seconds === 0 ? 0 : formatDuration(seconds * 1_000);
}

/** A part of a whole, from 0 to 1. */
export const fraction: Kind<number> = {
  name: 'number',
  placeholder: 'NUMBER',
  fromData(value) {
    if (typeof value === 'number' && value >= 0 && value <= 1) return value;
    throw new Misread(`must be a number from 0 to 1, not ${show(value)}`);
  },
  fromText: (value, context) =>
    fraction.fromData(/^\d(?:\.\d{1,15})?$/.test(value) ? Number(value) : value, context),
  iniToData: Number,
  show: String,
  toIni: String,
};
