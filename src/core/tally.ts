/** Totals since a pool was made. Numbers only go up. */
import type { PoolTotals } from './pool-stats.js';
import { type DiscardReason, discardReasons, type RefillCause, refillCauses } from './reasons.js';

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
  foundEmpty = 0;
  toppedUp = 0;
  topUpsFailed = 0;
  readonly refillFailures = countsOf<RefillCause>(refillCauses);
  readonly discarded = countsOf<DiscardReason>(discardReasons);

  snapshot(permitWaits: number, permitWaitedMs: number): PoolTotals {
    // Field by field: spreading an instance is ten times slower, which thousands of pools make felt.
    return {
      acquired: this.acquired,
      waited: this.waited,
      waitedMs: this.waitedMs,
      timedOut: this.timedOut,
      aborted: this.aborted,
      opened: this.opened,
      closed: this.closed,
      dialsFailed: this.dialsFailed,
      leaks: this.leaks,
      foundEmpty: this.foundEmpty,
      toppedUp: this.toppedUp,
      topUpsFailed: this.topUpsFailed,
      permitWaits,
      permitWaitedMs,
      refillFailures: { ...this.refillFailures },
      discarded: { ...this.discarded },
    };
  }
}

function countsOf<Word extends string>(words: readonly Word[]): Record<Word, number> {
  return Object.fromEntries(words.map((word) => [word, 0])) as Record<Word, number>;
}
