/** Waits of any number of callers in little memory: counted in steps of one percent. */
import type { WaitSummary } from '../result.js';

const shortestMs = 1e-3;
const step = Math.log(1.01);

export class WaitHistogram {
  /** The first is for no wait at all. Until the first wait, it is the only class. */
  #counts = new Float64Array(1);
  #count = 0;
  #failed = 0;
  #max = 0;

  get count(): number {
    return this.#count;
  }

  get failed(): number {
    return this.#failed;
  }

  record(waitMs: number, hasFailed: boolean): void {
    const bucket = waitMs < shortestMs ? 0 : 1 + Math.floor(Math.log(waitMs / shortestMs) / step);
    if (bucket >= this.#counts.length) this.#grow(bucket);
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#count++;
    if (hasFailed) this.#failed++;
    this.#max = Math.max(this.#max, waitMs);
  }

  /** Begins anew. */
  forget(): void {
    this.#counts = new Float64Array(1);
    this.#count = 0;
    this.#failed = 0;
    this.#max = 0;
  }

  #grow(bucket: number): void {
    const counts = new Float64Array(bucket + 256);
    counts.set(this.#counts);
    this.#counts = counts;
  }

  /** Milliseconds that this part of all waits did not exceed: up to one percent too much, never too little. */
  percentile(part: number): number {
    const rank = Math.max(1, Math.ceil(part * this.#count - 1e-9));
    let seen = 0;
    for (let bucket = 0; bucket < this.#counts.length && this.#count > 0; bucket++) {
      seen += this.#counts[bucket] as number;
      if (seen < rank) continue;
      return bucket === 0 ? 0 : Math.min(this.#max, shortestMs * Math.exp(bucket * step));
    }
    return 0;
  }

  summary(): WaitSummary {
    return {
      callers: this.#count,
      failed: this.#failed,
      p50: toMicroseconds(this.percentile(0.5)),
      p90: toMicroseconds(this.percentile(0.9)),
      p99: toMicroseconds(this.percentile(0.99)),
      max: toMicroseconds(this.#max),
    };
  }
}

/** The waits since the last look, exactly: for the points of a chart. */
export class RecentWaits {
  #waits: number[] = [];
  #atOnce = 0;

  record(waitMs: number): void {
    if (waitMs > 0) this.#waits.push(waitMs);
    else this.#atOnce++;
  }

  /** Milliseconds that 99 of 100 did not exceed since the last call; 0 without callers. */
  takeP99(): number {
    const waits = this.#waits;
    const rank = Math.ceil(0.99 * (waits.length + this.#atOnce) - 1e-9) - this.#atOnce;
    this.#atOnce = 0;
    if (waits.length === 0) return 0;
    this.#waits = [];
    if (rank < 1) return 0;
    return toMicroseconds(Float64Array.from(waits).sort()[rank - 1] as number);
  }
}

/** Milliseconds with three decimals: more says nothing. */
export function toMicroseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1_000) / 1_000;
}
