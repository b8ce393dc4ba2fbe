/** Headgate's own metrics, a series for each pool. */
import type { BreakerState } from '../core/breaker.js';
import type { PoolState } from '../core/pool-stats.js';
import { FamilyMaker, type MetricFamily } from './metric-family.js';

const make = new FamilyMaker('headgate_pool_', 'pool');
const seconds = 1_000;

const breakerStates: readonly BreakerState[] = ['closed', 'open', 'half-open'];
const poolStates: readonly PoolState[] = ['open', 'paused', 'draining', 'closed'];

export const poolMetrics: readonly MetricFamily[] = [
  make.gauges(
    'connections',
    'state',
    'Connections by what they are doing; together never more than the limit.',
    ({ pending, idle, lent, checking, closing }) => ({ opening: pending, idle, lent, checking, closing }),
  ),
  make.gauge('limit', 'What the connections together never exceed.', ({ limit }) => limit),
  make.gauge('peak', 'The most connections there ever were.', ({ peak }) => peak),
  make.gauge(
    'min_idle',
    'Connections to keep ready, as far as the limit leaves room.',
    ({ minIdle }) => minIdle,
  ),
  make.gauge(
    'low_watermark',
    'Connections without which a reservoir is of no use.',
    ({ reservoir }) => reservoir?.lowWatermark,
  ),
  make.gauge(
    'filled',
    '1 once the first fill of the reservoir is over, and 0 until then.',
    ({ reservoir }) => reservoir && Number(reservoir.isFilled),
    'min',
  ),
  make.gauge('leases_held', 'Leases held of the budget above the pool.', ({ leased }) => leased),
  make.gauge('waiting', 'Callers in the queue.', ({ waiting }) => waiting),
  make.gauge(
    'waiting_for_permit',
    'Callers for whom no connection is being opened, because the rate limiter has no permit.',
    ({ waitingForPermit }) => waitingForPermit,
  ),
  make.gauges('state', 'state', '1 for the state that the pool is in, and 0 for the others.', ({ state }) =>
    oneOf(poolStates, state),
  ),
  make.gauges(
    'breaker',
    'state',
    '1 for the state that the breaker is in, and 0 for the others.',
    ({ breaker }) => oneOf(breakerStates, breaker),
  ),
  make.counter('checkouts_total', 'Checkouts.', ({ totals }) => totals.acquired),
  make.counter('waits_total', 'Checkouts that had to wait.', ({ totals }) => totals.waited),
  make.counter(
    'timeouts_total',
    'Callers whose time was up before they got anything.',
    ({ totals }) => totals.timedOut,
  ),
  make.counter('aborts_total', 'Callers who stopped waiting.', ({ totals }) => totals.aborted),
  make.counter(
    'permit_waits_total',
    'Waits for a permit of the rate limiter.',
    ({ totals }) => totals.permitWaits,
  ),
  make.counter(
    'permit_wait_seconds_total',
    'How long connections that were wanted waited for a permit of the rate limiter.',
    ({ totals }) => totals.permitWaitedMs / seconds,
  ),
  make.counter('found_empty_total', 'Callers who found nothing ready.', ({ totals }) => totals.foundEmpty),
  make.counter('opened_total', 'Connections that were opened.', ({ totals }) => totals.opened),
  make.counter('closed_total', 'Connections that are gone.', ({ totals }) => totals.closed),
  make.counters(
    'discards_total',
    'reason',
    'Connections that were discarded, by the reason.',
    ({ totals }) => totals.discarded,
  ),
  make.counter('dial_failures_total', 'Dials that failed.', ({ totals }) => totals.dialsFailed),
  make.counters(
    'refill_failures_total',
    'cause',
    'Connections that were wanted and not opened, by what was in the way; failed dials are among them.',
    ({ totals }) => totals.refillFailures,
  ),
  make.counter('top_ups_total', 'Connections opened for the keeper.', ({ totals }) => totals.toppedUp),
  make.counter(
    'top_up_failures_total',
    'Dials for the keeper that failed.',
    ({ totals }) => totals.topUpsFailed,
  ),
  make.counter(
    'leaks_total',
    'Connections kept longer than the leak threshold.',
    ({ totals }) => totals.leaks,
  ),
  make.histogram(
    'wait_seconds',
    seconds,
    'From asking for a connection to having it; 0 where one was ready.',
    ({ checkout }) => checkout,
  ),
  make.histogram('use_seconds', seconds, 'From taking a connection to giving it back.', ({ use }) => use),
  make.histogram('dial_seconds', seconds, 'How long opening a connection took.', ({ dial }) => dial),
];

/** 1 for one of the words, and 0 for the others. */
function oneOf(words: readonly string[], word: string): Record<string, number> {
  return Object.fromEntries(words.map((each) => [each, Number(each === word)]));
}
