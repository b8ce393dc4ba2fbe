/** Events of the engine. Calls come from the middle of a decision: record what happened, do not act on it. */
import type { PoolState } from './pool-counts.js';
import type { PooledConnection } from './pooled-connection.js';
import type { DiscardReason, RefillCause } from './reasons.js';
import type { StuckReport } from './stuck-report.js';

/** Opening many connections at the start: how far it is. */
export interface FillProgress {
  readonly kind: 'reservoir' | 'warmup';
  /** `timeout`: the time for the phase is over; `given_up`: too many dials failed. Missing connections are opened all the same. */
  readonly phase: 'started' | 'complete' | 'timeout' | 'given_up';
  readonly size: number;
  readonly target: number;
  readonly failed: number;
  readonly elapsedMs: number;
}

export interface PoolListener<C> {
  // Checkouts are frequent: they are reported only to a listener that asks for them.
  readonly wantsAcquires: boolean;
  readonly wantsReleases: boolean;
  /** `caller`: had to wait; the present code may be that of another, whose release or dial serves it. */
  acquired(connection: PooledConnection<C>, waitMs: number, caller: object | undefined): void;
  released(connection: PooledConnection<C>, useMs: number): void;

  opened(connection: PooledConnection<C>, dialMs: number): void;
  dialFailed(error: Error, failuresInARow: number, dialMs: number): void;
  /** A connection that is wanted was not opened: a failed dial, or no leave to make one. */
  refillFailed(cause: RefillCause, error: Error, failuresInARow: number): void;
  discarded(connection: PooledConnection<C>, reason: DiscardReason): void;
  closed(connection: PooledConnection<C>): void;
  timedOut(waitMs: number, caller: object): void;
  /** A caller found no ready connection. */
  foundEmpty(): void;
  filling(progress: FillProgress): void;
  /** The keeper found connections missing and has some of them opened. */
  toppingUp(count: number, size: number, target: number): void;
  leaked(connection: PooledConnection<C>, heldMs: number): void;
  stateChanged(state: PoolState): void;
  /** A caller waits for long. Called only by a pool with a watch for stuck callers. */
  stuck?(report: StuckReport<C>): void;
}
