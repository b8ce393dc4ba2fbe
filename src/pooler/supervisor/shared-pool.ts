/**
 * The pool of a user in a database over all workers: its size, which is a budget that the workers share, and how many connections each of
 * them is to keep.
 */
import type { FairBudget } from '../../coordination/fair/fair-budget.js';

/** The part of a worker. */
export interface PoolPart {
  /** How many more can be held here without taking any from others. */
  readonly spare: number;
  /** So many connections are to be kept by this worker. */
  toKeep(count: number): void;
}

/** How often it is looked whether more can be kept, while the budgets have not enough. */
const keepingIntervalMs = 1_000;

export class SharedPool {
  /** So many connections as it may have. */
  readonly size: FairBudget;
  /** What each worker takes for the size of the pool: with the reserve, one may take more than another. */
  readonly #limits = new Map<PoolPart, number>();
  /** By the worker that has it in use: the size at which it is to stay, and what that keeps of it. */
  readonly #keepers = new Map<PoolPart, { size: number; part: number }>();
  #keepingTimer: NodeJS.Timeout | undefined;

  constructor(size: FairBudget) {
    this.size = size;
    this.#keepingTimer = undefined;
  }

  /** The most that were ever held. */
  get peak(): number {
    return this.size.mostHeld;
  }

  /** Nobody has a part of it, and nothing is held. */
  get isOver(): boolean {
    return this.#limits.size === 0 && this.size.members.size === 0;
  }

  /** A worker has such a pool. */
  join(part: PoolPart): void {
    this.#limits.set(part, 0);
  }

  setLimit(part: PoolPart, limit: number): void {
    if (!this.#limits.has(part) || this.#limits.get(part) === limit) return;
    this.#limits.set(part, limit);
    this.#limitChanged();
  }

  /** The worker asks for nothing any more. What it holds is given back one by one. */
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

  /** Others want some of what there is, or do not any more. */
  shareOutAgain(): void {
    if (this.#keepers.size > 0) this.#shareOutKeeping();
  }

  /** As even as can be, and together exactly the size, as far as that takes nothing from others. */
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

  /** The connections that all hold, and those that are free, as each of them sees it. */
  #reach(parts: readonly PoolPart[]): number {
    let free = Number.POSITIVE_INFINITY;
    for (const { spare } of parts) free = Math.min(free, spare);
    return this.size.held + free;
  }

  /** No worker has it any more. */
  close(): void {
    clearTimeout(this.#keepingTimer);
  }
}
