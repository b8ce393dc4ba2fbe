/** A report of callers that wait for long. */
import type { PoolCounts, PoolState } from './pool-counts.js';
import type { PooledConnection } from './pooled-connection.js';
import type { WaitCause } from './wait-cause.js';

/** The reason why a pool makes a caller wait for long. */
export interface StuckReport<C> {
  /** The waiting call: callers in the queue, `ready()`, or `end()`. */
  readonly waits: 'callers' | 'ready' | 'end';
  readonly waitedMs: number;
  readonly cause: WaitCause;
  readonly state: PoolState;
  readonly counts: PoolCounts;
  /** Dials that failed in a row. */
  readonly failedDials: number;
  /** The connections in use, the longest first. */
  readonly held: readonly PooledConnection<C>[];
  readonly now: number;
  /** The error of the last wanted connection, while none can be had. */
  readonly lastError: Error | undefined;
  /** Since the last report: observations that were not reported, and callers that timed out. */
  readonly seenAgain: number;
  readonly timedOut: number;
}
