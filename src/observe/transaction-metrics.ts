/** Transactions that retry, by the names that dashboards and alerts for Aurora DSQL ask for. Times are in seconds. */
import { histogramSamples, type MetricFamily, type Sample } from './metric-family.js';
import type { OperationTally } from './transaction-tally.js';

type Read = (tally: OperationTally) => readonly Sample[];

function family(
  type: MetricFamily['type'],
  name: string,
  help: string,
  read: Read,
  ...labels: readonly string[]
): MetricFamily {
  return {
    name: `dsql_tx_${name}`,
    help,
    type,
    scope: 'service',
    labels: ['operation', ...labels],
    aggregator: 'sum',
    read: (_stats, { transactions }) =>
      [...transactions.operations].flatMap(([operation, tally]) =>
        read(tally).map((sample) => ({ ...sample, labels: { operation, ...sample.labels } })),
      ),
  };
}

export const transactionMetrics: readonly MetricFamily[] = [
  family('histogram', 'latency', 'From the first BEGIN to the end, with every attempt and wait.', (tally) =>
    histogramSamples(tally.latency, 1_000),
  ),
  family(
    'counter',
    'error_class_total',
    'Attempts that failed, by the class of their error.',
    (tally) => counted('error_class', tally.errors),
    'error_class',
  ),
  family('counter', 'exhausted_total', 'Transactions that were given up after their last retry.', (tally) =>
    single(tally.exhausted),
  ),
  family('counter', 'conflict_total', 'Attempts that failed because of another transaction.', (tally) =>
    single(tally.conflicts),
  ),
  family(
    'counter',
    'retry_total',
    'Retries, by the attempt that had failed.',
    (tally) => counted('attempt', tally.retries),
    'attempt',
  ),
  family('histogram', 'backoff', 'How long retries waited before they began.', (tally) =>
    histogramSamples(tally.backoff, 1_000),
  ),
];

function single(value: number): Sample[] {
  return [{ suffix: '', labels: {}, value }];
}

function counted(label: string, counts: ReadonlyMap<string, number>): Sample[] {
  return Array.from(counts, ([word, value]) => ({ suffix: '', labels: { [label]: word }, value }));
}
