/** The leases of each holder, as far as this process knows. Every lease in here was granted, and leaves once. */
import type { LeaseHolder } from '../core/leases.js';

/** One holder of a shared budget. */
export interface HolderStats {
  /** The pool's name. Two pools may have the same. */
  readonly name: string;
  readonly held: number;
  /** Leases that it waits for. */
  readonly wanted: number;
}

/** The holders that wait for leases. */
interface Waiting extends Iterable<LeaseHolder> {
  wishOf(holder: LeaseHolder): number;
}

export class LeaseBook {
  /** In the order of the last grant. Only holders with leases. */
  readonly #heldBy = new Map<LeaseHolder, number>();
  #held = 0;
  #strays = 0;

  /** Sum over all holders. */
  get held(): number {
    return this.#held;
  }

  /** Leases released by pools that did not hold them. */
  get strays(): number {
    return this.#strays;
  }

  heldBy(holder: LeaseHolder): number {
    return this.#heldBy.get(holder) ?? 0;
  }

  grant(count: number, holder: LeaseHolder): void {
    const held = this.heldBy(holder) + count;
    this.#held += count;
    this.#heldBy.delete(holder);
    this.#heldBy.set(holder, held);
  }

  /** Returns how many of the leases it did hold; the rest does not count. */
  giveBack(count: number, holder: LeaseHolder): number {
    const claimed = isCount(count) ? count : 0;
    const given = this.take(claimed, holder);
    this.#strays += claimed - given;
    return given;
  }

  /** Takes up to `count` leases away. Returns how many. */
  take(count: number, holder: LeaseHolder): number {
    const had = this.heldBy(holder);
    const taken = Math.min(count, had);
    this.#held -= taken;
    if (had > taken) this.#heldBy.set(holder, had - taken);
    else this.#heldBy.delete(holder);
    return taken;
  }

  /** The holder of the last grant comes first. */
  latestFirst(): LeaseHolder[] {
    return [...this.#heldBy.keys()].reverse();
  }

  /** Holders with leases first, then those that only wait. */
  stats(waiting: Waiting): HolderStats[] {
    const holders = new Set([...this.#heldBy.keys(), ...waiting]);
    return Array.from(holders, (holder) => ({
      name: holder.name,
      held: this.heldBy(holder),
      wanted: waiting.wishOf(holder),
    }));
  }
}

export function isCount(count: number): boolean {
  return Number.isSafeInteger(count) && count > 0;
}
