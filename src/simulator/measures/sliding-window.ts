/** How many events there were within one second, for every second there is, wherever it begins. */

const windowMs = 1_000;

export class SlidingWindow {
  /** A ring of the times within the last second. */
  #times = new Float64Array(64);
  #first = 0;
  #size = 0;
  #peak = 0;

  /** The most there ever were within one second. */
  get peak(): number {
    return this.#peak;
  }

  /** The peak is that of the second that ends now, and of those to come. */
  forgetPeak(now: number): void {
    this.#peak = this.count(now);
  }

  /** Times must not go back. */
  add(at: number): void {
    this.#forgetUntil(at - windowMs);
    if (this.#size === this.#times.length) this.#grow();
    this.#times[(this.#first + this.#size) % this.#times.length] = at;
    this.#size++;
    this.#peak = Math.max(this.#peak, this.#size);
  }

  /** The count of the second that ends at `now`. */
  count(now: number): number {
    this.#forgetUntil(now - windowMs);
    return this.#size;
  }

  /** An event that is just a second old does not count: 100 in each second are 100 in every second. */
  #forgetUntil(end: number): void {
    while (this.#size > 0 && (this.#times[this.#first] as number) <= end) {
      this.#first = (this.#first + 1) % this.#times.length;
      this.#size--;
    }
  }

  #grow(): void {
    const times = new Float64Array(this.#times.length * 2);
    for (let i = 0; i < this.#size; i++)
      times[i] = this.#times[(this.#first + i) % this.#times.length] as number;
    this.#times = times;
    this.#first = 0;
  }
}
