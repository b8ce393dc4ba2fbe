/** The highest of a number within a window of time that ends now, in parts that are forgotten one by one. */
import { DemandTracker } from '../../core/demand-tracker.js';

export class RecentPeak {
  readonly #tracker: DemandTracker;
  readonly #partMs: number;
  #partSince = Number.NaN;

  constructor(windowMs: number, parts: number) {
    this.#partMs = windowMs / parts;
    this.#tracker = new DemandTracker({ window: windowMs, interval: this.#partMs });
  }

  /** Only observed values count: call it often. */
  of(count: number, now: number): number {
    if (Number.isNaN(this.#partSince)) this.#partSince = now;
    const { buckets } = this.#tracker;
    while (now - this.#partSince >= this.#partMs) {
      this.#tracker.endInterval(0);
      // After a long silence no part is left to go through.
      this.#partSince = Math.max(this.#partSince + this.#partMs, now - this.#partMs * buckets);
    }
    this.#tracker.note(count);
    return this.#tracker.peak;
  }
}
