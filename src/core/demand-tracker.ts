/**
 * The recent demand of a user: the highest demand of a sliding window, kept as one number per interval.
 *
 * The numbers are exact peaks, which each pool tracks itself (`ConnectionPool.takeDemandPeak`). Nothing is sampled, so
 * no burst is missed between two reads.
 */
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';

/** Durations are milliseconds or texts such as `'30s'`. */
export interface DemandTrackerOptions {
  /** Age up to which a peak counts. Default `30s`. */
  readonly window?: Duration | undefined;
  /** Time between calls of `endInterval`. Default `10s`. */
  readonly interval?: Duration | undefined;
}

/** More would be a history, not a window. */
const mostBuckets = 10_000;

export class DemandTracker {
  /** The peak of each interval, the present one included. */
  readonly #buckets: Float64Array;
  #present = 0;

  constructor(options: DemandTrackerOptions = {}) {
    this.#buckets = new Float64Array(intervalsIn(options));
  }

  /** Intervals that are remembered. */
  get buckets(): number {
    return this.#buckets.length;
  }

  /** The highest demand in the window. */
  get peak(): number {
    let peak = 0;
    for (const bucket of this.#buckets) if (bucket > peak) peak = bucket;
    return peak;
  }

  /** The highest demand in the present interval. */
  get present(): number {
    return this.#buckets[this.#present] as number;
  }

  /** Records a peak of the current interval without ending it. For reads between two intervals. */
  note(peak: number): void {
    if (!(peak >= 0)) throw new RangeError(`A peak of demand is a number of at least 0, not ${peak}.`);
    if (peak > (this.#buckets[this.#present] as number)) this.#buckets[this.#present] = peak;
  }

  /** Records the peak of the interval that ends now, returns the highest of the window, and begins the next interval. */
  endInterval(peak: number): number {
    this.note(peak);
    const highest = this.peak;
    this.#present = (this.#present + 1) % this.#buckets.length;
    this.#buckets[this.#present] = 0;
    return highest;
  }
}

/** Number of intervals in a window. */
export function intervalsIn(options: DemandTrackerOptions): number {
  const read = new OptionReader(options);
  const windowMs = readSpan(read, 'window', 30_000);
  const intervalMs = readSpan(read, 'interval', 10_000);
  const buckets = Math.max(1, Math.floor(windowMs / intervalMs));
  if (buckets > mostBuckets)
    read.problem('window', `is ${buckets} intervals long; at most ${mostBuckets} are remembered`);
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return buckets;
}

function readSpan(read: OptionReader, name: 'window' | 'interval', fallback: number): number {
  const milliseconds = read.duration(name, fallback, Number.NaN);
  if (milliseconds > 0) return milliseconds;
  read.problem(name, 'must be a time above 0 that ends');
  return fallback;
}
