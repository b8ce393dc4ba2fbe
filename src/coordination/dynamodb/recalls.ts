/** Leases that are asked back of the pools of this instance, and how many of them each was told to give back. */
import type { LeaseHolder } from '../../core/leases.js';
import type { LeaseBook } from '../lease-book.js';
import { tell } from '../tell.js';

export class Recalls {
  readonly #book: LeaseBook;
  /** What each was last told, less what it has given back since. */
  readonly #told = new Map<LeaseHolder, number>();

  constructor(book: LeaseBook) {
    this.#book = book;
  }

  /** So many are to be given back in all, by those who hold most. Never call it from inside a call of a holder. */
  set(count: number): void {
    if (count === 0 && this.#told.size === 0) return;
    const shares = this.#shares(count);
    for (const holder of [...this.#told.keys()]) if (!shares.has(holder)) this.#tell(holder, 0);
    for (const [holder, share] of shares) if (this.#told.get(holder) !== share) this.#tell(holder, share);
  }

  released(count: number, holder: LeaseHolder): void {
    const told = this.#told.get(holder);
    if (told === undefined) return;
    if (told > count) this.#told.set(holder, told - count);
    else this.#told.delete(holder);
  }

  #tell(holder: LeaseHolder, count: number): void {
    if (count === 0) this.#told.delete(holder);
    else this.#told.set(holder, count);
    tell(() => holder.leasesRecalled?.(count));
  }

  /** Who holds most gives back first, until all are equal. */
  #shares(count: number): Map<LeaseHolder, number> {
    const holders = this.#book.latestFirst();
    const left = new Map(holders.map((holder) => [holder, this.#book.heldBy(holder)]));
    const shares = new Map<LeaseHolder, number>();
    for (let n = 0; n < count; n++) {
      let largest: LeaseHolder | undefined;
      for (const holder of holders) {
        if (largest === undefined || (left.get(holder) ?? 0) > (left.get(largest) ?? 0)) largest = holder;
      }
      if (largest === undefined || (left.get(largest) ?? 0) === 0) break;
      left.set(largest, (left.get(largest) ?? 0) - 1);
      shares.set(largest, (shares.get(largest) ?? 0) + 1);
    }
    return shares;
  }
}
