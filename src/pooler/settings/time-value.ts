/** Times as PostgreSQL reads and shows them in settings whose unit is the millisecond. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { invalid } from './setting-problem.js';

const units: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const largest = 0x7fff_ffff;
const ofUnits = 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".';

/** Limit of a time's length. A client may send anything, and the pattern is tried on short texts only. */
const longestTime = 64;
const timePattern = /^([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?)\s*(\S.*)?$/i;

/** Milliseconds, rounded as in PostgreSQL, or the error if the text is not a time. */
export function readMilliseconds(name: string, value: string): number | ErrorFields {
  const text = value.trim();
  const [, digits, unit = ''] = (text.length <= longestTime ? timePattern.exec(text) : null) ?? [];
  const factor = unit === '' ? 1 : units[unit];
  const asItIs = `invalid value for parameter "${name}": "${value.slice(0, 100)}"`;
  if (digits === undefined) return invalid(asItIs);
  if (factor === undefined) return invalid(asItIs, ofUnits);
  const milliseconds = roundToEven(Number(digits) * factor);
  if (Math.abs(milliseconds) > largest) return invalid(asItIs, 'Value exceeds integer range.');
  if (milliseconds >= 0) return milliseconds;
  return invalid(
    `${milliseconds} ms is outside the valid range for parameter "${name}" (0 ms .. ${largest} ms)`,
  );
}

/** Written in the largest unit that leaves no remainder. */
export function showMilliseconds(milliseconds: number): string {
  if (milliseconds === 0) return '0';
  for (const unit of ['d', 'h', 'min', 's']) {
    const factor = units[unit] as number;
    if (milliseconds % factor === 0) return `${milliseconds / factor}${unit}`;
  }
  return `${milliseconds}ms`;
}

/** The milliseconds of a value as `showMilliseconds()` has written it. */
export function millisecondsOf(shown: string | undefined): number {
  const [, digits = '0', unit = ''] = /^(\d+)([a-z]*)$/.exec(shown ?? '') ?? [];
  return Number(digits) * (units[unit] ?? 1);
}

function roundToEven(value: number): number {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}
