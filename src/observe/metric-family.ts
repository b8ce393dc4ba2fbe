/** A metric: its name, its kind, and how its samples are read off a pool. */
import type { PoolStats } from '../core/pool-stats.js';
import { headOf, type MetricHead, type MetricTable } from './metric-declaration.js';
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

export interface MetricFamily extends Omit<MetricHead, 'across'> {
  /** `pool`: each pool has a series. `service`: the pools of a service are added up. */
  readonly scope: 'pool' | 'service';
  /** How prom-client combines the processes of a cluster. */
  readonly aggregator: 'sum' | 'max' | 'min';
  /** Returns none if this metric does not apply to this pool. The labels of each sample are unique. */
  read(stats: PoolStats, times: PoolTimes): readonly Sample[];
}

type NumberOf = (stats: PoolStats) => number | undefined;
/** A number for each value of a label. All values are present from the start, so that rates can be computed from the start. */
type NumbersOf = (stats: PoolStats) => Readonly<Record<string, number>> | undefined;
type HistogramOf = (times: PoolTimes, stats: PoolStats) => TimeHistogram | undefined;

const noLabels: Readonly<Record<string, string>> = Object.freeze({});

/** Makes the families of a table. */
export class FamilyMaker<Table extends MetricTable> {
  readonly #table: Table;
  readonly #scope: MetricFamily['scope'];

  constructor(table: Table, scope: MetricFamily['scope']) {
    this.#table = table;
    this.#scope = scope;
  }

  number(name: keyof Table & string, read: NumberOf): MetricFamily {
    return this.family(name, (stats) => single(read(stats)));
  }

  numbers(name: keyof Table & string, read: NumbersOf): MetricFamily {
    const { labels } = headOf(this.#table, name);
    return this.family(name, (stats) => labelled(labels[0] as string, read(stats)));
  }

  /** Times in seconds, or in milliseconds where the declaration says so. */
  times(name: keyof Table & string, read: HistogramOf): MetricFamily {
    const unitMs = this.#table[name]?.unit === 'ms' ? 1 : 1_000;
    return this.family(name, (stats, times) => histogramSamples(read(times, stats), unitMs));
  }

  family(name: keyof Table & string, read: MetricFamily['read']): MetricFamily {
    const { across: aggregator, ...head } = headOf(this.#table, name);
    return { ...head, scope: this.#scope, aggregator, read };
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

/** Distinguishes a sample from the others of its metric. */
export type SampleHead = Omit<Sample, 'value'>;

const knownHeads = new Map<number, readonly SampleHead[]>();

/** Made once for each unit, since every scrape has them for every pool. */
export function histogramHeads(unitMs: number): readonly SampleHead[] {
  const known = knownHeads.get(unitMs);
  if (known !== undefined) return known;
  const bounds = [...timeBounds.map((bound) => String(bound / unitMs)), '+Inf'];
  const made: readonly SampleHead[] = [
    ...bounds.map((le) => ({ suffix: '_bucket' as const, labels: { le } })),
    { suffix: '_sum', labels: noLabels },
    { suffix: '_count', labels: noLabels },
  ];
  knownHeads.set(unitMs, made);
  return made;
}

/** Writes the value of each head, from `at` on. */
export function fillHistogram(values: number[], histogram: TimeHistogram, unitMs: number, at = 0): void {
  const { count, sumMs } = histogram;
  const most = timeBounds.length;
  let total = 0;
  for (let bucket = 0; bucket < most; bucket++) {
    total += histogram.countAt(bucket);
    values[at + bucket] = total;
  }
  values[at + most] = count;
  values[at + most + 1] = sumMs / unitMs;
  values[at + most + 2] = count;
}

/** Adds the value of each head to `sums`. Most histograms of thousands of pools are empty. */
export function addHistogram(sums: number[], histogram: TimeHistogram, unitMs: number): void {
  const { count, sumMs } = histogram;
  if (count === 0) return;
  const most = timeBounds.length;
  let total = 0;
  for (let bucket = 0; bucket < most; bucket++) {
    total += histogram.countAt(bucket);
    if (total !== 0) sums[bucket] = (sums[bucket] as number) + total;
  }
  sums[most] = (sums[most] as number) + count;
  sums[most + 1] = (sums[most + 1] as number) + sumMs / unitMs;
  sums[most + 2] = (sums[most + 2] as number) + count;
}

/** No samples without a histogram. */
export function histogramSamples(histogram: TimeHistogram | undefined, unitMs: number): Sample[] {
  if (histogram === undefined) return [];
  const values: number[] = [];
  fillHistogram(values, histogram, unitMs);
  return histogramHeads(unitMs).map((head, i) => ({ ...head, value: values[i] as number }));
}
