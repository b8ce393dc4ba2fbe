/** Counts times by how long they were. Recording one is a search in a short list: it happens at every checkout. */

/** Milliseconds, the upper ends of what is counted together; they tell a ready connection from a dial from an outage. */
export const timeBounds: readonly number[] = [
  0.1, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
];

export class TimeHistogram {
  /** One for each bound, and one for what is longer than the last. */
  readonly #counts = new Array<number>(timeBounds.length + 1).fill(0);
  #sumMs = 0;
  #count = 0;

  record(milliseconds: number): void {
    let bucket = 0;
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

  /** For each bound, how many were no longer than that. */
  cumulative(): number[] {
    let total = 0;
    return timeBounds.map((_, bucket) => {
      total += this.#counts[bucket] as number;
      return total;
    });
  }
}
