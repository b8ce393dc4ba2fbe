/** Delays as they were measured: percentiles, or lengths and how often each was seen. */
import type { Delay } from './scenario.js';
import { type Mapping, type Range, readDuration, show } from './scenario-reader-fields.js';

type Problem = (at: string, message: string) => void;

const mostLengths = 1_000;

/** `{ median, p99 }` is another form, and has a word that is no percentile. */
export function isMeasured(value: Mapping): boolean {
  return !('median' in value) && Object.keys(value).some((name) => partOf(name) !== undefined);
}

/** `min` is 0, `p99.9` is 0.999, `max` is 1. */
function partOf(name: string): number | undefined {
  if (name === 'min') return 0;
  if (name === 'max') return 1;
  // As text, because 99.9 divided by 100 is not 0.999.
  const digits = /^p(\d{1,2}(?:\.\d{1,3})?)$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(`${digits}e-2`);
}

/** `{ p50: 5ms, p90: 12ms, p99: 40ms, max: 90ms }`: none is shorter than the first, and none longer than the last. */
export function readMeasured(
  value: Mapping,
  range: Range,
  path: string,
  problem: Problem,
): Delay | undefined {
  const points = Object.entries(value).flatMap(([name, length]) => {
    const at = `${path}.${name}`;
    const part = partOf(name);
    if (part === undefined) problem(at, 'is not a percentile; write min, p50, p99, p99.9 or max');
    const ms = readDuration(length, range, (message) => problem(at, message));
    return part === undefined || ms === undefined ? [] : [{ part, ms, name }];
  });
  if (points.length < Object.keys(value).length) return undefined;
  points.sort((one, other) => one.part - other.part);
  for (const [index, { ms, name }] of points.entries()) {
    const before = points[index - 1];
    if (before === undefined || ms >= before.ms) continue;
    problem(`${path}.${name}`, `is ${ms} ms, less than ${before.name}, which is ${before.ms} ms`);
    return undefined;
  }
  const plain = points.map(({ part, ms }) => ({ part, ms }));
  const last = plain.at(-1);
  if (last !== undefined && last.part < 1) plain.push({ part: 1, ms: last.ms });
  return { kind: 'percentiles', points: plain };
}

/** `[[5ms, 90], [40ms, 10]]`: lengths, each with how often it was seen. */
export function readCounted(
  value: readonly unknown[],
  range: Range,
  path: string,
  problem: Problem,
): Delay | undefined {
  if (value.length === 0 || value.length > mostLengths) {
    problem(path, `must have 1 to ${mostLengths} lengths, not ${value.length}`);
    return undefined;
  }
  const lengths = value.flatMap((item, index) => {
    const at = `${path}[${index}]`;
    if (!Array.isArray(item) || item.length !== 2) {
      problem(at, `must be a length and how often it was seen, such as [5ms, 90], not ${show(item)}`);
      return [];
    }
    const [length, weight] = item as [unknown, unknown];
    const ms = readDuration(length, range, (message) => problem(at, message));
    const isWeight = typeof weight === 'number' && weight > 0 && Number.isFinite(weight);
    if (!isWeight) problem(at, `must have a weight above 0, not ${show(weight)}`);
    return ms === undefined || !isWeight ? [] : [{ ms, weight }];
  });
  return lengths.length < value.length ? undefined : { kind: 'counted', lengths };
}
