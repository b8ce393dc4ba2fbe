/** Every metric that there is, by its name. */
import { dsqlMetricTable, transactionMetricTable } from '../../observe/dsql-metric-table.js';
import { leaseMetricTable, rateMetricTable } from '../../observe/lease-metric-table.js';
import type { MetricTable } from '../../observe/metric-declaration.js';
import { poolMetricTable as tableOfPrograms } from '../../observe/pool-metric-table.js';
import { poolMetricTable } from './pool-metric-table.js';
import { hostMetricTable, processMetricTable, shareMetricTable } from './process-metric-table.js';

export interface MetricSection {
  readonly title: string;
  /** Labels that all its metrics have. */
  readonly common: readonly string[];
  readonly table: MetricTable;
}

export const metricSections = {
  pools: { title: 'Pools of programs', common: ['service', 'pool'], table: tableOfPrograms },
  dsql: { title: 'Names for Aurora DSQL', common: ['service'], table: dsqlMetricTable },
  transactions: { title: 'Transactions that retry', common: ['service'], table: transactionMetricTable },
  leases: { title: 'Leases of a fleet', common: ['service'], table: leaseMetricTable },
  rates: { title: 'Rate of a fleet', common: ['service'], table: rateMetricTable },
  process: { title: 'The process of the pooler', common: [], table: processMetricTable },
  host: { title: 'The program of the pooler', common: [], table: hostMetricTable },
  shares: { title: 'Budgets and shares', common: [], table: shareMetricTable },
  poolerPools: { title: 'Pools of the pooler', common: ['database', 'user'], table: poolMetricTable },
} as const satisfies Readonly<Record<string, MetricSection>>;

export const allMetrics: MetricTable = Object.assign(
  {},
  ...Object.values(metricSections).map(({ table }) => table),
);
