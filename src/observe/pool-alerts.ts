/** Alerts about pools of programs, their reservoirs and transactions, and the limits that instances share. */
import type { AlertRule } from './alert-rule.js';

/** Of leases and rate limiters that are exposed with exposeLeases() and exposeRateLimiter(), and of the pooler's fleet. */
export const fleetAlerts: readonly AlertRule[] = [
  {
    alert: 'DSQLGlobalLimitNearCapacity',
    severity: 'warning',
    for: '5m',
    expr: 'dsql_distributed_conn_lease_active / dsql_distributed_conn_lease_limit > 0.9',
    summary: 'The limit on the connections of all instances is nearly reached',
    description:
      'All instances together hold {{ $value | humanizePercentage }} of the connections that there are, as {{ $labels.service }} sees it. headgate dynamodb status shows who holds what.',
  },
  {
    alert: 'HeadgateLeasesLost',
    severity: 'critical',
    for: '1m',
    expr: 'headgate_coordinator_state{state="lost"} == 1',
    summary: 'No valid lease, and DynamoDB does not answer',
    description:
      '{{ $labels.service }} could not renew its lease in time, and opens no connections, or only its local share. Look at DynamoDB, its table and the permissions.',
  },
  {
    alert: 'HeadgateLeaseTableFailing',
    severity: 'warning',
    for: '5m',
    expr: 'rate(headgate_coordinator_failures_total{reason="unavailable"}[5m]) > 0.1',
    summary: 'Calls of the table of leases fail',
    description:
      '{{ $value | humanize }} calls a second of {{ $labels.service }} get no answer. Its lease still holds, for a while.',
  },
  {
    alert: 'HeadgateRateTableFailing',
    severity: 'critical',
    for: '2m',
    expr: 'headgate_rate_state{state="failing"} == 1',
    summary: 'No permits to open connections, because DynamoDB does not answer',
    description:
      '{{ $labels.service }} opens no connections, or only at its local rate. Look at DynamoDB, its table and the permissions.',
  },
  {
    alert: 'HeadgateOpeningHeldBack',
    severity: 'warning',
    for: '5m',
    expr: 'headgate_rate_wait_seconds > 5 and rate(headgate_rate_permits_total[5m]) > 0',
    summary: 'Connections wait for long until they may be opened',
    description:
      'A permit for {{ $labels.service }} takes {{ $value | humanizeDuration }}: all instances together open connections as fast as they may. Look for connections that are closed and opened again.',
  },
];

export const transactionAlerts: readonly AlertRule[] = [
  {
    alert: 'DSQLHighConflictRate',
    severity: 'warning',
    for: '5m',
    expr: 'sum by (job, instance, service, operation) (rate(dsql_tx_conflict_total[5m])) > 10',
    summary: 'Many transactions conflict with each other',
    description:
      '{{ $labels.operation }} of {{ $labels.service }} meets {{ $value | humanize }} conflicts a second. Look for rows that many transactions change.',
  },
  {
    alert: 'DSQLRetryExhaustion',
    severity: 'critical',
    for: '2m',
    expr: 'sum by (job, instance, service, operation) (rate(dsql_tx_exhausted_total[5m])) > 0',
    summary: 'Transactions fail after their last retry',
    description:
      '{{ $labels.operation }} of {{ $labels.service }} is given up {{ $value | humanize }} times a second. dsql_tx_error_class_total has the reasons.',
  },
];

/** A first fill that goes on as fast as its rate allows is well; one that gets no permit at all is not. */
const unlessFilling =
  'unless on (job, instance, service) ((min_over_time(headgate_pool_filled[5m]) == 0) and on (job, instance, service) (rate(dsql_reservoir_refills_total[5m]) > 0))';

