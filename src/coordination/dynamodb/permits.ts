/** Unused permits: each may be used from a moment on, and not for long. */

interface Batch {
  /** When the next permit may be used. */
  from: number;
  /** Between one and the next. */
  readonly stepMs: number;
  left: number;
  /** When the permits were taken; none may be used before this. */
  readonly takenAt: number;
}

export class Permits {
  readonly #goodForMs: number;
  /** In the order of the moments from which their permits may be used. */
  readonly #batches: Batch[] = [];
  expired = 0;

  constructor(goodForMs: number) {
    this.#goodForMs = goodForMs;
  }

  /** All permits left, whether or not they may be used yet. */
  get left(): number {
    return this.#batches.reduce((sum, { left }) => sum + left, 0);
  }

  /** When the last permit may be used. */
  get lastAt(): number {
    const last = this.#batches.at(-1);
    return last === undefined ? Number.NEGATIVE_INFINITY : last.from + (last.left - 1) * last.stepMs;
  }

  add(count: number, from: number, stepMs: number, takenAt: number): void {
    this.#batches.push({ left: count, from, stepMs, takenAt });
  }

  /** Takes one. 0, or in how many milliseconds the first may be used; undefined when there is none. */
  take(now: number, keep: number): number | undefined {
    this.#forgetExpired(now);
    const usable = this.#usable(now);
    if (usable > keep) {
      const batch = this.#batches[0] as Batch;
      this.#drop(batch);
      return 0;
    }
    // If one permit is kept for another pool, the one after it counts.
    const at = this.#momentOf(keep);
    return at === undefined ? undefined : Math.max(0, at - now);
  }

  clear(): void {
    this.#batches.length = 0;
  }

  /** Number of permits that may be used now. */
  #usable(now: number): number {
    let usable = 0;
    for (const { from, stepMs, left } of this.#batches) {
      if (from > now) break;
      usable += Math.min(left, 1 + Math.floor((now - from) / stepMs));
    }
    return usable;
  }

  /** The moment of the one that has `before` before it. */
  #momentOf(before: number): number | undefined {
    let skip = before;
    for (const { from, stepMs, left } of this.#batches) {
      if (skip < left) return from + skip * stepMs;
      skip -= left;
    }
    return undefined;
  }

  #forgetExpired(now: number): void {
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      if (Math.max(batch.from, batch.takenAt) + this.#goodForMs > now) return;
      this.expired++;
      this.#drop(batch);
    }
  }

  #drop(batch: Batch): void {
    batch.left--;
    batch.from += batch.stepMs;
    if (batch.left === 0) this.#batches.shift();
  }
}
