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
import { breakerStates, poolMetricTable, poolStates } from './pool-metric-table.js';
import { TransactionInstruments } from './transaction-instruments.js';

/** The stats of a pool, with `minIdle` where the pool keeps a minimum of idle connections. */
export type ObservedStats = PoolStats & { readonly minIdle?: number };

/** Undefined where the measurement does not apply to the pool. */
type NumberOf = (stats: ObservedStats) => number | undefined;
type MetricName = keyof typeof poolMetricTable;
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

/** Names, and the metrics that declare them. */
const ownNumbers: readonly (readonly [name: string, metric: MetricName, read: NumberOf])[] = [
  ['headgate.connection.limit', 'headgate_pool_limit', ({ limit }) => limit],
  ['headgate.connection.peak', 'headgate_pool_peak', ({ peak }) => peak],
  ['headgate.connection.leases', 'headgate_pool_leases_held', ({ leased }) => leased],
  ['headgate.connection.dial_failures', 'headgate_pool_dial_failures_total', (of) => of.totals.dialsFailed],
  ['headgate.connection.found_empty', 'headgate_pool_found_empty_total', (of) => of.totals.foundEmpty],
  ['headgate.connection.leaks', 'headgate_pool_leaks_total', (of) => of.totals.leaks],
  ['headgate.connection.opened', 'headgate_pool_opened_total', (of) => of.totals.opened],
  ['headgate.connection.top_ups', 'headgate_pool_top_ups_total', (of) => of.totals.toppedUp],
  [
    'headgate.connection.top_up_failures',
    'headgate_pool_top_up_failures_total',
    (of) => of.totals.topUpsFailed,
  ],
  ['headgate.connection.waiting_for_permit', 'headgate_pool_waiting_for_permit', (of) => of.waitingForPermit],
  ['headgate.connection.permit_waits', 'headgate_pool_permit_waits_total', (of) => of.totals.permitWaits],
  [
    'headgate.connection.permit_wait_time',
    'headgate_pool_permit_wait_seconds_total',
    (of) => of.totals.permitWaitedMs / 1_000,
  ],
  ['headgate.reservoir.target', 'headgate_pool_min_idle', (of) => of.reservoir?.targetReady],
  ['headgate.reservoir.low_watermark', 'headgate_pool_low_watermark', (of) => of.reservoir?.lowWatermark],
  [
    'headgate.reservoir.filled',
    'headgate_pool_filled',
    (of) => of.reservoir && Number(of.reservoir.isFilled),
  ],
];

const ownWords: readonly (readonly [name: string, key: string, metric: MetricName, read: NumbersOf])[] = [
  [
    'headgate.connection.discards',
    'headgate.discard.reason',
    'headgate_pool_discards_total',
    (of) => Object.entries(of.totals.discarded),
  ],
  [
    'headgate.connection.refill_failures',
    'headgate.refill.cause',
    'headgate_pool_refill_failures_total',
    (of) => Object.entries(of.totals.refillFailures),
  ],
  [
    'headgate.breaker.state',
    'headgate.breaker.state',
    'headgate_pool_breaker',
    ({ breaker }) => breakerStates.map((state) => [state, state === breaker ? 1 : 0]),
  ],
  [
    'headgate.pool.state',
    'headgate.pool.state',
    'headgate_pool_state',
    (of) => poolStates.map((state) => [state, state === of.state ? 1 : 0]),
  ],
];

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
    this.#states();
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

  /** States that the conventions do not have. */
  #states(): void {
    const level = (name: string, description: string, read: NumberOf): void =>
      this.#level(`headgate.connection.${name}`, { unit: '{connection}', description }, read);
    level('opening', 'Connections being opened.', ({ pending }) => pending);
    level('closing', 'Connections being closed; they count until the socket is gone.', (of) => of.closing);
  }

  /** Measurements without a name in the conventions: kind, unit and description are those of the declared metric. */
  #own(): void {
    for (const [name, metric, read] of ownNumbers) {
      const { type, unit, help: description } = poolMetricTable[metric];
      if (type === 'counter') this.#count(name, { unit, description }, read);
      else this.#level(name, { unit, description }, read);
    }
    for (const [name, key, metric, read] of ownWords) {
      const { type, unit, help: description } = poolMetricTable[metric];
      if (type === 'counter') this.#counts(name, { unit, description }, key, read);
      else this.#levels(name, { unit, description }, key, read);
    }
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
    this.#readings.push({ instrument, isLevel: true, read: (stats) => single(read(stats)) });
  }

  #count(name: string, options: MetricOptions, read: NumberOf): void {
    const instrument = this.#meter.createObservableCounter(name, options);
    this.#readings.push({ instrument, isLevel: false, read: (stats) => single(read(stats)) });
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

function single(number: number | undefined): [Attributes, number][] {
  return number === undefined ? [] : [[{}, number]];
}

function keyed(key: string, numbers: readonly (readonly [string, number])[]): [Attributes, number][] {
  return numbers.map(([value, number]) => [{ [key]: value }, number]);
}
