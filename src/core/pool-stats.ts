/** What a pool can tell about itself, in O(1). */
import type { BreakerState } from './breaker.js';
import type { DiscardReason } from './reasons.js';

/** open: in service; paused: hands out nothing; draining: finishes what it has; closed: nothing left. */
export type PoolState = 'open' | 'paused' | 'draining' | 'closed';

/** The numbers of one instant. `pending + live + closing <= limit`, and `live = idle + lent + checking`. */
export interface PoolCounts {
  readonly limit: number;
  /** Being opened. */
  readonly pending: number;
  /** Open and not being closed. */
  readonly live: number;
  /** Being closed; they count until the socket is gone. */
  readonly closing: number;
  /** Ready for the next caller. */
  readonly idle: number;
  /** With a caller. */
  readonly lent: number;
  /** Undergoing a health check. */
  readonly checking: number;
  /** Callers in the queue. */
  readonly waiting: number;
}

/** The numbers of one instant, and the totals since the pool was made. */
export interface PoolStats extends PoolCounts {
  /** Spares that the pool keeps ready. */
  readonly minIdle: number;
  readonly state: PoolState;
  readonly breaker: BreakerState;
  /** The highest `pending + live + closing` there ever was. */
  readonly peak: number;
  /** Since the pool was made. */
  readonly totals: PoolTotals;
}

/** What has happened since the pool was made. */
export interface PoolTotals {
  /** Checkouts, those that waited included. */
  readonly acquired: number;
  /** Checkouts that had to wait. */
  readonly waited: number;
  /** Milliseconds that those waited, and those that were timed out or aborted. */
  readonly waitedMs: number;
  readonly timedOut: number;
  readonly aborted: number;
  readonly opened: number;
  readonly closed: number;
  readonly dialsFailed: number;
  readonly leaks: number;
  readonly discarded: Readonly<Record<DiscardReason, number>>;
}
