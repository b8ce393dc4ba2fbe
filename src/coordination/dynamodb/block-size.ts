/**
 * The number of slots to hold ahead of need. Doubles when they run out before more have come, or when more are fetched
 * again and again; halves after a time without a fetch. Ahead of need means without waiting: a dial finds its slot
 * reserved. And the more are fetched at once, the fewer transactions it takes to grow.
 */

/** More than one fetch within this time is many; none at all is few. */
const windowMs = 30_000;

export class BlockSize {
  readonly #most: number;
  #size: number;
  #fetches = 0;
  #since = Number.NaN;

  constructor(most: number) {
    this.#most = most;
    this.#size = Math.min(4, most);
  }

  get size(): number {
    return this.#size;
  }

  /** More have come. */
  fetched(): void {
    this.#fetches++;
    if (this.#fetches > 1) this.#double();
  }

  ranOut(): void {
    this.#double();
    this.#fetches = Math.max(1, this.#fetches);
  }

  /** Call now and then. */
  tick(now: number): void {
    if (Number.isNaN(this.#since)) this.#since = now;
    if (now - this.#since < windowMs) return;
    if (this.#fetches === 0) this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#fetches = 0;
    this.#since = now;
  }

  #double(): void {
    this.#size = Math.min(this.#most, this.#size * 2);
  }
}
