/** Ages of connections and the time that they have left, counted by classes. */
import type { LivesRecord } from './observation.js';

const second = 1_000;
const minute = 60 * second;

/** Upper ends of ages and remaining times, in milliseconds. */
const bounds: readonly number[] = [
  10 * second,
  minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  45 * minute,
  60 * minute,
];

export interface Lives {
  readonly ages: number[];
  readonly remaining: number[];
  /** Until the first of them ends; Infinity where none has an end. */
  next: number;
}

export function noLives(): Lives {
  const none = (): number[] => new Array(bounds.length + 1).fill(0);
  return { ages: none(), remaining: none(), next: Number.POSITIVE_INFINITY };
}

export function countLife(lives: Lives, ageMs: number, leftMs: number): void {
  addOne(lives.ages, ageMs);
  if (leftMs === Number.POSITIVE_INFINITY) return;
  addOne(lives.remaining, leftMs);
  lives.next = Math.min(lives.next, Math.max(0, leftMs));
}

function addOne(counts: number[], ms: number): void {
  let at = 0;
  while (at < bounds.length && ms > (bounds[at] as number)) at++;
  counts[at] = (counts[at] ?? 0) + 1;
}

/** Sums over several processes; undefined without connections. */
export function addLives(all: readonly Lives[]): LivesRecord | undefined {
  const sum = noLives();
  for (const { ages, remaining, next } of all) {
    for (const [i, count] of ages.entries()) sum.ages[i] = (sum.ages[i] ?? 0) + count;
    for (const [i, count] of remaining.entries()) sum.remaining[i] = (sum.remaining[i] ?? 0) + count;
    sum.next = Math.min(sum.next, next);
  }
  if (sum.ages.every((count) => count === 0)) return undefined;
  return {
    ageBounds: bounds,
    ages: sum.ages,
    remainingBounds: bounds,
    remaining: sum.remaining,
    nextExpiryMs: sum.next === Number.POSITIVE_INFINITY ? undefined : Math.round(sum.next),
  };
}
