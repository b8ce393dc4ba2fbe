/** The instruments of one meter: OpenTelemetry's nine for connection pools, and Headgate's own. */
import type {
  Attributes,
  BatchObservableResult,
  Histogram,
  Meter,
  MetricOptions,
  Observable,
} from '@opentelemetry/api';
import type { PoolStats } from '../core/pool-stats.js';
import { breakerStates } from './pool-metric-table.js';
import { TransactionInstruments } from './transaction-instruments.js';

/** The stats of a pool, with `minIdle` where the pool keeps a minimum of idle connections. */
export type ObservedStats = PoolStats & { readonly minIdle?: number };

type NumberOf = (stats: ObservedStats) => number;
/** A number for each value of an attribute. */
type NumbersOf = (stats: ObservedStats) => (readonly [value: string, number: number])[];

interface Reading {
  readonly instrument: Observable;
  /** True for a level of the moment; false for a count, which only grows. */
  readonly isLevel: boolean;
  /** Each number, with the attributes that tell it from the others. */
  read(stats: ObservedStats): Iterable<readonly [attributes: Attributes, number: number]>;
}

/** Seconds. Without a hint, SDKs use boundaries that suit milliseconds. */
const timeBoundaries = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30];

export class PoolInstruments {
  readonly createTime: Histogram;
  readonly waitTime: Histogram;
  readonly useTime: Histogram;
  readonly transactions: TransactionInstruments;
  readonly #meter: Meter;
  readonly #readings: Reading[] = [];

