/**
 * The holders who were refused, in the order in which they asked, and whose turn it is when something is free.
 *
 * What is free goes round: the first who can use it is told, and takes it or not before the next is told. While it goes
 * round, only the one whose turn it is may take, and no more than it had asked for; all others queue, and so have their
 * turn. Afterwards something is free only if nobody who waits can use it.
 */
import type { LeaseHolder } from '../core/leases.js';
import { tell } from './tell.js';

type MayHave = (holder: LeaseHolder, count: number) => boolean;

const anyMay: MayHave = () => true;

export class WaitingHolders {
  /** How many each wants. */
  readonly #wishes = new Map<LeaseHolder, number>();
  #isGoingRound = false;
  #turn: LeaseHolder | undefined;
  #allowance = 0;

  get size(): number {
    return this.#wishes.size;
  }

  [Symbol.iterator](): IterableIterator<LeaseHolder> {
    return this.#wishes.keys();
  }

  /** How many it waits for; 0 when it does not wait. */
  wishOf(holder: LeaseHolder): number {
    return this.#wishes.get(holder) ?? 0;
  }

  /** Who waits already keeps its place. */
  add(holder: LeaseHolder, count: number): void {
    this.#wishes.set(holder, count);
  }

  /** It has what it wanted, or is being answered. */
  remove(holder: LeaseHolder): void {
    this.#wishes.delete(holder);
  }

  /** Whether it is not the turn of others. */
  mayTake(holder: LeaseHolder, count: number): boolean {
    if (!this.#isGoingRound) return true;
    return holder === this.#turn && (count <= this.#allowance || this.#wishes.size === 0);
  }

  /** Call when it was given something. */
  took(holder: LeaseHolder, count: number): void {
    this.#wishes.delete(holder);
    if (holder === this.#turn) this.#allowance -= count;
  }

  /** The first who would be content with `free`; never `caller`, who must not be called from inside its own call. */
  first(free: number, caller: LeaseHolder | undefined, mayHave = anyMay): LeaseHolder | undefined {
    if (free <= 0) return undefined;
    for (const [holder, count] of this.#wishes) {
      if (count <= free && holder !== caller && mayHave(holder, count)) return holder;
    }
    return undefined;
  }

  /** Tells one after the other until nothing is free that someone could use and may have. */
  goRound(free: () => number, caller: LeaseHolder | undefined, mayHave = anyMay): void {
    if (this.#isGoingRound) return;
    this.#isGoingRound = true;
    const first = (): LeaseHolder | undefined => this.first(free(), caller, mayHave);
    for (let next = first(); next !== undefined; next = first()) this.tell(next);
    this.#isGoingRound = false;
  }

  /** It is this one's turn, which ends its wait: if it still wants something and does not get it, it waits anew. */
  tell(holder: LeaseHolder): void {
    this.#turn = holder;
    this.#allowance = this.#wishes.get(holder) ?? 0;
    this.#wishes.delete(holder);
    tell(() => holder.leasesAvailable());
    this.#turn = undefined;
  }
}