export const reservoirAlerts: readonly AlertRule[] = [
  {
    alert: 'DSQLReservoirLow',
    severity: 'warning',
    for: '5m',
    expr: 'dsql_reservoir_size < 0.5 * ((dsql_reservoir_target < (dsql_pool_max_open - dsql_pool_in_use)) or (dsql_pool_max_open - dsql_pool_in_use))',
    note: 'Against what there is room for beside the connections in use: a reservoir is not low because it is used.',
    summary: 'DSQL reservoir less than half full',
    description:
      '{{ $labels.service }} has {{ $value }} connections ready, less than half of those there is room for. See the refill failures, by reason.',
  },
  {
    alert: 'DSQLReservoirEmpty',
    severity: 'warning',
    for: '2m',
    expr: 'rate(dsql_reservoir_empty_total[5m]) > 0 unless on (job, instance, service) (min_over_time(headgate_pool_filled[5m]) == 0)',
    note: 'Not during the first fill, nor for as long as the rate looks back to it.',
    summary: 'DSQL reservoir found empty',
    description:
      '{{ $value | humanize }} callers a second of {{ $labels.service }} find nothing ready, and wait. More connections ready, or more in all, would help, unless refills fail.',
  },
  {
    alert: 'DSQLReservoirRefillFailures',
    severity: 'warning',
    for: '5m',
    expr: `rate(dsql_reservoir_refill_failures_total[5m]) > 0 ${unlessFilling}`,
    summary: 'DSQL connections that are wanted are not opened',
    description:
      '{{ $labels.service }} fails to open {{ $value | humanize }} connections a second: {{ $labels.reason }}.',
    note: 'Any cause, by the name that runbooks for Aurora DSQL have; the next four have a remedy each.',
  },
  {
    alert: 'DSQLReservoirTokenFailures',
    severity: 'critical',
    for: '2m',
    expr: 'rate(dsql_reservoir_refill_failures_total{reason="token_provider"}[5m]) > 0',
    summary: 'No token for DSQL',
    description:
      '{{ $labels.service }} gets no token to connect with. Look at its IAM role, its credentials and its clock. What is open goes on, until its end of life.',
  },
  {
    alert: 'DSQLReservoirLeaseFailures',
    severity: 'critical',
    for: '5m',
    expr: 'increase(dsql_reservoir_refill_failures_total{reason="lease_acquire"}[10m]) > 0 or headgate_lease_waiting > 0',
    summary: 'No lease for another DSQL connection',
    description:
      "{{ $labels.service }} gets no lease: the limit of the cluster is reached, or the table of leases can't be asked.",
  },
  {
    alert: 'DSQLReservoirConnectFailures',
    severity: 'warning',
    for: '5m',
    expr: 'rate(dsql_reservoir_refill_failures_total{reason="connection_open"}[5m]) > 0',
    summary: 'Connections to DSQL fail',
    description:
      '{{ $value | humanize }} connects a second of {{ $labels.service }} fail. The log has the error.',
  },
  {
    alert: 'DSQLReservoirRateLimited',
    severity: 'warning',
    for: '5m',
    expr: `rate(dsql_reservoir_refill_failures_total{reason="rate_limit"}[5m]) > 0 ${unlessFilling}`,
    note: 'A first fill that proceeds as fast as the rate allows is fine; one that gets no permit at all is not.',
    summary: 'The rate of new DSQL connections holds the reservoir back',
    description:
      '{{ $labels.service }} waits for permits of its rate limiter for more than a second each, or DSQL refuses connections as too fast. While headgate_pool_waiting_for_permit is above 0 the rate is too low; else it is too high, or not shared.',
  },
  {
    alert: 'DSQLReservoirHighDiscards',
    severity: 'warning',
    for: '5m',
    expr: 'sum by (job, instance, service) (rate(dsql_reservoir_discards_total{reason!="drained"}[5m])) > 5',
    summary: 'Many DSQL connections are discarded',
    description:
      '{{ $labels.service }} discards {{ $value | humanize }} connections a second. dsql_reservoir_discards_total has the reasons.',
  },
  {
    alert: 'DSQLReservoirCheckoutSlow',
    severity: 'warning',
    for: '5m',
    expr: 'histogram_quantile(0.99, sum by (job, instance, service, le) (rate(dsql_reservoir_checkout_latency_seconds_bucket[5m]))) > 0.01',
    summary: 'Checkouts from the DSQL reservoir are slow',
    description:
      'One checkout of {{ $labels.service }} in a hundred takes {{ $value | humanizeDuration }} or longer.',
  },
];

export const poolAlerts: readonly AlertRule[] = [
  {
    alert: 'HeadgatePoolSaturated',
    severity: 'warning',
    for: '5m',
    expr: 'dsql_pool_in_use / dsql_pool_max_open > 0.9',
    summary: 'Pool nearly used up',
    description:
      '{{ $labels.service }} uses {{ $value | humanizePercentage }} of the connections that it may have.',
  },
  {
    alert: 'HeadgatePoolWaits',
    severity: 'warning',
    for: '5m',
    expr: 'rate(dsql_pool_wait_duration_sum[5m]) / rate(dsql_pool_wait_duration_count[5m]) > 1',
    summary: 'Callers wait long for a connection',
    description:
      'Callers that have to wait for a connection of {{ $labels.service }} wait for {{ $value | humanizeDuration }} on average.',
  },
  {
    alert: 'HeadgatePoolTimeouts',
    severity: 'critical',
    for: '5m',
    expr: 'rate(headgate_pool_timeouts_total[5m]) > 0',
    summary: 'Callers get no connection',
    description:
      '{{ $value | humanize }} callers a second of {{ $labels.service }}, pool {{ $labels.pool }}, are told that their time is up.',
  },
  {
    alert: 'HeadgatePoolBreakerOpen',
    severity: 'critical',
    for: '1m',
    expr: 'headgate_pool_breaker{state="closed"} == 0',
    summary: 'Connections keep failing',
    description:
      "{{ $labels.service }}, pool {{ $labels.pool }}, can't connect, and tries again only now and then.",
  },
  {
    alert: 'HeadgatePoolWaitsForPermits',
    severity: 'warning',
    for: '5m',
    expr: 'min_over_time(headgate_pool_waiting_for_permit[5m]) > 0',
    summary: 'Callers wait until connections may be opened',
    description:
      '{{ $value }} callers of {{ $labels.service }}, pool {{ $labels.pool }}, wait because the rate limiter has no permit. Raise the rate up to what the server allows, or look for connections that are closed and opened again.',
  },
  {
    alert: 'HeadgatePoolLeaks',
    severity: 'warning',
    expr: 'increase(headgate_pool_leaks_total[15m]) > 0',
    summary: 'Connections are not given back',
    description:
      '{{ $labels.service }}, pool {{ $labels.pool }}, misses connections. The log says where they were taken.',
  },
];
