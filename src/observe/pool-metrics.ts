/** Headgate's own metrics, a series for each pool. */
import { FamilyMaker, type MetricFamily } from './metric-family.js';
import { breakerStates, poolMetricTable, poolStates } from './pool-metric-table.js';

const make = new FamilyMaker(poolMetricTable, 'pool');
const seconds = 1_000;

export const poolMetrics: readonly MetricFamily[] = [
  make.numbers('headgate_pool_connections', ({ pending, idle, inUse, checking, closing }) => ({
    opening: pending,
    idle,
    in_use: inUse,
    checking,
    closing,
  })),
  make.number('headgate_pool_limit', ({ limit }) => limit),
  make.number('headgate_pool_peak', ({ peak }) => peak),
  make.number('headgate_pool_min_idle', ({ minIdle }) => minIdle),
  make.number('headgate_pool_low_watermark', ({ reservoir }) => reservoir?.lowWatermark),
  make.number('headgate_pool_filled', ({ reservoir }) => reservoir && Number(reservoir.isFilled)),
  make.number('headgate_pool_leases_held', ({ leased }) => leased),
  make.number('headgate_pool_waiting', ({ waiting }) => waiting),
  make.number('headgate_pool_waiting_for_permit', ({ waitingForPermit }) => waitingForPermit),
  make.numbers('headgate_pool_state', ({ state }) => oneOf(poolStates, state)),
  make.numbers('headgate_pool_breaker', ({ breaker }) => oneOf(breakerStates, breaker)),
  make.number('headgate_pool_checkouts_total', ({ totals }) => totals.acquired),
  make.number('headgate_pool_waits_total', ({ totals }) => totals.waited),
  make.number('headgate_pool_timeouts_total', ({ totals }) => totals.timedOut),
  make.number('headgate_pool_aborts_total', ({ totals }) => totals.aborted),
  make.number('headgate_pool_permit_waits_total', ({ totals }) => totals.permitWaits),
  make.number('headgate_pool_permit_wait_seconds_total', ({ totals }) => totals.permitWaitedMs / seconds),
  make.number('headgate_pool_found_empty_total', ({ totals }) => totals.foundEmpty),
  make.number('headgate_pool_opened_total', ({ totals }) => totals.opened),
  make.number('headgate_pool_closed_total', ({ totals }) => totals.closed),
  make.numbers('headgate_pool_discards_total', ({ totals }) => totals.discarded),
  make.number('headgate_pool_dial_failures_total', ({ totals }) => totals.dialsFailed),
  make.numbers('headgate_pool_refill_failures_total', ({ totals }) => totals.refillFailures),
  make.number('headgate_pool_top_ups_total', ({ totals }) => totals.toppedUp),
  make.number('headgate_pool_top_up_failures_total', ({ totals }) => totals.topUpsFailed),
  make.number('headgate_pool_leaks_total', ({ totals }) => totals.leaks),
  make.times('headgate_pool_wait_seconds', ({ checkout }) => checkout),
  make.times('headgate_pool_use_seconds', ({ use }) => use),
  make.times('headgate_pool_dial_seconds', ({ dial }) => dial),
];

/** 1 for one of the words, and 0 for the others. */
function oneOf(words: readonly string[], word: string): Record<string, number> {
  return Object.fromEntries(words.map((each) => [each, Number(each === word)]));
}
