/** Transactions that retry, by the names that dashboards and alerts for Aurora DSQL ask for. Times are in seconds. */
import { transactionMetricTable } from './dsql-metric-table.js';
import { FamilyMaker, histogramSamples, type MetricFamily, type Sample } from './metric-family.js';
import type { OperationTally } from './transaction-tally.js';

type Read = (tally: OperationTally) => readonly Sample[];

const make = new FamilyMaker(transactionMetricTable, 'service');

function family(name: keyof typeof transactionMetricTable, read: Read): MetricFamily {
  return make.family(name, (_stats, { transactions }) =>
    [...transactions.operations].flatMap(([operation, tally]) =>
      read(tally).map((sample) => ({ ...sample, labels: { operation, ...sample.labels } })),
    ),
  );
}

export const transactionMetrics: readonly MetricFamily[] = [
  family('dsql_tx_latency', (tally) => histogramSamples(tally.latency, 1_000)),
  family('dsql_tx_error_class_total', (tally) => counted('error_class', tally.errors)),
  family('dsql_tx_exhausted_total', (tally) => single(tally.exhausted)),
  family('dsql_tx_conflict_total', (tally) => single(tally.conflicts)),
  family('dsql_tx_retry_total', (tally) => counted('attempt', tally.retries)),
  family('dsql_tx_backoff', (tally) => histogramSamples(tally.backoff, 1_000)),
];

function single(value: number): Sample[] {
  return [{ suffix: '', labels: {}, value }];
}

function counted(label: string, counts: ReadonlyMap<string, number>): Sample[] {
  return Array.from(counts, ([word, value]) => ({ suffix: '', labels: { [label]: word }, value }));
}
