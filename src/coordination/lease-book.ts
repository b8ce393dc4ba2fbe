/** The leases of each holder, as far as this process knows. Every lease in here was granted, and leaves once. */
import type { LeaseHolder } from '../core/leases.js';

/** One of those who share a budget. */
export interface HolderStats {
  /** The pool's name. Two pools may have the same. */
  readonly name: string;
  readonly held: number;
  /** Leases that it waits for. */
  readonly wanted: number;
}

/** Those that wait for leases. */
interface Waiting extends Iterable<LeaseHolder> {
  wishOf(holder: LeaseHolder): number;
}

export class LeaseBook {
  /** In the order of the last grant. Holders of nothing are not in here. */
  readonly #heldBy = new Map<LeaseHolder, number>();
  #held = 0;
  #strays = 0;

  /** By all of them together. */
  get held(): number {
    return this.#held;
  }

  /** Leases given back by those who did not hold them. */
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

  /** How many of them it did hold: the rest is no lease. */
  giveBack(count: number, holder: LeaseHolder): number {
    const claimed = isCount(count) ? count : 0;
    const given = this.take(claimed, holder);
    this.#strays += claimed - given;
    return given;
  }

  /** Takes up to `count` away; how many that are. */
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

  /** Holders of leases first, then those that only wait. */
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
