/** Ties the declared metrics of the pooler to what they are read from. */
import { headOf, type MetricHead, type MetricTable } from '../../observe/metric-declaration.js';
import {
  addHistogram,
  fillHistogram,
  histogramHeads,
  type Sample,
  type SampleHead,
} from '../../observe/metric-family.js';
import type { TimeHistogram } from '../../observe/time-histogram.js';

/** A metric with the same samples in every reading: a reading is a number for each head. */
export interface FixedFamily<Reading> extends MetricHead {
  readonly heads: readonly SampleHead[];
  /** Writes one number for each head, from `at` on. Thousands of pools are read at each scrape, into one array. */
  fill(values: number[], reading: Reading, at: number): void;
  /** Adds the numbers of all readings to `sums`: one call for many pools, so that little is called for each. */
  addTo(sums: number[], readings: readonly Reading[]): void;
}

/** A metric with labels that come up while the pooler runs. */
interface FreeFamily<Reading> extends MetricHead {
  readonly heads: undefined;
  /** Samples of 0 for labels that are known, so that rates see the first event. The same array for all readings of a kind. */
  base(reading: Reading): readonly Sample[];
  read(reading: Reading): readonly Sample[];
}

export type PoolerFamily<Reading> = FixedFamily<Reading> | FreeFamily<Reading>;

type Counts = Readonly<Record<string, number>>;

const secondMs = 1_000;
const noSamples: readonly Sample[] = [];
const oneHead: readonly SampleHead[] = [{ suffix: '', labels: Object.freeze({}) }];

export class FamilyReaders<Table extends MetricTable> {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  one<R>(name: keyof Table & string, read: (of: R) => number): PoolerFamily<R> {
    return {
      ...headOf(this.#table, name),
      heads: oneHead,
      fill: (values, of, at) => {
        values[at] = read(of);
      },
      addTo: (sums, readings) => {
        let sum = sums[0] as number;
        for (const of of readings) sum += read(of);
        sums[0] = sum;
      },
    };
  }

  /** All label values exist from the start, so that rates are correct from the start. */
  several<R>(name: keyof Table & string, read: (of: R) => Counts): PoolerFamily<R> {
    const head = headOf(this.#table, name);
    const { labels, words = [] } = head;
    const label = labels[0] as string;
    return {
      ...head,
      heads: words.map((word) => ({ suffix: '', labels: Object.freeze({ [label]: word }) })),
      fill: (values, of, at) => {
        const counts = read(of);
        for (let i = 0; i < words.length; i++) values[at + i] = counts[words[i] as string] ?? 0;
      },
      addTo: (sums, readings) => {
        for (const of of readings) {
          const counts = read(of);
          for (let i = 0; i < words.length; i++) {
            const count = counts[words[i] as string] ?? 0;
            if (count !== 0) sums[i] = (sums[i] as number) + count;
          }
        }
      },
    };
  }

  times<R>(name: keyof Table & string, read: (of: R) => TimeHistogram): PoolerFamily<R> {
    return {
      ...headOf(this.#table, name),
      heads: histogramHeads(secondMs),
      fill: (values, of, at) => fillHistogram(values, read(of), secondMs, at),
      addTo: (sums, readings) => {
        for (const of of readings) addHistogram(sums, read(of), secondMs);
      },
    };
  }

  /** A count for each key of a map, which is empty for most of thousands of pools. */
  counted<R>(
    name: keyof Table & string,
    read: (of: R) => ReadonlyMap<string, number>,
    labelsOf: (key: string) => Sample['labels'],
    base: (of: R) => readonly Sample[],
  ): PoolerFamily<R> {
    const samplesOf = (of: R): readonly Sample[] => {
      const counts = read(of);
      if (counts.size === 0) return noSamples;
      return Array.from(counts, ([key, value]) => sample(labelsOf(key), value));
    };
    return this.samples(name, samplesOf, base);
  }

  samples<R>(
    name: keyof Table & string,
    read: (of: R) => readonly Sample[],
    base: (of: R) => readonly Sample[] = () => noSamples,
  ): PoolerFamily<R> {
    return { ...headOf(this.#table, name), heads: undefined, read, base };
  }
}

export function sample(labels: Readonly<Record<string, string>>, value: number): Sample {
  return { suffix: '', labels, value };
}

/** Distinguishes a sample from the others of its metric. */
export function sampleKey({ suffix, labels }: SampleHead): string {
  return `${suffix} ${Object.values(labels).join(' ')}`;
}
