/** The lifetime of a connection: drawn once, when it opens, so that connections opened together do not end together. */
import type { Random } from '../kernel/random.js';

export interface LifetimePolicy {
  /** Milliseconds; Infinity: no end. */
  readonly maxLifetime: number;
  /** Width of the spread in milliseconds: the life is uniform in [maxLifetime - jitter/2, maxLifetime + jitter/2]. */
  readonly maxLifetimeJitter: number;
  /** Time before its end at which a connection stops counting as a spare, so that its replacement can come first. */
  readonly guardWindow: number;
}

/** A life in milliseconds. Never negative; the whole range is reached, whatever its size. */
export function drawLifetime(policy: LifetimePolicy, random: Random): number {
  const { maxLifetime, maxLifetimeJitter } = policy;
  if (!Number.isFinite(maxLifetime)) return Infinity;
  return Math.max(0, maxLifetime + (random.next() - 0.5) * maxLifetimeJitter);
}
