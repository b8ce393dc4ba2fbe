/** The instruments of one meter for transactions that retry. OpenTelemetry's conventions have no names for these. */
import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api';
import { transactionMetricTable } from './dsql-metric-table.js';
import type { TransactionRecorder } from './transaction-tally.js';

/** Seconds. Without a hint, SDKs use boundaries that suit milliseconds. */
const timeBoundaries = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

type MetricName = keyof typeof transactionMetricTable;

/** Unit and description are those of the declared metric. */
function optionsOf(metric: MetricName): { unit: string; description: string } {
  const { unit, help: description } = transactionMetricTable[metric];
  return { unit, description };
}

export class TransactionInstruments {
  readonly #duration: Histogram;
  readonly #backoff: Histogram;
  readonly #errors: Counter;
  readonly #conflicts: Counter;
  readonly #retries: Counter;
  readonly #exhausted: Counter;

  constructor(meter: Meter) {
    const times = (name: string, metric: MetricName): Histogram =>
      meter.createHistogram(`headgate.transaction.${name}`, {
        ...optionsOf(metric),
        advice: { explicitBucketBoundaries: timeBoundaries },
      });
    const count = (name: string, metric: MetricName): Counter =>
      meter.createCounter(`headgate.transaction.${name}`, optionsOf(metric));

    this.#duration = times('duration', 'dsql_tx_latency');
    this.#backoff = times('backoff', 'dsql_tx_backoff');
    this.#errors = count('errors', 'dsql_tx_error_class_total');
    this.#conflicts = count('conflicts', 'dsql_tx_conflict_total');
    this.#retries = count('retries', 'dsql_tx_retry_total');
    this.#exhausted = count('exhausted', 'dsql_tx_exhausted_total');
  }

  /** Records with these attributes, beside the operation. */
  recorder(common: Attributes): TransactionRecorder {
    const of = (operation: string, own: Attributes = {}): Attributes => ({
      ...common,
      'headgate.transaction.operation': operation,
      ...own,
    });
    return {
      conflict: (operation) => this.#conflicts.add(1, of(operation)),
      error: (operation, errorClass) =>
        this.#errors.add(1, of(operation, { 'headgate.error.class': errorClass })),
      retry: (operation, attempt, backoffMs) => {
        this.#retries.add(1, of(operation, { 'headgate.transaction.attempt': attempt }));
        this.#backoff.record(backoffMs / 1000, of(operation));
      },
      exhausted: (operation) => this.#exhausted.add(1, of(operation)),
      ended: (operation, durationMs) => this.#duration.record(durationMs / 1000, of(operation)),
    };
  }
}
