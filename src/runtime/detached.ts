/** Calls the budget and the rate limiter above a pool outside any caller's async context: they work for the whole pool. */
import type { LeaseAnswer, LeaseHolder, Leases } from '../core/leases.js';
import type { PoolPolicy } from '../core/pool-policy.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import { withoutContext } from './async-context.js';

export function detached(policy: PoolPolicy): PoolPolicy {
  const { leases, rateLimiter } = policy;
  if (leases === undefined && rateLimiter === undefined) return policy;
  return {
    ...policy,
    leases: leases && new DetachedLeases(leases),
    rateLimiter: rateLimiter && new DetachedLimiter(rateLimiter),
  };
}

class DetachedLeases implements Leases {
  readonly #leases: Leases;

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  isFree(count: number): boolean {
    return withoutContext(() => this.#leases.isFree?.(count) ?? true, undefined);
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    return withoutContext(() => this.#leases.acquire(count, holder), undefined);
  }

  release(count: number, holder: LeaseHolder): void {
    withoutContext(() => this.#leases.release(count, holder), undefined);
  }
}

class DetachedLimiter implements RateLimiter {
  readonly #limiter: RateLimiter;

  constructor(limiter: RateLimiter) {
    this.#limiter = limiter;
  }

  get rate(): number | undefined {
    return this.#limiter.rate;
  }

  take(now: number, isUrgent?: boolean): number {
    return withoutContext(() => this.#limiter.take(now, isUrgent), undefined);
  }

  refused(now: number): void {
    withoutContext(() => this.#limiter.refused?.(now), undefined);
  }

  opened(now: number): void {
    withoutContext(() => this.#limiter.opened?.(now), undefined);
  }
}
