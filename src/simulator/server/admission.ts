/**
 * The server's limit on new connections: a bucket of `burst` that is filled at `perSecond`. It must not share code or
 * method with the limiter that it judges, so it counts no tokens: it keeps the time at which all that was let in would
 * have been let in at an even pace, and looks how far that is ahead of the present.
 */

/** One part in a million of a permit: what comes just in time is not late because of how numbers are rounded. */
const tolerance = 1e-6;

export class Admission {
  readonly #intervalMs: number;
  readonly #longestLeadMs: number;
  #pacedUntil = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, burst: number) {
    this.#intervalMs = 1_000 / perSecond;
    this.#longestLeadMs = (burst + tolerance) * this.#intervalMs;
  }

  /** How long until one more would be let in. */
  waitMs(now: number): number {
    const paced = Math.max(this.#pacedUntil, now) + this.#intervalMs;
    return Math.max(0, paced - now - this.#longestLeadMs);
  }

  /** Lets one more in, or not; who is not let in costs nothing. */
  admits(now: number): boolean {
    const paced = Math.max(this.#pacedUntil, now) + this.#intervalMs;
    if (paced - now > this.#longestLeadMs) return false;
    this.#pacedUntil = paced;
    return true;
  }
}
