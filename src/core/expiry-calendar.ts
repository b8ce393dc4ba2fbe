/**
 * Counts how many connections end when, coarsely: enough to foresee a time by which more end than can be replaced.
 *
 * With a source that opens `rate` connections a second, of those that end by the time `t` all but `rate * (t - now)`
 * must have been replaced by now, for every `t`. The largest such number is overdue.
 */

/** Number of days a lifetime is divided into: few enough to scan, many enough to tell a crowd from a spread. */
const daysInALife = 256;

export class ExpiryCalendar {
  readonly #dayMs: number;
  readonly #endings = new Map<number, number>();
  #size = 0;
  /** The last day on which a connection ends. */
  #lastDay = -Infinity;
  /** Nothing is overdue before this time at this rate or a faster one, unless a connection is added. */
  #quietUntil = -Infinity;
  #quietAtRate = Number.NaN;
  #crowdEndsBy = -Infinity;

  constructor(lifetimeMs: number) {
    this.#dayMs = Math.max(1, lifetimeMs / daysInALife);
  }

  get size(): number {
    return this.#size;
  }

  add(endsAt: number): void {
    const day = this.#dayOf(endsAt);
    this.#endings.set(day, (this.#endings.get(day) ?? 0) + 1);
    this.#lastDay = Math.max(this.#lastDay, day);
    this.#size++;
    this.#quietUntil = -Infinity;
  }

  remove(endsAt: number): void {
    const day = this.#dayOf(endsAt);
    const left = (this.#endings.get(day) as number) - 1;
    if (left > 0) this.#endings.set(day, left);
    else this.#endings.delete(day);
    this.#size--;
  }

  /**
   * How many connections should have been replaced by now, at `perMs` replacements a millisecond. `firstEnd` is the
   * earliest end, from which the look ahead begins.
   */
  overdue(now: number, firstEnd: number, perMs: number): number {
    // A faster source than at the last calculation only makes the quiet time longer.
    if (now < this.#quietUntil && perMs >= this.#quietAtRate) return 0;
    // Even if all connections ended together with the first, there would be time.
    const earliest = firstEnd - this.#dayMs - this.#size / perMs;
    let overdue = 0;
    let quietUntil = earliest;
    if (now >= earliest) {
      quietUntil = Infinity;
      let ended = 0;
      for (let day = this.#dayOf(firstEnd); ended < this.#size && day <= this.#lastDay; day++) {
        const endings = this.#endings.get(day);
        if (endings === undefined) continue;
        ended += endings;
        // All ends of a day count as if they came at its first moment.
        const at = day * this.#dayMs;
        const late = Math.ceil(ended - (at - now) * perMs);
        overdue = Math.max(overdue, late);
        if (late > 0) this.#crowdEndsBy = at + this.#dayMs;
        quietUntil = Math.min(quietUntil, at - ended / perMs);
      }
    }
    this.#quietUntil = quietUntil;
    this.#quietAtRate = perMs;
    return overdue;
  }

  /** When something will be overdue, as of the last calculation. */
  get quietUntil(): number {
    return this.#quietUntil;
  }

  /** The last end among those for which something is overdue. Replacing a connection that ends later would not help. */
  get crowdEndsBy(): number {
    return this.#crowdEndsBy;
  }

  #dayOf(at: number): number {
    return Math.floor(at / this.#dayMs);
  }
}
