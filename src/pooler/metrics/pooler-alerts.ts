/** Alerts about the pooler. */
import type { AlertRule } from '../../observe/alert-rule.js';

export const poolerAlerts: readonly AlertRule[] = [
  {
    alert: 'HeadgatePoolerWaits',
    severity: 'warning',
    for: '1m',
    expr: 'headgate_pooler_longest_wait_seconds > 5',
    summary: 'Clients of the pooler wait long for a server',
    description:
      'A client of {{ $labels.user }} in {{ $labels.database }} has waited for {{ $value | humanizeDuration }}. All connections of the pool are in use, or none can be opened.',
  },
  {
    alert: 'HeadgatePoolerWaitTimeouts',
    severity: 'critical',
    for: '5m',
    expr: 'rate(headgate_pooler_wait_timeouts_total[5m]) > 0',
    summary: 'Clients of the pooler get no server',
    description:
      '{{ $value | humanize }} clients a second of {{ $labels.user }} in {{ $labels.database }} time out waiting for a server (query_wait_timeout).',
  },
  {
    alert: 'HeadgatePoolerSaturated',
    severity: 'warning',
    for: '15m',
    expr: 'headgate_pooler_servers{state="active"} / headgate_pooler_server_limit > 0.9',
    summary: 'Pool of the pooler nearly used up',
    description:
      'The pool of {{ $labels.user }} in {{ $labels.database }} has {{ $value | humanizePercentage }} of its server connections in use.',
  },
  {
    alert: 'HeadgatePoolerOpenFailures',
    severity: 'critical',
    for: '5m',
    expr: 'rate(headgate_pooler_open_failures_total{cause="connection_open"}[5m]) > 0',
    summary: 'The pooler can not connect to a server',
    description:
      '{{ $value | humanize }} connects a second for {{ $labels.user }} in {{ $labels.database }} fail. The log has the error.',
  },
  {
    alert: 'HeadgatePoolerWaitsForPermits',
    severity: 'warning',
    for: '5m',
    expr: 'min_over_time(headgate_pooler_waiting_for_permit[5m]) > 0',
    summary: 'Clients wait until server connections may be opened',
    description:
      '{{ $value }} clients of {{ $labels.user }} in {{ $labels.database }} wait because the rate limiter has no permit.',
  },
  {
    alert: 'HeadgatePoolerTokenFailures',
    severity: 'critical',
    for: '2m',
    expr: 'rate(headgate_pooler_open_failures_total{cause="token_provider"}[5m]) > 0',
    summary: 'The pooler gets no IAM token',
    description:
      'There is no token for {{ $labels.user }} in {{ $labels.database }}. Look at the IAM role, the credentials and the clock of the pooler.',
  },
  {
    alert: 'HeadgatePoolerServersLost',
    severity: 'warning',
    for: '5m',
    expr: 'rate(headgate_pooler_own_errors_total{reason="server_lost"}[5m]) > 0',
    summary: 'Servers close connections in use',
    description:
      '{{ $value | humanize }} clients a second of {{ $labels.user }} in {{ $labels.database }} lose their server in a query or a transaction.',
  },
  {
    alert: 'HeadgatePoolerManyPinned',
    severity: 'warning',
    for: '15m',
    expr: 'sum without (reason) (headgate_pooler_clients_pinned) > 0.5 * headgate_pooler_server_limit',
    summary: 'Many clients are pinned to a server',
    description:
      '{{ $value }} clients of {{ $labels.user }} in {{ $labels.database }} keep their server, more than half of what the pool may have. SHOW PINS tells who and why.',
  },
  {
    alert: 'HeadgatePoolerClientsNearLimit',
    severity: 'warning',
    for: '5m',
    expr: 'headgate_pooler_connected_clients / headgate_pooler_client_limit > 0.9',
    summary: 'The pooler has nearly as many clients as it may have',
    description: '{{ $labels.instance }} has {{ $value | humanizePercentage }} of max_client_conn.',
  },
  {
    alert: 'HeadgatePoolerClientsRefused',
    severity: 'critical',
    for: '2m',
    expr: 'rate(headgate_pooler_login_failures_total{reason="too_many_clients"}[5m]) > 0',
    summary: 'The pooler refuses clients as too many',
    description: '{{ $labels.instance }} refuses {{ $value | humanize }} clients a second.',
  },
  {
    alert: 'HeadgatePoolerWrongPasswords',
    severity: 'warning',
    for: '10m',
    expr: 'rate(headgate_pooler_login_failures_total{reason="wrong_password"}[5m]) > 1',
    summary: 'Wrong passwords at the pooler',
    description:
      '{{ $value | humanize }} logins a second at {{ $labels.instance }} have a wrong password. The log has the addresses.',
  },
  {
    alert: 'HeadgatePoolerBusy',
    severity: 'warning',
    for: '5m',
    expr: 'headgate_pooler_event_loop_delay_seconds{statistic="p99"} > 0.1',
    isOfWorker: true,
    summary: 'The pooler can not keep up',
    description:
      'Everything at {{ $labels.instance }} is late by {{ $value | humanizeDuration }}. Something takes the processor, or more workers are needed.',
  },
  {
    alert: 'HeadgatePoolerPaused',
    severity: 'warning',
    for: '10m',
    expr: 'headgate_pooler_state{state="paused"} == 1',
    summary: 'The pooler is paused',
    description: '{{ $labels.instance }} serves no client until RESUME is issued on its console.',
  },
];

/** By the names of the mixin for PgBouncer, whose users have runbooks and silences for them. */
export const mixinAlerts: readonly AlertRule[] = [
  {
    alert: 'HighNumberClientWaitingConnections',
    severity: 'warning',
    for: '15m',
    expr: 'headgate_pooler_clients{state="waiting"} > 20',
    summary: 'Many clients wait for a server connection',
    description:
      '{{ $value }} clients of {{ $labels.user }} in {{ $labels.database }} wait. Raise pool_size if the server has room, or shorten transactions.',
  },
  {
    alert: 'HighClientWaitTime',
    severity: 'critical',
    for: '15m',
    expr: 'headgate_pooler_longest_wait_seconds > 15',
    summary: 'Clients wait for a server connection for long',
    description:
      'The first client of {{ $labels.user }} in {{ $labels.database }} has waited for {{ $value | humanizeDuration }}.',
  },
  {
    alert: 'HighServerConnectionSaturationWarning',
    severity: 'warning',
    for: '15m',
    expr: '100 * headgate_pooler_budget_held / headgate_pooler_budget_capacity > 80',
    summary: 'A budget of server connections is nearly used up',
    description:
      '{{ $labels.budget }} at {{ $labels.instance }} has {{ $value | humanize }} % of its server connections open.',
  },
  {
    alert: 'HighServerConnectionSaturationCritical',
    severity: 'critical',
    for: '15m',
    expr: '100 * headgate_pooler_budget_held / headgate_pooler_budget_capacity > 90',
    summary: 'A budget of server connections is used up',
    description:
      '{{ $labels.budget }} at {{ $labels.instance }} has {{ $value | humanize }} % of its server connections open. SHOW SHARES tells who holds them.',
  },
];
