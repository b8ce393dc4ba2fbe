/** Percentiles of the last seconds, of counts that only grow: what was counted now less what was counted then. */
import { type TimeHistogram, timeBounds } from '../observe/time-histogram.js';
import type { Percentiles } from './snapshot.js';

/** How long the window is that percentiles are taken over. */
const windowMs = 10_000;

/** Undefined where nothing happened in between. */
export function percentilesBetween(
  before: readonly number[] | undefined,
  now: readonly number[],
): Percentiles | undefined {
  // Sums fall when a pool is forgotten: what it had counted is not of this window.
  const counts = now.map((count, i) => Math.max(0, count - (before?.[i] ?? 0)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  return {
    count: total,
    p50: quantile(counts, total, 0.5),
    p95: quantile(counts, total, 0.95),
    p99: quantile(counts, total, 0.99),
  };
}

/** Between the ends of the class that it falls into, as if the times in there were spread evenly. */
function quantile(counts: readonly number[], total: number, part: number): number {
  const wanted = part * total;
  let below = 0;
  for (const [i, count] of counts.entries()) {
    if (below + count < wanted || count === 0) {
      below += count;
      continue;
    }
    const low = i === 0 ? 0 : (timeBounds[i - 1] as number);
    const high = timeBounds[i] ?? low;
    return low + ((high - low) * (wanted - below)) / count;
  }
  return timeBounds.at(-1) as number;
}

/** The values of the last seconds, for differences: one for each tick, the oldest no older than the window. */
export class Recent<T> {
  readonly #kept: { readonly at: number; readonly value: T }[] = [];

  /** The value at the beginning of the window, and when that was; undefined where there is none yet. */
  get first(): { readonly at: number; readonly value: T } | undefined {
    return this.#kept[0];
  }

  add(at: number, value: T): void {
    this.#kept.push({ at, value });
    // One that is just outside stays, so that the window is never shorter than it should be.
    while (this.#kept.length > 2 && (this.#kept[1]?.at ?? at) <= at - windowMs) this.#kept.shift();
  }
}

/** Counts of a histogram, class by class. */
export function timesOf(histogram: TimeHistogram): number[] {
  const times: number[] = new Array(timeBounds.length + 1).fill(0);
  addTimes(times, histogram);
  return times;
}

/** Each class by itself, and what is longer than the last bound at the end. */
export function addTimes(to: number[], histogram: TimeHistogram): void {
  if (histogram.count === 0) return;
  for (let i = 0; i <= timeBounds.length; i++) to[i] = (to[i] ?? 0) + histogram.countAt(i);
}
