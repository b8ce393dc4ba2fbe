/** Admits connections: DSQL's token bucket, their number and their life. */
import { TokenBucket } from '../../core/token-bucket.js';
import type { ErrorFields } from '../../wire/error-fields.js';

export interface AdmissionLimits {
  /** Connections a second on average. */
  readonly rate: number;
  /** Connections at once, from a full bucket. */
  readonly burst: number;
  readonly connections: number;
  /** How long a connection lives; a transaction that is open then may finish. */
  readonly lifeMs: number;
}

export const usualAdmission: AdmissionLimits = {
  rate: 100,
  burst: 1_000,
  connections: 10_000,
  lifeMs: 3_600_000,
};

const tooMany: ErrorFields = {
  severity: 'FATAL',
  code: '53300',
  message: 'Unable to accept connection, too many open connections.',
};

const tooFast: ErrorFields = {
  severity: 'FATAL',
  code: '53400',
  message: 'Unable to accept connection, rate exceeded.',
};

export class Admission {
  readonly #bucket: TokenBucket;
  readonly #limits: AdmissionLimits;
  #open = 0;
  #peak = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
    this.#bucket = new TokenBucket({ rate: limits.rate, burst: limits.burst });
  }

  get open(): number {
    return this.#open;
  }

  /** The most that were open at once. */
  get peak(): number {
    return this.#peak;
  }

  /** Counts the peak anew, from what is open now. */
  resetPeak(): void {
    this.#peak = this.#open;
  }

  /** Takes a place and a token of the bucket, or answers why not. The place is given back with `left()`. */
  enter(now: number): ErrorFields | undefined {
    if (this.#open >= this.#limits.connections) return tooMany;
    if (this.#bucket.take(now) > 0) return tooFast;
    this.#open += 1;
    this.#peak = Math.max(this.#peak, this.#open);
    return undefined;
  }

  left(): void {
    this.#open -= 1;
  }
}
