/** The rate limiters that services are given: the product's own, with a count of how often they said no. */
import type { RateLimiter } from '../../core/rate-limiter.js';
import { TokenBucket } from '../../core/token-bucket.js';
import type { Random } from '../../kernel/random.js';
import type { DynamoCoordinator } from '../leases/dynamodb/dynamo-coordinator.js';
import type { LeasingProcess } from '../leases/process-leases.js';
import type { LimiterPlan } from '../scenario/scenario.js';
import type { Timeline } from '../time/timeline.js';

/** One process's way to a limiter. */
export class CountingLimiter implements RateLimiter {
  readonly #limiter: RateLimiter;
  readonly #now: ((now: number) => number) | undefined;
  denies = 0;

  /** `now`: what the time is where the limiter is, if that is somewhere else. */
  constructor(limiter: RateLimiter, now?: (now: number) => number) {
    this.#limiter = limiter;
    this.#now = now;
  }

  get rate(): number | undefined {
    return this.#limiter.rate;
  }

  take(now: number, isUrgent?: boolean): number {
    const waitMs = this.#limiter.take(this.#now?.(now) ?? now, isUrgent);
    if (waitMs > 0) this.denies++;
    return waitMs;
  }

  refused(now: number): void {
    this.#limiter.refused?.(this.#now?.(now) ?? now);
  }

  opened(now: number): void {
    this.#limiter.opened?.(this.#now?.(now) ?? now);
  }
}

/** Makes the rate limiter of a process that starts; undefined: it has none. */
export type MakeLimiter = (process: LeasingProcess, random: Random) => CountingLimiter | undefined;

/**
 * Makes the limiter for each process that starts. A limiter of its own is as new as the process, and so is full. The one
 * for all is in one place, and goes by the clock of that place; or it is in the table that has the leases.
 */
export function limiterFactory(
  plan: LimiterPlan | undefined,
  timeline: Timeline,
  dynamo: DynamoCoordinator | undefined,
): MakeLimiter {
  if (plan === undefined) return () => undefined;
  if (plan.scope === 'dynamodb' && dynamo !== undefined)
    return (process, random) => new CountingLimiter(dynamo.limiterFor(process, plan, random));
  const bucket = (): TokenBucket => new TokenBucket({ rate: plan.perSecond, burst: plan.burst });
  if (plan.scope === 'perService') return () => new CountingLimiter(bucket());
  const shared = bucket();
  return () => new CountingLimiter(shared, () => timeline.now);
}
