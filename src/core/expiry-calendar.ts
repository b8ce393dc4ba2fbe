/**
 * How many connections end when, coarsely: enough to see a time coming at which more end than can be replaced by then.
 *
 * With a source that opens `rate` connections a second, of those that end by the time `t` all but `rate * (t - now)` must
 * have been replaced by now, for every `t`. The largest such number is what is overdue.
 */

/** A life is divided into so many days: few enough to be looked through, many enough to tell a crowd from a spread. */
const daysInALife = 256;

export class ExpiryCalendar {
  readonly #dayMs: number;
  readonly #endings = new Map<number, number>();
  #size = 0;
  /** No ending is later. */
  #lastDay = Number.NEGATIVE_INFINITY;
  /** Nothing is overdue before this time, at this rate or a faster one, as long as nothing is added. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #quietAtRate = Number.NaN;
  #crowdEndsBy = Number.NEGATIVE_INFINITY;

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
    this.#quietUntil = Number.NEGATIVE_INFINITY;
  }

  remove(endsAt: number): void {
    const day = this.#dayOf(endsAt);
    const left = (this.#endings.get(day) as number) - 1;
    if (left > 0) this.#endings.set(day, left);
    else this.#endings.delete(day);
    this.#size--;
  }

  /**
   * How many should have been replaced by now, at `perMs` replacements a millisecond. `firstEnd` is the earliest
   * ending, from which the look ahead begins.
   */
  overdue(now: number, firstEnd: number, perMs: number): number {
    // With a faster source than was looked ahead for, all is quiet for longer still.
    if (now < this.#quietUntil && perMs >= this.#quietAtRate) return 0;
    // Even if all of them ended together with the first, there would be time.
    const earliest = firstEnd - this.#dayMs - this.#size / perMs;
    let overdue = 0;
    let quietUntil = earliest;
    if (now >= earliest) {
      quietUntil = Number.POSITIVE_INFINITY;
      let ended = 0;
      for (let day = this.#dayOf(firstEnd); ended < this.#size && day <= this.#lastDay; day++) {
        const endings = this.#endings.get(day);
        if (endings === undefined) continue;
        ended += endings;
        // All of a day's endings count as if they came with its first moment.
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

  /** When something will be overdue, as of the last look. */
  get quietUntil(): number {
    return this.#quietUntil;
  }

  /** Of those that something is overdue for, the last end. To replace one that ends later would not help. */
  get crowdEndsBy(): number {
    return this.#crowdEndsBy;
  }

  #dayOf(at: number): number {
    return Math.floor(at / this.#dayMs);
  }
}
