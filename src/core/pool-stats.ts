/** Numbers of a pool, each read in O(1). */
import type { BreakerState } from './breaker.js';
import type { PoolCounts, PoolState } from './pool-counts.js';
import type { DiscardReason, RefillCause } from './reasons.js';
import type { WaitCause } from './wait-cause.js';

/** The numbers of one instant, and the totals since the pool was made. */
export interface PoolStats extends PoolCounts {
  /** Spares that the pool keeps ready; with a reservoir, its `targetReady`. */
  readonly minIdle: number;
  /** With a reservoir: its settings, and whether its first fill is over. */
  readonly reservoir: ReservoirStats | undefined;
  /** With a warmup or a keeper: the settings, and whether the warmup is over. */
  readonly warmup: { readonly target: number; readonly isOver: boolean } | undefined;
  readonly keeper:
    | { readonly target: number; readonly intervalMs: number; readonly perTick: number }
    | undefined;
  /** Leases held of the budget above the pool; 0 where there is none. */
  readonly leased: number;
  readonly state: PoolState;
  readonly breaker: BreakerState;
  /** The cause for which waiters wait; undefined without waiters. */
  readonly waitCause: WaitCause | undefined;
  /** Waiters without a dial because the rate limiter has no permit. */
  readonly waitingForPermit: number;
  /** The wait of the caller that has waited for longest; 0 without waiters. */
  readonly longestWaitMs: number;
  /** The highest `pending + live + closing` there ever was. */
  readonly peak: number;
  /** Counts since the pool was made. */
  readonly totals: PoolTotals;
}

/** A reservoir's settings, and whether its first fill is over. */
export interface ReservoirStats {
  readonly targetReady: number;
  readonly lowWatermark: number;
  readonly baseLifetimeMs: number;
  readonly guardWindowMs: number;
  readonly isFilled: boolean;
}

/** Totals since the pool was made. */
export interface PoolTotals {
  /** Checkouts, with and without a wait. */
  readonly acquired: number;
  /** Checkouts that had to wait. */
  readonly waited: number;
  /** Total wait in milliseconds, of checkouts and of callers that timed out or aborted. */
  readonly waitedMs: number;
  readonly timedOut: number;
  readonly aborted: number;
  readonly opened: number;
  readonly closed: number;
  readonly dialsFailed: number;
  /** Callers that found no ready connection, each counted once. */
  readonly foundEmpty: number;
  /** Connections that were wanted and not opened, by cause. Includes failed dials. */
  readonly refillFailures: Readonly<Record<RefillCause, number>>;
  /** Connections opened, and not opened, on behalf of the keeper. */
  readonly toppedUp: number;
  readonly topUpsFailed: number;
  readonly leaks: number;
  /** Waits for a permit of the rate limiter, and milliseconds of all of them together. */
  readonly permitWaits: number;
  readonly permitWaitedMs: number;
  readonly discarded: Readonly<Record<DiscardReason, number>>;
}
