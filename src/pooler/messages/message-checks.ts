/** Checks from which message shapes are built. */

export type Check = (value: unknown) => boolean;

/** Checks by field. Other fields must be absent. */
export type Shape = Readonly<Record<string, Check>>;

const largest = 2 ** 32;

export const anything: Check = () => true;

export const count: Check = (value) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= largest;

export const time: Check = (value) => Number.isFinite(value) && (value as number) >= 0;

export const trueOrFalse: Check = (value) => typeof value === 'boolean';

export const mapping: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

export function text(longest: number): Check {
  return (value) => typeof value === 'string' && value.length <= longest;
}

export function isOneOf(...words: readonly string[]): Check {
  return (value) => typeof value === 'string' && words.includes(value);
}

export function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

export function listOf(check: Check, most: number): Check {
  return (value) => Array.isArray(value) && value.length <= most && value.every(check);
}

export function typed(shape: Shape): Check {
  const fields = Object.entries(shape);
  return (value) => {
    if (!mapping(value)) return false;
    const given = value as Readonly<Record<string, unknown>>;
    return (
      Object.keys(given).every((key) => Object.hasOwn(shape, key)) &&
      fields.every(([key, check]) => check(given[key]))
    );
  };
}
