/** Waiting longer after each failure, at random, so that many who failed together do not try again together. */
import type { Random } from '../kernel/random.js';

export interface BackoffPolicy {
  /** Ceiling of the first delay in milliseconds; it doubles with each further failure. */
  readonly base: number;
  /** The ceiling never grows past this. */
  readonly cap: number;
}

/** Full jitter: uniform between 0 and a ceiling that doubles from `base` to `cap`. `failures` counts from 1. */
export function backoffDelay(policy: BackoffPolicy, failures: number, random: Random): number {
  const ceiling = Math.min(policy.cap, policy.base * 2 ** Math.min(failures - 1, 52));
  return random.next() * ceiling;
}
