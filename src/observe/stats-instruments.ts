/**
 * OpenTelemetry instruments of something with `stats()` that is no pool, made of its declared metrics: `headgate_rate_wait_seconds`
 * is `headgate.rate.wait_time`. Numbers that processes share, and must not be added up, are gauges.
 */
import type { Attributes, BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import type { MetricTable } from './metric-declaration.js';
import { type StatsFamily, seriesOf } from './stats-family.js';

interface Instrument<Stats> {
  readonly family: StatsFamily<Stats>;
  readonly observable: Observable;
}

export class StatsInstruments<Stats> {
  readonly #instruments: readonly Instrument<Stats>[];

  constructor(meter: Meter, families: readonly StatsFamily<Stats>[], table: MetricTable) {
    this.#instruments = families.map((family) => ({
      family,
      observable: instrumentOf(meter, family, table),
    }));
  }

  get observables(): Observable[] {
    return this.#instruments.map(({ observable }) => observable);
  }

  observe(result: BatchObservableResult, stats: Stats, attributes: Attributes): void {
    for (const { family, observable } of this.#instruments)
      for (const { labels, value } of seriesOf(family, stats, {}))
        result.observe(observable, value, { ...attributes, ...attributesOf(labels) });
  }

  /** Reports zero for every level: SDKs go on reporting the last value. */
  observeEnd(result: BatchObservableResult, stats: Stats, attributes: Attributes): void {
    for (const { family, observable } of this.#instruments) {
      if (family.type === 'counter') continue;
      for (const { labels } of seriesOf(family, stats, {}))
        result.observe(observable, 0, { ...attributes, ...attributesOf(labels) });
    }
  }
}

function instrumentOf<Stats>(
  meter: Meter,
  { name, type, help: description, across }: StatsFamily<Stats>,
  table: MetricTable,
): Observable {
  const options = { unit: table[name]?.unit ?? '1', description };
  const own = instrumentName(name);
  if (type === 'counter') return meter.createObservableCounter(own, options);
  return across === 'sum'
    ? meter.createObservableUpDownCounter(own, options)
    : meter.createObservableGauge(own, options);
}

/** `headgate.lease.reclaimed` for `headgate_lease_reclaimed_total`. */
export function instrumentName(metric: string): string {
  const [room = '', ...rest] = metric
    .replace(/^headgate_|^dsql_distributed_conn_/, '')
    .replace(/_total$/, '')
    .replace(/_seconds$/, '_time')
    .split('_');
  return `headgate.${room}.${rest.join('_')}`;
}

function attributesOf(labels: Readonly<Record<string, string>>): Attributes {
  return Object.fromEntries(Object.entries(labels).map(([label, word]) => [`headgate.${label}`, word]));
}
