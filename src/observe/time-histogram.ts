/** Counts times by their length. Recording one is a table lookup and an addition: it happens at every query. */

/** Upper bounds of the buckets in milliseconds; they tell a ready connection from a dial from an outage. */
export const timeBounds: readonly number[] = [
  0.1, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
];

const longest = timeBounds.at(-1) as number;

/** The first bound that may apply, by the number of bits of a time in microseconds. */
const firstBounds = Uint8Array.from({ length: 33 }, (_, bits) => {
  const least = bits === 0 ? 0 : 2 ** (bits - 1) / 1_000;
  const bound = timeBounds.findIndex((end) => least <= end);
  return bound === -1 ? timeBounds.length : bound;
});

export class TimeHistogram {
  /** One count for each bound, and one for longer times. */
  readonly #counts = new Float64Array(timeBounds.length + 1);
  #sumMs = 0;
  #count = 0;

  record(milliseconds: number): void {
    // A time that is too long would not fit into the bits that are counted.
    const bits = milliseconds <= longest ? 32 - Math.clz32(milliseconds * 1_000) : 32;
    let bucket = firstBounds[bits] as number;
    while (bucket < timeBounds.length && milliseconds > (timeBounds[bucket] as number)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sumMs += milliseconds;
    this.#count++;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  get count(): number {
    return this.#count;
  }

  /** Times between the bound before this one and this one; at the number of bounds, longer ones. */
  countAt(bucket: number): number {
    return this.#counts[bucket] as number;
  }

  /** For each bound, the number of times that were no longer. */
  cumulative(): number[] {
    let total = 0;
    return timeBounds.map((_, bucket) => {
      total += this.#counts[bucket] as number;
      return total;
    });
  }
}
