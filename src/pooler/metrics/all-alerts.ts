/** Every alert and every recorded query, in the groups of the generated rule files. */
import type { AlertGroup, RecordedQuery } from '../../observe/alert-rule.js';
import { fleetAlerts, poolAlerts, reservoirAlerts, transactionAlerts } from '../../observe/pool-alerts.js';
import { mixinAlerts, poolerAlerts } from './pooler-alerts.js';

export const alertGroups: readonly AlertGroup[] = [
  {
    name: 'fleet-limit',
    note: "Of leases and rate limiters that are exposed with exposeLeases() and exposeRateLimiter(), and of the pooler's fleet. Every instance has the same figures, and says so for itself.",
    rules: fleetAlerts,
  },
  { name: 'dsql-transactions', rules: transactionAlerts },
  { name: 'dsql-reservoir', rules: reservoirAlerts },
  { name: 'headgate-pool', rules: poolAlerts },
  { name: 'headgate-pooler', rules: poolerAlerts },
  {
    name: 'headgate-pooler-as-pgbouncer',
    note: 'By the names of the mixin for PgBouncer, whose users have runbooks and silences for them.',
    rules: mixinAlerts,
  },
];

/** Ratios of pools in programs. */
export const poolRatios: readonly RecordedQuery[] = [
  {
    record: 'service:dsql_pool_use:ratio',
    expr: 'dsql_pool_in_use / dsql_pool_max_open',
    help: 'How much of the limit is in use.',
    normal: 'Below 0.8.',
    bad: 'Above 0.9 for 5 minutes.',
    action: 'Release sooner, or raise the limit.',
  },
  {
    record: 'service:dsql_reservoir_fill:ratio',
    expr: 'dsql_reservoir_size / dsql_reservoir_target',
    help: 'How much of the target is ready.',
    normal: 'Above 0.9.',
    bad: 'Below 0.5 for 5 minutes, unless the others are in use.',
    action: 'See dsql_reservoir_refill_failures_total by reason.',
  },
  {
    record: 'service:dsql_reservoir_checkout_success:ratio5m',
    expr: 'rate(dsql_reservoir_checkouts_total[5m]) / (rate(dsql_reservoir_checkouts_total[5m]) + rate(dsql_reservoir_empty_total[5m]))',
    help: 'How many checkouts there are to each caller that found nothing ready.',
    normal: '1.',
    bad: 'Below 1 for 2 minutes.',
    action: 'Raise the target, unless refills fail.',
  },
  {
    record: 'service:dsql_distributed_conn_lease_use:ratio',
    expr: 'dsql_distributed_conn_lease_active / dsql_distributed_conn_lease_limit',
    help: 'How much of the limit of all instances is held.',
    normal: 'Below 0.8.',
    bad: 'Above 0.9 for 5 minutes.',
    action: 'headgate dynamodb status shows who holds what; raise the limit if the cluster allows it.',
  },
];

/** Ratios of the pooler. */
export const poolerRatios: readonly RecordedQuery[] = [
  {
    record: 'database_user:headgate_pooler_server_use:ratio',
    expr: 'headgate_pooler_servers{state="active"} / headgate_pooler_server_limit',
    help: 'How many of the server connections that a pool may have are in use.',
    normal: 'Below 0.8.',
    bad: 'Above 0.9 for 15 minutes.',
    action: 'Raise pool_size if the server has room, or shorten transactions.',
  },
  {
    record: 'database_user_class:headgate_pooler_class_use:ratio',
    expr: 'headgate_pooler_class_in_use / headgate_pooler_class_capacity',
    help: 'How many of the server connections of each class of work are in use.',
    normal: 'Below 0.8.',
    bad: 'Above 0.8 for minutes, for many users.',
    action: 'Raise fairShares.capacity if the server has room, or change reservedRatio.',
  },
  {
    record: 'instance:headgate_pooler_client_use:ratio',
    expr: 'headgate_pooler_connected_clients / headgate_pooler_client_limit',
    help: 'Connected clients, as a part of those that the pooler accepts.',
    normal: 'Below 0.8.',
    bad: 'Above 0.9 for 5 minutes.',
    action: 'Raise max_client_conn, or find the program that opens so many.',
  },
  {
    record: 'budget:headgate_pooler_budget_use:ratio',
    expr: 'headgate_pooler_budget_held / headgate_pooler_budget_capacity',
    help: 'How much of a budget is held.',
    normal: 'Below 0.8.',
    bad: 'Above 0.9 for 15 minutes.',
    action: 'Shorten transactions of the user that needs most, change weights, or raise the limit.',
  },
  {
    record: 'budget_user:headgate_pooler_user_demand:ratio',
    expr: 'headgate_pooler_user_demand / headgate_pooler_user_share',
    help: 'Demand of a user, as a part of its share of a budget.',
    normal: 'At most 1.',
    bad: 'Above 1 for minutes, for many users.',
    action: "Raise the budget, shorten this user's transactions, or raise its weight.",
  },
];
