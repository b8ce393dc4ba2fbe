/** What the engine tells while it works. Calls come from the middle of a decision: note what happened, do not act on it. */

import type { PoolState } from './pool-stats.js';
import type { PooledConnection } from './pooled-connection.js';
import type { DiscardReason } from './reasons.js';

export interface PoolListener<C> {
  // Checkouts are frequent: they are told only while someone wants to know.
  readonly wantsAcquires: boolean;
  readonly wantsReleases: boolean;
  acquired(connection: PooledConnection<C>, waitMs: number): void;
  released(connection: PooledConnection<C>, useMs: number): void;

  opened(connection: PooledConnection<C>, dialMs: number): void;
  dialFailed(error: Error, failuresInARow: number, dialMs: number): void;
  discarded(connection: PooledConnection<C>, reason: DiscardReason): void;
  closed(connection: PooledConnection<C>): void;
  timedOut(waitMs: number): void;
  leaked(connection: PooledConnection<C>, heldMs: number): void;
  stateChanged(state: PoolState): void;
}
