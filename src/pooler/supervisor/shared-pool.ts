/**
 * The pool of a user in a database over all workers: its size, which is a budget that the workers share, and the number of
 * connections that each worker keeps open.
 */
import type { FairBudget } from '../../coordination/fair/fair-budget.js';

/** A worker's part of the pool. */
export interface PoolPart {
  /** How many more connections can be held here without taking any from others. */
  readonly spare: number;
  /** Sets the number of connections that this worker keeps open. */
  toKeep(count: number): void;
}

/** Interval of retrying while the budgets have too little for the connections to keep. */
const keepingIntervalMs = 1_000;

export class SharedPool {
  /** The size of the pool, as a budget. */
  readonly size: FairBudget;
  /** Each worker's size of the pool. A worker that uses the reserve has a larger size than another. */
  readonly #limits = new Map<PoolPart, number>();
  /** By worker that uses the pool: the size to keep open, and the worker's part of it. */
  readonly #keepers = new Map<PoolPart, { size: number; part: number }>();
  #keepingTimer: NodeJS.Timeout | undefined;

  constructor(size: FairBudget) {
    this.size = size;
  }

  /** The most connections ever held. */
  get peak(): number {
    return this.size.mostHeld;
  }

  /** No worker has a part of the pool, and nothing is held. */
  get isOver(): boolean {
    return this.#limits.size === 0 && this.size.members.size === 0;
  }

  /** A worker has made such a pool. */
  join(part: PoolPart): void {
    this.#limits.set(part, 0);
  }

  setLimit(part: PoolPart, limit: number): void {
    if (!this.#limits.has(part) || this.#limits.get(part) === limit) return;
    this.#limits.set(part, limit);
    this.#limitChanged();
  }

  /** The worker asks for nothing any more. Its connections are given back one by one. */
  left(part: PoolPart): void {
    this.#limits.delete(part);
    if (this.#keepers.delete(part)) this.#shareOutKeeping();
    this.#limitChanged();
  }

  #limitChanged(): void {
    this.size.resize(Math.max(0, ...this.#limits.values()));
  }

  /** A worker takes part in keeping the pool at this size; 0: no longer. */
  keep(part: PoolPart, size: number): void {
    if (size === 0) {
      if (this.#keepers.delete(part)) part.toKeep(0);
    } else this.#keepers.set(part, { size, part: this.#keepers.get(part)?.part ?? 0 });
    this.#shareOutKeeping();
  }

  /** The demand of others has changed. */
  shareOutAgain(): void {
    if (this.#keepers.size > 0) this.#shareOutKeeping();
  }

  /** Shares out the connections to keep as evenly as possible. They add up to the size, as far as that takes nothing from others. */
  #shareOutKeeping(): void {
    const keepers = [...this.#keepers];
    const size = Math.max(0, ...keepers.map(([, keeper]) => keeper.size));
    let left = Math.min(size, this.#reach(keepers.map(([part]) => part)));
    clearTimeout(this.#keepingTimer);
    if (left < size)
      this.#keepingTimer = setTimeout(() => this.#shareOutKeeping(), keepingIntervalMs).unref();
    for (const [index, [part, keeper]] of keepers.entries()) {
      const count = Math.ceil(left / (keepers.length - index));
      left -= count;
      if (count === keeper.part) continue;
      keeper.part = count;
      part.toKeep(count);
    }
  }

  /** Connections held by all, plus the free ones as the most limited part sees them. */
  #reach(parts: readonly PoolPart[]): number {
    let free = Number.POSITIVE_INFINITY;
    for (const { spare } of parts) free = Math.min(free, spare);
    return this.size.held + free;
  }

  /** The pool has no workers any more. */
  close(): void {
    clearTimeout(this.#keepingTimer);
  }
}
