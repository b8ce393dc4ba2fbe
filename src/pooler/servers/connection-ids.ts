/**
 * Numbers of connections, of clients and to servers alike: as with PgBouncer, no two that are there at the same time have the
 * same one.
 */

/** As the console shows it: a signed number of four bytes. */
const largestId = 0x7fff_ffff;

class ConnectionIds {
  #largest = largestId;
  #last = 0;
  #hasWrapped = false;

  /** Smaller ones, where a number has to say which process has given it out. */
  upTo(largest: number): void {
    this.#largest = Math.min(this.#largest, largest);
  }

  /** `isTaken`: asked only after all have been given out once. */
  next(isTaken: (id: number) => boolean = () => false): number {
    do {
      if (this.#last >= this.#largest) this.#hasWrapped = true;
      this.#last = this.#last >= this.#largest ? 1 : this.#last + 1;
    } while (this.#hasWrapped && isTaken(this.#last));
    return this.#last;
  }
}

/** Those of this process. */
export const connectionIds = new ConnectionIds();
