/** Sums of digests: histograms of times and of lives, added up within a process and over processes. */
import type { LivesRecord } from '../../dashboard/observation.js';
import type { TimeHistogram } from '../../observe/time-histogram.js';

const second = 1_000;
const minute = 60 * second;

/** Upper ends of ages and remaining times, in milliseconds. */
const ageBounds: readonly number[] = [
  10 * second,
  minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  45 * minute,
  60 * minute,
];

/** Ages of connections, and times that they have left. */
export interface Lives {
  readonly ages: number[];
  readonly remaining: number[];
  /** Infinity where none has an end. */
  next: number;
}

export function noLives(): Lives {
  const none = (): number[] => new Array(ageBounds.length + 1).fill(0);
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
  while (at < ageBounds.length && ms > (ageBounds[at] as number)) at++;
  counts[at] = (counts[at] ?? 0) + 1;
}

export function addLives(all: readonly Lives[]): LivesRecord | undefined {
  const sum = noLives();
  for (const { ages, remaining, next } of all) {
    addCounts(sum.ages, ages);
    addCounts(sum.remaining, remaining);
    sum.next = Math.min(sum.next, next);
  }
  if (sum.ages.every((count) => count === 0)) return undefined;
  return {
    ageBounds,
    ages: sum.ages,
    remainingBounds: ageBounds,
    remaining: sum.remaining,
    nextExpiryMs: sum.next === Number.POSITIVE_INFINITY ? undefined : Math.round(sum.next),
  };
}

export function addCounts(to: number[], counts: readonly number[]): void {
  for (const [i, count] of counts.entries()) to[i] = (to[i] ?? 0) + count;
}

/** Each class by itself, and what is longer than the last bound at the end. */
export function addTimes(to: number[], histogram: TimeHistogram): void {
  let below = 0;
  const cumulative = histogram.cumulative();
  for (const [i, upTo] of cumulative.entries()) {
    to[i] = (to[i] ?? 0) + upTo - below;
    below = upTo;
  }
  to[cumulative.length] = (to[cumulative.length] ?? 0) + histogram.count - below;
}
