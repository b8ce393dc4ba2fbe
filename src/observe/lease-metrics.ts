/** Leases in DynamoDB as Prometheus metrics: the leases of the fleet and of this instance, and the state of the table. */
import type { TableLeasesStats } from '../coordination/dynamodb/table-leases.js';
import { callFamilies } from './call-families.js';
import { leaseMetricTable } from './lease-metric-table.js';
import { type StatsFamily, StatsFamilyMaker } from './stats-family.js';

/** Leases that can be observed: `DynamoLeases` is one. */
export interface ObservedLeases {
  stats(): TableLeasesStats;
}

const make = new StatsFamilyMaker(leaseMetricTable);

/** The first two have the names that alerts for Aurora DSQL ask for. */
export const leaseFamilies: readonly StatsFamily<TableLeasesStats>[] = [
  make.one('dsql_distributed_conn_lease_active', (of) => of.active),
  make.one('dsql_distributed_conn_lease_limit', (of) => of.limit),
  make.one('headgate_lease_owned', (of) => of.owned),
  make.one('headgate_lease_held', (of) => of.held),
  make.one('headgate_lease_waiting', (of) => of.waiting),
  make.one('headgate_lease_instances', (of) => of.instances),
  make.one('headgate_lease_waiting_instances', (of) => of.waitingInstances),
  make.one('headgate_lease_reclaimed_total', (of) => of.reclaimed),
  make.one('headgate_lease_repaired_total', (of) => of.repaired),
  make.several('headgate_lease_denied_total', (of) => of.denied),
  make.state('headgate_coordinator_state'),
  ...callFamilies(make, 'headgate_coordinator'),
];
