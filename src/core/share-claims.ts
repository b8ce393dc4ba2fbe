/** The claims of the users that take part when something is shared out, as columns: one place per user, the same in each. */
import type { ShareBook } from './share-book.js';

/** The columns keep their capacity between calls. */
export class Claims {
  size = 0;
  /** The place in the book of each. */
  places = new Int32Array(0);
  weights = new Float64Array(0);
  minimums = new Float64Array(0);
  maximums = new Float64Array(0);
  /** The demand, as far as the maximum lets it through. */
  needs = new Float64Array(0);
  /** The share that each user keeps while no other needs it, even where sharing out anew would give it less. */
  keeps = new Float64Array(0);
  /** The outcome. */
  shares = new Float64Array(0);

  // Set by the filling code, anew for each kind of claim.
  /** Slots up to this one are not counted where prices are made. */
  offsets = new Float64Array(0);
  /** The most for now. */
  ceilings = new Float64Array(0);

  readonly #book: ShareBook;

  constructor(book: ShareBook) {
    this.#book = book;
  }

  /** Equal prices go by these: the order of the keys. By places in the book. */
  get ranks(): Int32Array {
    return this.#book.ranks;
  }

  /** Takes the claims of all active users. */
  take(): void {
    const { size, isActive, demands, weights, minimums, maximums } = this.#book;
    this.#makeRoom(size);
    let count = 0;
    for (let place = 0; place < size; place++) {
      if (isActive[place] === 0) continue;
      const maximum = maximums[place] as number;
      this.places[count] = place;
      this.weights[count] = weights[place] as number;
      this.minimums[count] = Math.min(minimums[place] as number, maximum);
      this.maximums[count] = maximum;
      this.needs[count] = Math.min(demands[place] as number, maximum);
      this.keeps[count] = 0;
      this.shares[count] = 0;
      count++;
    }
    this.size = count;
  }

  #makeRoom(size: number): void {
    if (this.weights.length >= size) return;
    const room = Math.max(size, 2 * this.weights.length);
    this.places = new Int32Array(room);
    this.weights = new Float64Array(room);
    this.minimums = new Float64Array(room);
    this.maximums = new Float64Array(room);
    this.needs = new Float64Array(room);
    this.keeps = new Float64Array(room);
    this.shares = new Float64Array(room);
    this.offsets = new Float64Array(room);
    this.ceilings = new Float64Array(room);
  }
}
