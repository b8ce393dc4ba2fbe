/**
 * The metrics of Aurora DSQL services that had a reservoir before Headgate, under the names that their dashboards use.
 * The label is the service, whose pools are added up. Times are in seconds; where the old name says milliseconds, in
 * those too.
 */
import type { PoolStats } from '../core/pool-stats.js';
import { endsOfLife } from '../core/reasons.js';
import { dsqlMetricTable } from './dsql-metric-table.js';
import { FamilyMaker, type MetricFamily } from './metric-family.js';

const make = new FamilyMaker(dsqlMetricTable, 'service');

const reservoir: readonly MetricFamily[] = [
  make.number(
    'dsql_reservoir_size',
    ofReservoir(({ idle }) => idle),
  ),
  make.number(
    'dsql_reservoir_target',
    ofReservoir(({ minIdle }) => minIdle),
  ),
  make.number(
    'dsql_reservoir_checkouts_total',
    ofReservoir(({ totals }) => totals.acquired),
  ),
  make.number(
    'dsql_reservoir_empty_total',
    ofReservoir(({ totals }) => totals.foundEmpty),
  ),
  make.numbers(
    'dsql_reservoir_discards_total',
    ofReservoir(({ totals }) => totals.discarded),
  ),
  make.number(
    'dsql_reservoir_refills_total',
    ofReservoir(({ totals }) => totals.opened),
  ),
  make.numbers(
    'dsql_reservoir_refill_failures_total',
    ofReservoir(({ totals }) => totals.refillFailures),
  ),
  make.times('dsql_reservoir_checkout_latency_seconds', ({ checkout }, stats) => stats.reservoir && checkout),
  make.times(
    'dsql_reservoir_checkout_latency_milliseconds',
    ({ checkout }, stats) => stats.reservoir && checkout,
  ),
];

const pool: readonly MetricFamily[] = [
  make.number('dsql_pool_max_open', ({ limit }) => limit),
  make.number('dsql_pool_open', ({ live }) => live),
  make.number('dsql_pool_in_use', ({ live, idle }) => live - idle),
  make.number('dsql_pool_idle', ({ idle }) => idle),
  make.number('dsql_pool_wait_total', ({ totals }) => totals.waited + totals.timedOut),
  make.times('dsql_pool_wait_duration', ({ wait }) => wait),
  make.times('dsql_pool_wait_duration_milliseconds', ({ wait }) => wait),
  make.number('dsql_pool_keeper_topup_total', ({ totals }) => totals.toppedUp),
  make.number('dsql_pool_keeper_topup_failures_total', ({ totals }) => totals.topUpsFailed),
  make.number('dsql_pool_keeper_current_size', ({ live }) => live),
  make.number('dsql_db_closed_max_lifetime_total', ({ totals }) =>
    endsOfLife.reduce((sum, reason) => sum + totals.discarded[reason], 0),
  ),
  make.number('dsql_db_closed_max_idle_time_total', ({ totals }) => totals.discarded.idle_timeout),
  make.number('dsql_db_closed_max_idle_total', ({ totals }) => totals.discarded.reservoir_full),
];

export const dsqlMetrics: readonly MetricFamily[] = [...reservoir, ...pool];

/** Pools without a reservoir have none of its metrics. */
function ofReservoir<T>(read: (stats: PoolStats) => T): (stats: PoolStats) => T | undefined {
  return (stats) => (stats.reservoir === undefined ? undefined : read(stats));
}
