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
    return {
      ...this,
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
