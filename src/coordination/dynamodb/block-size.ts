/**
 * How many slots to hold ahead of need. When they run out before more have come, twice as many; after a time in which
 * not half of them were used, half as many. Ahead of need means without waiting: a dial finds its slot in hand.
 */

/** So long it must have been quiet before fewer will do. */
const quietMs = 30_000;

export class BlockSize {
  readonly #most: number;
  #size: number;
  #leastSpare = Number.POSITIVE_INFINITY;
  #since = Number.NaN;

  constructor(most: number) {
    this.#most = most;
    this.#size = Math.min(4, most);
  }

  get size(): number {
    return this.#size;
  }

  /** So many were left after one was taken. */
  taken(spare: number): void {
    this.#leastSpare = Math.min(this.#leastSpare, spare);
  }

  ranOut(): void {
    this.#size = Math.min(this.#most, Math.max(1, this.#size * 2));
    this.#leastSpare = 0;
  }

  /** Call now and then. */
  tick(now: number): void {
    if (Number.isNaN(this.#since)) this.#since = now;
    if (now - this.#since < quietMs) return;
    if (this.#leastSpare >= this.#size / 2) this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#leastSpare = Number.POSITIVE_INFINITY;
    this.#since = now;
  }
}
