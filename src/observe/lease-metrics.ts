/** Leases in DynamoDB as Prometheus metrics: the leases of the fleet and of this instance, and the state of the table. */
import type { TableLeasesStats } from '../coordination/dynamodb/table-leases.js';
import { callFamilies, failureReasons, stateFamily } from './call-families.js';
import { one, type StatsFamily, several } from './stats-family.js';

/** Leases that can be observed: `DynamoLeases` is one. */
export interface ObservedLeases {
  stats(): TableLeasesStats;
}

const denials = ['limit', 'gone', ...failureReasons] as const;
const states = ['unused', 'ok', 'failing', 'lost', 'ended'] as const;

/** The first two have the names that alerts for Aurora DSQL ask for. */
export const leaseFamilies: readonly StatsFamily<TableLeasesStats>[] = [
  one('gauge', 'dsql_distributed_conn_lease_active', 'Slots that all instances hold.', (of) => of.active),
  one('gauge', 'dsql_distributed_conn_lease_limit', 'Slots that there are for all.', (of) => of.limit),
  one('gauge', 'headgate_lease_owned', 'Slots of this instance.', (of) => of.owned),
  one('gauge', 'headgate_lease_held', 'Slots of this instance that have connections.', (of) => of.held),
  one('gauge', 'headgate_lease_waiting', 'Pools of this instance that wait for a lease.', (of) => of.waiting),
  one('gauge', 'headgate_lease_instances', 'Instances that share the limit.', (of) => of.instances),
  one(
    'gauge',
    'headgate_lease_waiting_instances',
    'Instances with less than their share, or than their callers need.',
    (of) => {
      return of.waitingInstances;
    },
  ),
  one('counter', 'headgate_lease_reclaimed_total', 'Slots taken back from instances that are gone.', (of) => {
    return of.reclaimed;
  }),
  one(
    'counter',
    'headgate_lease_repaired_total',
    'By how much the counter was found wrong.',
    (of) => of.repaired,
  ),
  several(
    'counter',
    'headgate_lease_denied_total',
    'Slots wanted and not had.',
    'reason',
    denials,
    (of) => of.denied,
  ),
  stateFamily('headgate_coordinator_state', 'How the leases are doing: 1 for the present state.', states),
  ...callFamilies<TableLeasesStats>('headgate_coordinator'),
];