  constructor(meter: Meter) {
    this.#meter = meter;
    this.createTime = this.#times('create_time', 'The time it took to create a new connection.');
    this.waitTime = this.#times('wait_time', 'The time it took to obtain an open connection from the pool.');
    this.useTime = this.#times(
      'use_time',
      'The time between borrowing a connection and returning it to the pool.',
    );
    this.transactions = new TransactionInstruments(meter);
    this.#conventional();
    this.#own();
  }

  get observables(): Observable[] {
    return this.#readings.map(({ instrument }) => instrument);
  }

  observe(result: BatchObservableResult, stats: ObservedStats, attributes: Attributes): void {
    for (const { instrument, read } of this.#readings) {
      for (const [own, number] of read(stats)) result.observe(instrument, number, { ...attributes, ...own });
    }
  }

  /** Reports zero for every level: SDKs go on reporting the last value. */
  observeEnd(result: BatchObservableResult, stats: ObservedStats, attributes: Attributes): void {
    for (const { instrument, isLevel, read } of this.#readings) {
      if (!isLevel) continue;
      for (const [own] of read(stats)) result.observe(instrument, 0, { ...attributes, ...own });
    }
  }

  /** Names, kinds and units are those of the semantic conventions for database clients. */
  #conventional(): void {
    const level = (name: string, unit: string, description: string, read: NumberOf): void =>
      this.#level(`db.client.connection.${name}`, { unit, description }, read);
    const connections = '{connection}';

    this.#levels(
      'db.client.connection.count',
      {
        unit: connections,
        description:
          'The number of connections that are currently in state described by the `state` attribute.',
      },
      'db.client.connection.state',
      ({ idle, live }) => [
        ['idle', idle],
        ['used', live - idle],
      ],
    );
    level(
      'idle.max',
      connections,
      'The maximum number of idle open connections allowed.',
      ({ limit }) => limit,
    );
    level(
      'idle.min',
      connections,
      'The minimum number of idle open connections allowed.',
      ({ minIdle }) => minIdle ?? 0,
    );
    level('max', connections, 'The maximum number of open connections allowed.', ({ limit }) => limit);
    level(
      'pending_requests',
      '{request}',
      'The number of current pending requests for an open connection.',
      ({ waiting }) => waiting,
    );
    this.#count(
      'db.client.connection.timeouts',
      {
        unit: '{timeout}',
        description:
          'The number of connection timeouts that have occurred trying to obtain a connection from the pool.',
      },
      ({ totals }) => totals.timedOut,
    );
  }

  /** Measurements without a name in the conventions. */
  #own(): void {
    const level = (name: string, description: string, read: NumberOf): void =>
      this.#level(`headgate.connection.${name}`, { unit: '{connection}', description }, read);
    const count = (name: string, unit: string, description: string, read: NumberOf): void =>
      this.#count(`headgate.connection.${name}`, { unit, description }, read);

    level('limit', 'What opening, open and closing connections together never exceed.', ({ limit }) => limit);
    level('opening', 'Connections being opened.', ({ pending }) => pending);
    level(
      'closing',
      'Connections being closed; they count until the socket is gone.',
      ({ closing }) => closing,
    );
    level('peak', 'The most opening, open and closing connections there ever were.', ({ peak }) => peak);
    level('leases', 'Leases held of the budget above the pool.', ({ leased }) => leased);
    count(
      'dial_failures',
      '{attempt}',
      'Attempts to open a connection that failed.',
      ({ totals }) => totals.dialsFailed,
    );
    count('found_empty', '{request}', 'Callers who found nothing ready.', ({ totals }) => totals.foundEmpty);
    level(
      'waiting_for_permit',
      'Callers for whom no connection is being opened, because the rate limiter has no permit.',
      ({ waitingForPermit }) => waitingForPermit,
    );
    count(
      'permit_waits',
      '{wait}',
      'Waits for a permit of the rate limiter.',
      ({ totals }) => totals.permitWaits,
    );
    count(
      'permit_wait_time',
      's',
      'How long connections that were wanted waited for a permit of the rate limiter.',
      ({ totals }) => totals.permitWaitedMs / 1_000,
    );
    count(
      'leaks',
      '{connection}',
      'Connections kept longer than the leak threshold.',
      ({ totals }) => totals.leaks,
    );

    this.#counts(
      'headgate.connection.discards',
      { unit: '{connection}', description: 'Connections that were closed, by the reason.' },
      'headgate.discard.reason',
      ({ totals }) => Object.entries(totals.discarded),
    );
    this.#counts(
      'headgate.connection.refill_failures',
      {
        unit: '{connection}',
        description: 'Connections that were wanted and not opened, by what was in the way.',
      },
      'headgate.refill.cause',
      ({ totals }) => Object.entries(totals.refillFailures),
    );
    this.#levels(
      'headgate.breaker.state',
      { unit: '{breaker}', description: '1 for the state that the breaker is in, and 0 for the others.' },
      'headgate.breaker.state',
      ({ breaker }) => breakerStates.map((state) => [state, state === breaker ? 1 : 0]),
    );
  }

  #times(name: string, description: string): Histogram {
    return this.#meter.createHistogram(`db.client.connection.${name}`, {
      unit: 's',
      description,
      advice: { explicitBucketBoundaries: timeBoundaries },
    });
  }

  #level(name: string, options: MetricOptions, read: NumberOf): void {
    const instrument = this.#meter.createObservableUpDownCounter(name, options);
    this.#readings.push({ instrument, isLevel: true, read: (stats) => [[{}, read(stats)]] });
  }

  #count(name: string, options: MetricOptions, read: NumberOf): void {
    const instrument = this.#meter.createObservableCounter(name, options);
    this.#readings.push({ instrument, isLevel: false, read: (stats) => [[{}, read(stats)]] });
  }

  #levels(name: string, options: MetricOptions, key: string, read: NumbersOf): void {
    const instrument = this.#meter.createObservableUpDownCounter(name, options);
    this.#readings.push({ instrument, isLevel: true, read: (stats) => keyed(key, read(stats)) });
  }

  #counts(name: string, options: MetricOptions, key: string, read: NumbersOf): void {
    const instrument = this.#meter.createObservableCounter(name, options);
    this.#readings.push({ instrument, isLevel: false, read: (stats) => keyed(key, read(stats)) });
  }
}

function keyed(key: string, numbers: readonly (readonly [string, number])[]): [Attributes, number][] {
  return numbers.map(([value, number]) => [{ [key]: value }, number]);
}
