/** The highest of a number within a window of time that ends now, in parts that are forgotten one by one. */

export class RecentPeak {
  readonly #partMs: number;
  readonly #parts: number;
  /** The highest of each part, the present one last. */
  readonly #peaks = [0];
  #partSince = Number.NaN;

  constructor(windowMs: number, parts: number) {
    this.#partMs = windowMs / parts;
    this.#parts = parts;
  }

  /** Only what is seen counts: call it often. */
  of(count: number, now: number): number {
    if (Number.isNaN(this.#partSince)) this.#partSince = now;
    while (now - this.#partSince >= this.#partMs) {
      this.#peaks.push(0);
      if (this.#peaks.length > this.#parts) this.#peaks.shift();
      // After a long silence there is nothing to go through.
      this.#partSince = Math.max(this.#partSince + this.#partMs, now - this.#partMs * this.#parts);
    }
    const last = this.#peaks.length - 1;
    this.#peaks[last] = Math.max(this.#peaks[last] as number, count);
    return Math.max(...this.#peaks);
  }
}
