/**
 * The queue of a budget: holders that wait for leases, in the order in which they asked.
 *
 * Free leases go to the first request that they satisfy. While requests are served, new ones queue behind the waiting
 * ones. Afterwards a lease is free only if no waiter can use it.
 */
import type { LeaseHolder } from '../core/leases.js';
import { isCount, type LeaseBook } from './lease-book.js';
import { tell } from './tell.js';

export interface Serving {
  /** Leases that can be granted now. */
  readonly free: () => number;
  /** Never served, since it must not be called from inside its own call. */
  readonly caller: LeaseHolder | undefined;
  /** Default: everybody. */
  readonly mayHave?: ((holder: LeaseHolder, count: number) => boolean) | undefined;
  /** Books the leases and hands them over. Returns how many were taken. */
  readonly grant: (count: number, holder: LeaseHolder) => number;
}

export class WaitingHolders {
  /** Number of leases that each wants. */
  readonly #requests = new Map<LeaseHolder, number>();
  #isServing = false;

  get size(): number {
    return this.#requests.size;
  }

  [Symbol.iterator](): IterableIterator<LeaseHolder> {
    return this.#requests.keys();
  }

  /** Number of leases it waits for; 0 when it does not wait. */
  wishOf(holder: LeaseHolder): number {
    return this.#requests.get(holder) ?? 0;
  }

  /** A holder that waits already keeps its place. */
  add(holder: LeaseHolder, count: number): void {
    this.#requests.set(holder, count);
  }

  remove(holder: LeaseHolder): void {
    this.#requests.delete(holder);
  }

  /** While requests are served, no holder passes the waiting ones. */
  mayTake(holder: LeaseHolder): boolean {
    const others = this.#requests.size - (this.#requests.has(holder) ? 1 : 0);
    return !this.#isServing || others === 0;
  }

  /** Grants until no lease is free that a waiter could use and may have. */
  serve(serving: Serving): void {
    if (this.#isServing) return;
    this.#isServing = true;
    // A holder that takes nothing and asks again would be served for ever.
    const declined = new Set<LeaseHolder>();
    for (let next = this.#next(serving, declined); next !== undefined; next = this.#next(serving, declined)) {
      const count = this.wishOf(next);
      this.remove(next);
      if (serving.grant(count, next) === 0) declined.add(next);
    }
    this.#isServing = false;
  }

  #next({ free, caller, mayHave }: Serving, declined: ReadonlySet<LeaseHolder>): LeaseHolder | undefined {
    const most = free();
    if (most <= 0) return undefined;
    for (const [holder, count] of this.#requests) {
      if (count > most || holder === caller || declined.has(holder)) continue;
      if (mayHave?.(holder, count) !== false) return holder;
    }
    return undefined;
  }
}

/** Books `count` leases and hands them to the holder, which does not keep what it does not take. Returns how many it took. */
export function grantTo(holder: LeaseHolder, count: number, book: LeaseBook): number {
  book.grant(count, holder);
  let taken = 0;
  tell(() => {
    taken = holder.leasesGranted(count);
  });
  const kept = isCount(taken) ? Math.min(taken, count) : 0;
  book.take(count - kept, holder);
  return kept;
}
