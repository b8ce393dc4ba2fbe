/** A metric: its name, its kind, and how its samples are read off a pool. */
import type { PoolStats } from '../core/pool-stats.js';
import { type TimeHistogram, timeBounds } from './time-histogram.js';
import type { TransactionTally } from './transaction-tally.js';

/** The times of one pool, since it is exposed. */
export interface PoolTimes {
  /** Time from request to connection, for every checkout; 0 for those that found a connection ready. */
  readonly checkout: TimeHistogram;
  /** For checkouts that had to wait, also in vain. */
  readonly wait: TimeHistogram;
  readonly use: TimeHistogram;
  readonly dial: TimeHistogram;
  /** Transactions that retry. */
  readonly transactions: TransactionTally;
}

export interface Sample {
  /** Histograms have several kinds of samples. */
  readonly suffix: '' | '_bucket' | '_sum' | '_count';
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  /** `pool`: each pool has a series. `service`: the pools of a service are added up. */
  readonly scope: 'pool' | 'service';
  /** Its own labels, beside those of its scope. */
  readonly labels: readonly string[];
  /** How prom-client combines the processes of a cluster. */
  readonly aggregator: 'sum' | 'min';
  /** Returns none if this metric does not apply to this pool. The labels of each sample are unique. */
  read(stats: PoolStats, times: PoolTimes): readonly Sample[];
}

type NumberOf = (stats: PoolStats) => number | undefined;
/** A number for each value of a label. All values are present from the start, so that rates can be computed from the start. */
type NumbersOf = (stats: PoolStats) => Readonly<Record<string, number>> | undefined;
type HistogramOf = (times: PoolTimes, stats: PoolStats) => TimeHistogram | undefined;

const noLabels: Readonly<Record<string, string>> = Object.freeze({});

/** Makes families with a common prefix. */
export class FamilyMaker {
  readonly #prefix: string;
  readonly #scope: MetricFamily['scope'];

  constructor(prefix: string, scope: MetricFamily['scope']) {
    this.#prefix = prefix;
    this.#scope = scope;
  }

  gauge(name: string, help: string, read: NumberOf, aggregator: 'sum' | 'min' = 'sum'): MetricFamily {
    return { ...this.#family(name, help, 'gauge'), aggregator, read: (stats) => single(read(stats)) };
  }

  gauges(name: string, label: string, help: string, read: NumbersOf): MetricFamily {
    return {
      ...this.#family(name, help, 'gauge', label),
      read: (stats) => labelled(label, read(stats)),
    };
  }

  counter(name: string, help: string, read: NumberOf): MetricFamily {
    return { ...this.#family(name, help, 'counter'), read: (stats) => single(read(stats)) };
  }

  counters(name: string, label: string, help: string, read: NumbersOf): MetricFamily {
    return {
      ...this.#family(name, help, 'counter', label),
      read: (stats) => labelled(label, read(stats)),
    };
  }

  /** Times, of which `unitMs` milliseconds are one. */
  histogram(name: string, unitMs: number, help: string, read: HistogramOf): MetricFamily {
    return {
      ...this.#family(name, help, 'histogram'),
      read: (stats, times) => histogramSamples(read(times, stats), unitMs),
    };
  }

  #family(name: string, help: string, type: MetricFamily['type'], ...labels: readonly string[]) {
    const scope = this.#scope;
    return { name: this.#prefix + name, help, type, scope, labels, aggregator: 'sum' } as const;
  }
}

function single(value: number | undefined): Sample[] {
  return value === undefined ? [] : [{ suffix: '', labels: noLabels, value }];
}

function labelled(label: string, numbers: Readonly<Record<string, number>> | undefined): Sample[] {
  return Object.entries(numbers ?? {}).map(([word, value]) => ({
    suffix: '',
    labels: { [label]: word },
    value,
  }));
}

/** No samples without a histogram. */
export function histogramSamples(histogram: TimeHistogram | undefined, unitMs: number): Sample[] {
  if (histogram === undefined) return [];
  const { count, sumMs } = histogram;
  const bucket = (le: string, value: number): Sample => ({ suffix: '_bucket', labels: { le }, value });
  return [
    ...histogram
      .cumulative()
      .map((value, index) => bucket(String((timeBounds[index] as number) / unitMs), value)),
    bucket('+Inf', count),
    { suffix: '_sum', labels: noLabels, value: sumMs / unitMs },
    { suffix: '_count', labels: noLabels, value: count },
  ];
}
