/** The instruments of one meter for transactions that retry. OpenTelemetry's conventions have no names for these. */
import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api';
import type { TransactionRecorder } from './transaction-tally.js';

/** Seconds. Without a hint, SDKs use boundaries that suit milliseconds. */
const timeBoundaries = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export class TransactionInstruments {
  readonly #duration: Histogram;
  readonly #backoff: Histogram;
  readonly #errors: Counter;
  readonly #conflicts: Counter;
  readonly #retries: Counter;
  readonly #exhausted: Counter;

  constructor(meter: Meter) {
    const times = (name: string, description: string): Histogram =>
      meter.createHistogram(`headgate.transaction.${name}`, {
        unit: 's',
        description,
        advice: { explicitBucketBoundaries: timeBoundaries },
      });
    const count = (name: string, unit: string, description: string): Counter =>
      meter.createCounter(`headgate.transaction.${name}`, { unit, description });

    this.#duration = times('duration', 'From the first BEGIN to the end, with every attempt and wait.');
    this.#backoff = times('backoff', 'How long retries waited before they began.');
    this.#errors = count('errors', '{attempt}', 'Attempts that failed, by the class of their error.');
    this.#conflicts = count('conflicts', '{attempt}', 'Attempts that failed because of another transaction.');
    this.#retries = count('retries', '{attempt}', 'Retries, by the attempt that had failed.');
    this.#exhausted = count(
      'exhausted',
      '{transaction}',
      'Transactions that were given up after their last retry.',
    );
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
