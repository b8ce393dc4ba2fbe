/**
 * How many permits to take at once. An instance that has the rate for itself takes many. Where several are in line each
 * adds one at a time while the line is short and halves when it is long, which makes their parts equal in the end. The line is
 * kept so long that who is farther from the table than others has no smaller part, and no longer.
 */

/** Longer than an answer of the table usually takes. */
const lineMs = 50;
/** Others who took some are still there for so long. */
const rememberedMs = 2_000;
/** Less than a permit between one's own and the next is nobody's, but the rounding of times. */
const leastStep = 0.5;

/** Permits that came. */
export interface Taken {
  /** How long the line is: in so many milliseconds they may be used. Below 0: there is none. */
  readonly inMs: number;
  /** Where the line ended before them, where it ends with them, and how far it is from one to the next. */
  readonly afterUs: number;
  readonly untilUs: number;
  readonly stepUs: number;
  /** How long calls take. */
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
 * None is to wait for more than twice its share, so it is two, and one where each takes long to come. But who gets less than
 * half of what comes during a call might have less than a share.
 */
function mostOfMany(callMs: number, stepUs: number): number {
  const stepMs = stepUs / 1_000;
  return Math.max(stepMs > lineMs / 2 ? 1 : 2, Math.ceil(callMs / stepMs / 2));
}
