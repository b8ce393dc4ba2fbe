/**
 * Ids of client and server connections alike. As with PgBouncer, an id is unique among the connections open at the same time.
 */

/** The console shows ids as signed numbers of four bytes. */
const largestId = 0x7fff_ffff;

class ConnectionIds {
  #largest = largestId;
  #last = 0;
  #hasWrapped = false;

  /** Lowers the largest id, where an id must also say which process has given it out. */
  upTo(largest: number): void {
    this.#largest = Math.min(this.#largest, largest);
  }

  /** `isTaken` is asked only after all ids have been given out once. */
  next(isTaken: (id: number) => boolean = () => false): number {
    do {
      if (this.#last >= this.#largest) this.#hasWrapped = true;
      this.#last = this.#last >= this.#largest ? 1 : this.#last + 1;
    } while (this.#hasWrapped && isTaken(this.#last));
    return this.#last;
  }
}

/** Ids of this process. */
export const connectionIds = new ConnectionIds();
