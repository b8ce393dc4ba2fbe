/**
 * The metrics of Aurora DSQL services that had a reservoir before Headgate, under the names that their dashboards use.
 * The label is the service, whose pools are added up. Times are in seconds; where the old name says milliseconds, in
 * those too.
 */
import type { PoolStats } from '../core/pool-stats.js';
import type { DiscardReason } from '../core/reasons.js';
import { FamilyMaker, type MetricFamily } from './metric-family.js';

const make = new FamilyMaker('dsql_', 'service');
const milliseconds = 1;
const seconds = 1_000;

/** Every discard reason of a connection at or near the end of its life. */
const endsOfLife: readonly DiscardReason[] = [
  'max_lifetime',
  'insufficient_remaining_lifetime',
  'expired_on_checkout',
  'expired_on_return',
  'expired_on_scan',
  'expiring_soon_on_scan',
];

const reservoir: readonly MetricFamily[] = [
  make.gauge(
    'reservoir_size',
    'Connections that are ready.',
    ofReservoir(({ idle }) => idle),
  ),
  make.gauge(
    'reservoir_target',
    'Connections to keep ready.',
    ofReservoir(({ minIdle }) => minIdle),
  ),
  make.counter(
    'reservoir_checkouts_total',
    'Checkouts.',
    ofReservoir(({ totals }) => totals.acquired),
  ),
  make.counter(
    'reservoir_empty_total',
    'Callers who found nothing ready.',
    ofReservoir(({ totals }) => totals.foundEmpty),
  ),
  make.counters(
    'reservoir_discards_total',
    'reason',
    'Connections that were discarded, by the reason.',
    ofReservoir(({ totals }) => totals.discarded),
  ),
  make.counter(
    'reservoir_refills_total',
    'Connections that were opened.',
    ofReservoir(({ totals }) => totals.opened),
  ),
  make.counters(
    'reservoir_refill_failures_total',
    'reason',
    'Connections that were wanted and not opened, by what was in the way.',
    ofReservoir(({ totals }) => totals.refillFailures),
  ),
  make.histogram(
    'reservoir_checkout_latency_seconds',
    seconds,
    'From asking for a connection to having it; 0 where one was ready.',
    ({ checkout }, stats) => stats.reservoir && checkout,
  ),
  make.histogram(
    'reservoir_checkout_latency_milliseconds',
    milliseconds,
    'dsql_reservoir_checkout_latency_seconds in milliseconds.',
    ({ checkout }, stats) => stats.reservoir && checkout,
  ),
];

const pool: readonly MetricFamily[] = [
  make.gauge('pool_max_open', 'The limit.', ({ limit }) => limit),
  make.gauge('pool_open', 'Open connections.', ({ live }) => live),
  make.gauge(
    'pool_in_use',
    'Open connections that are not ready for a caller.',
    ({ live, idle }) => live - idle,
  ),
  make.gauge('pool_idle', 'Open connections that are ready for a caller.', ({ idle }) => idle),
  make.counter(
    'pool_wait_total',
    'Callers who had to wait, and got a connection or were timed out.',
    ({ totals }) => totals.waited + totals.timedOut,
  ),
  make.histogram('pool_wait_duration', seconds, 'How long those waited, in seconds.', ({ wait }) => wait),
  make.histogram(
    'pool_wait_duration_milliseconds',
    milliseconds,
    'dsql_pool_wait_duration in milliseconds.',
    ({ wait }) => wait,
  ),
  make.counter(
    'pool_keeper_topup_total',
    'Connections opened for the keeper.',
    ({ totals }) => totals.toppedUp,
  ),
  make.counter(
    'pool_keeper_topup_failures_total',
    'Dials for the keeper that failed.',
    ({ totals }) => totals.topUpsFailed,
  ),
  make.gauge('pool_keeper_current_size', 'Open connections.', ({ live }) => live),
  make.counter(
    'db_closed_max_lifetime_total',
    'Connections that were discarded because their life was over, or nearly.',
    ({ totals }) => endsOfLife.reduce((sum, reason) => sum + totals.discarded[reason], 0),
  ),
  make.counter(
    'db_closed_max_idle_time_total',
    'Connections that were discarded because they were idle for too long.',
    ({ totals }) => totals.discarded.idle_timeout,
  ),
  make.counter(
    'db_closed_max_idle_total',
    'Connections that were discarded because enough were ready.',
    ({ totals }) => totals.discarded.reservoir_full,
  ),
];

export const dsqlMetrics: readonly MetricFamily[] = [...reservoir, ...pool];

/** Pools without a reservoir have none of its metrics. */
function ofReservoir<T>(read: (stats: PoolStats) => T): (stats: PoolStats) => T | undefined {
  return (stats) => (stats.reservoir === undefined ? undefined : read(stats));
}
