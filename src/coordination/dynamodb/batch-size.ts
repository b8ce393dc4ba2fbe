/**
 * The number of permits to take at once. An instance that has the rate for itself takes many. Where several instances
 * queue, each adds one at a time while the queue is short and halves when it is long, which makes their parts equal in
 * the end. The queue is kept long enough that an instance farther from the table gets no smaller part, and no longer.
 */

/** Longer than an answer of the table usually takes. */
const lineMs = 50;
/** How long other instances that took permits are assumed to be present. */
const rememberedMs = 2_000;
/** A gap of less than a permit between one's own and the next is a rounding error of times, not another instance's. */
const leastStep = 0.5;

/** Permits that came. */
export interface Taken {
  /** Length of the queue: milliseconds until the permits may be used. Below 0: no queue. */
  readonly inMs: number;
  /** End of the queue before these permits, its end with them, and the step from one permit to the next. */
  readonly afterUs: number;
  readonly untilUs: number;
  readonly stepUs: number;
  /** Duration of a call. */
  readonly callMs: number;
  readonly now: number;
}

export class BatchSize {
  readonly #most: number;
  #size = 1;
  #ownUntilUs = Number.NEGATIVE_INFINITY;
  #sharedAt = Number.NEGATIVE_INFINITY;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  taken({ inMs, afterUs, untilUs, stepUs, callMs, now }: Taken): void {
    if (inMs > 0 && afterUs - this.#ownUntilUs > leastStep * stepUs) this.#sharedAt = now;
    this.#ownUntilUs = untilUs;
    const isAlone = inMs <= 0 || now - this.#sharedAt > rememberedMs;
    if (isAlone) this.#size = Math.min(this.#most, this.#size * 2);
    else if (inMs > lineMs) this.halve();
    else this.#size = this.#size + 1;
    if (!isAlone) this.#size = Math.min(this.#size, this.#most, mostOfMany(callMs, stepUs));
  }

  halve(): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
  }

  startAnew(): void {
    this.#size = 1;
  }
}

/**
 * No instance should wait for more than twice its share, so the limit is two, and one where each permit takes long to
 * come. But an instance that gets less than half of what comes during a call might get less than its share.
 */
function mostOfMany(callMs: number, stepUs: number): number {
  const stepMs = stepUs / 1_000;
  return Math.max(stepMs > lineMs / 2 ? 1 : 2, Math.ceil(callMs / stepMs / 2));
}
