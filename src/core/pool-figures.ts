/** The numbers of a pool, gathered from its parts. */
import type { Clock } from '../kernel/clock.js';
import type { Checkouts } from './checkouts.js';
import type { Dialing } from './dialing.js';
import type { FirstFill } from './first-fill.js';
import type { LeaseAccount } from './lease-account.js';
import type { Ledger } from './ledger.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolCounts } from './pool-counts.js';
import type { PoolPolicy } from './pool-policy.js';
import type { PoolStats, PoolTotals } from './pool-stats.js';
import type { Readiness } from './readiness.js';
import type { Refiller } from './refiller.js';
import type { ServiceState } from './service-state.js';
import type { Tally } from './tally.js';
import { type WaitCause, waitCause, waitCauseTexts } from './wait-cause.js';
import type { CallerQueue } from './waiters.js';

export interface PoolFiguresParts<C> {
  readonly name: string;
  readonly policy: PoolPolicy;
  readonly clock: Clock;
  readonly service: ServiceState<C>;
  readonly ledger: Ledger;
  readonly leases: LeaseAccount;
  readonly waiters: CallerQueue<C>;
  readonly checkouts: Checkouts<C>;
  readonly connections: LiveConnections<C>;
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
    const { ledger, connections, checkouts, waiters } = this.#parts;
    const { limit, pending, live, closing } = ledger;
    const { idle, checking } = connections;
    const { inUse } = checkouts;
    return { limit, pending, live, closing, idle: idle.size, inUse, checking, waiting: waiters.size };
  }

  /** The cause for which waiters wait. Call it only while a caller waits. */
  waitCause(): WaitCause {
    const { clock, service, dialing } = this.#parts;
    const now = clock.now();
    return waitCause({
      state: service.current,
      counts: this.counts(),
      isBreakerOpen: dialing.breakerState(now) === 'open',
      isBackingOff: dialing.isBackingOff(now),
      isShortOfLeases: dialing.isShortOfLeases,
      isShortOfPermits: dialing.permitWaits.since !== undefined,
    });
  }

  /** The wait cause as a sentence, for an error. */
  whyWaiting(): string {
    return `Pool ${this.#parts.name} ${waitCauseTexts[this.waitCause()]}.`;
  }

  /** Waiters without a dial because the rate limiter has no permit. */
  get waitingForPermit(): number {
    const { ledger, waiters, dialing } = this.#parts;
    return dialing.permitWaits.since === undefined ? 0 : Math.max(0, waiters.size - ledger.pending);
  }

  stats(): PoolStats {
    const { policy, clock, service, ledger, leases, waiters, dialing, refiller, firstFill } = this.#parts;
    const { reservoir, warmup, keeper, minIdle, maxLifetime, guardWindow } = policy;
    const now = clock.now();
    const counts = this.counts();
    return {
      ...counts,
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
      breaker: dialing.breakerState(now),
      waitCause: counts.waiting > 0 ? this.waitCause() : undefined,
      waitingForPermit: this.waitingForPermit,
      longestWaitMs: waiters.first === undefined ? 0 : Math.max(0, now - waiters.first.enqueuedAt),
      peak: ledger.peak,
      totals: this.totals(),
    };
  }

  totals(): PoolTotals {
    const { clock, dialing, tally } = this.#parts;
    const { permitWaits } = dialing;
    return tally.snapshot(permitWaits.count, permitWaits.waitedMs(clock.now()));
  }

  /** Connections wanted ready on top of the demand, as far as the limit allows: reservoir, `minIdle`, warmup, keeper. */
  get readyDemand(): number {
    const { service, ledger, checkouts, connections, refiller, readiness } = this.#parts;
    if (service.isEnding) return 0;
    const { demand } = checkouts;
    const { size, spares } = connections.idle;
    const wanted = Math.max(refiller.wantedSize(demand, size - spares), readiness.target);
    return Math.max(0, Math.min(wanted, ledger.limit) - demand);
  }
}
