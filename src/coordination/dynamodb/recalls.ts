/**
 * The part of each pool of this instance in its slots, and the leases that are asked back for that.
 *
 * While there are enough slots for all pools, they are taken first come, first served. Otherwise pools have shares as
 * instances do: callers of all pools come before ready connections of any.
 */
import type { LeaseHolder } from '../../core/leases.js';
import type { LeaseBook } from '../lease-book.js';
import { tell } from '../tell.js';
import type { WaitingHolders } from '../waiting-holders.js';
import { fairLevels, type Needs, shareOf } from './fair-level.js';

/** The pools of an instance. */
export interface Holders {
  /** Holders that hold, wait or ask. */
  all(): readonly LeaseHolder[];
  needsOf(holder: LeaseHolder): Needs;
}

export class Recalls {
  readonly #book: LeaseBook;
  readonly #waiting: WaitingHolders;
  readonly #holders: Holders;
  /** The last recall of each holder, less what it has released since. */
  readonly #told = new Map<LeaseHolder, number>();

  constructor(book: LeaseBook, waiting: WaitingHolders, holders: Holders) {
    this.#book = book;
    this.#waiting = waiting;
    this.#holders = holders;
  }

  /**
   * Limits the leases to `capacity` from now on. `isFinal`: the table has no more, so that pools below their need can
   * only get leases from others. Never call it from inside a call of a holder.
   */
  limit(capacity: number, isFinal: boolean): void {
    const surplus = Math.max(0, this.#book.held - capacity);
    if (surplus === 0 && this.#told.size === 0 && this.#waiting.size === 0) return;
    const shares = this.#sharesOf(capacity);
    let lacking = 0;
    if (isFinal) for (const holder of this.#waiting) lacking += Math.max(0, this.#below(holder, shares));
    const count = Math.max(surplus, this.#book.held + lacking - capacity);
    const recalled = this.#split(count, shares);
    for (const holder of [...this.#told.keys()]) if (!recalled.has(holder)) this.#tell(holder, 0);
    for (const [holder, share] of recalled) if (this.#told.get(holder) !== share) this.#tell(holder, share);
  }

  released(count: number, holder: LeaseHolder): void {
    const told = this.#told.get(holder);
    if (told === undefined) return;
    if (told > count) this.#told.set(holder, told - count);
    else this.#told.delete(holder);
  }

  /** True if granting this holder `count` more leaves enough to other waiters below their share. */
  mayHave(holder: LeaseHolder, count: number, capacity: number): boolean {
    if (this.#waiting.size === 0 || (this.#waiting.size === 1 && this.#waiting.wishOf(holder) > 0))
      return true;
    const shares = this.#sharesOf(capacity);
    if (this.#below(holder, shares) >= count) return true;
    let lacking = 0;
    for (const other of this.#waiting)
      if (other !== holder) lacking += Math.max(0, this.#below(other, shares));
    return this.#book.held + count + lacking <= capacity;
  }

  #below(holder: LeaseHolder, shares: ReadonlyMap<LeaseHolder, number>): number {
    return (shares.get(holder) ?? 0) - this.#book.heldBy(holder);
  }

  #sharesOf(capacity: number): Map<LeaseHolder, number> {
    const holders = this.#holders.all();
    const claims = holders.map((holder, rank) => ({ ...this.#holders.needsOf(holder), rank }));
    const levels = fairLevels(claims, capacity);
    return new Map(claims.map((claim) => [holders[claim.rank] as LeaseHolder, shareOf(claim, levels)]));
  }

  #tell(holder: LeaseHolder, count: number): void {
    if (count === 0) this.#told.delete(holder);
    else this.#told.set(holder, count);
    tell(() => holder.leasesRecalled?.(count));
  }

  /** The holder with the most above its share releases first. */
  #split(count: number, shares: ReadonlyMap<LeaseHolder, number>): Map<LeaseHolder, number> {
    const above = new Map(this.#book.latestFirst().map((holder) => [holder, -this.#below(holder, shares)]));
    const recalled = new Map<LeaseHolder, number>();
    for (let n = 0; n < count; n++) {
      let most: LeaseHolder | undefined;
      for (const [holder, excess] of above) {
        if (excess > 0 && (most === undefined || excess > (above.get(most) ?? 0))) most = holder;
      }
      if (most === undefined) break;
      above.set(most, (above.get(most) ?? 0) - 1);
      recalled.set(most, (recalled.get(most) ?? 0) + 1);
    }
    return recalled;
  }
}
