/** The numbers that a pool tells about itself, gathered from its parts. */
import type { Clock } from '../kernel/clock.js';
import type { Checkouts } from './checkouts.js';
import type { Dialing } from './dialing.js';
import type { FirstFill } from './first-fill.js';
import type { LeaseAccount } from './lease-account.js';
import type { Ledger } from './ledger.js';
import type { Fleet } from './live-connections.js';
import type { PoolPolicy } from './pool-policy.js';
import type { PoolCounts, PoolStats } from './pool-stats.js';
import type { Readiness } from './readiness.js';
import type { Refiller } from './refiller.js';
import type { ServiceState } from './service-state.js';
import type { Tally } from './tally.js';
import type { CallerQueue } from './waiters.js';

export interface PoolFiguresParts<C> {
  readonly policy: PoolPolicy;
  readonly clock: Clock;
  readonly service: ServiceState<C>;
  readonly ledger: Ledger;
  readonly leases: LeaseAccount;
  readonly waiters: CallerQueue<C>;
  readonly checkouts: Checkouts<C>;
  readonly fleet: Fleet<C>;
  readonly dialing: Dialing<C>;
  readonly refiller: Refiller;
  readonly readiness: Readiness;
  readonly firstFill: FirstFill<C> | undefined;
  readonly tally: Tally;
}

export class PoolFigures<C> {
  readonly #parts: PoolFiguresParts<C>;

  constructor(parts: PoolFiguresParts<C>) {
    this.#parts = parts;
  }

  counts(): PoolCounts {
    const { ledger, fleet, checkouts, waiters } = this.#parts;
    const { limit, pending, live, closing } = ledger;
    const { idle, checking } = fleet;
    const { lent } = checkouts;
    return { limit, pending, live, closing, idle: idle.size, lent, checking, waiting: waiters.size };
  }

  stats(): PoolStats {
    const { policy, clock, service, ledger, leases, dialing, refiller, firstFill, tally } = this.#parts;
    const { reservoir, warmup, keeper, minIdle, maxLifetime, guardWindow } = policy;
    return {
      ...this.counts(),
      minIdle,
      reservoir: reservoir && {
        targetReady: reservoir.targetReady,
        lowWatermark: reservoir.lowWatermark,
        baseLifetimeMs: maxLifetime,
        guardWindowMs: guardWindow,
        isFilled: firstFill?.isOver ?? true,
      },
      warmup: warmup && { target: warmup.target, isOver: !refiller.isWarmingUp },
      keeper: keeper && { target: keeper.target, intervalMs: keeper.interval, perTick: keeper.perTick },
      leased: leases.held,
      state: service.current,
      breaker: dialing.breakerState(clock.now()),
      peak: ledger.peak,
      totals: tally.snapshot(),
    };
  }

  /** Connections wanted ready on top of the demand, as far as the limit leaves room: reservoir, `minIdle`, warmup, keeper. */
  get readyDemand(): number {
    const { service, ledger, checkouts, fleet, refiller, readiness } = this.#parts;
    if (service.isEnding) return 0;
    const { demand } = checkouts;
    const { size, spares } = fleet.idle;
    const wanted = Math.max(refiller.wantedSize(demand, size - spares), readiness.target);
    return Math.max(0, Math.min(wanted, ledger.limit) - demand);
  }
}
