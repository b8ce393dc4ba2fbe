/** What has happened in a pool since it was made. Numbers only go up. */
import type { PoolTotals } from './pool-stats.js';
import { type DiscardReason, discardReasons } from './reasons.js';

export class Tally {
  acquired = 0;
  waited = 0;
  waitedMs = 0;
  timedOut = 0;
  aborted = 0;
  opened = 0;
  closed = 0;
  dialsFailed = 0;
  leaks = 0;
  readonly discarded = Object.fromEntries(discardReasons.map((reason) => [reason, 0])) as Record<
    DiscardReason,
    number
  >;

  snapshot(): PoolTotals {
    const { acquired, waited, waitedMs, timedOut, aborted, opened, closed, dialsFailed, leaks } = this;
    const discarded = { ...this.discarded };
    return { acquired, waited, waitedMs, timedOut, aborted, opened, closed, dialsFailed, leaks, discarded };
  }
}
