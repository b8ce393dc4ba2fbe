/** Prometheus metrics read off the `stats()` of something that is no pool: its families, and a registry that reads them. */
import type { MetricReading, MetricRegistry, RegisteredMetric } from './metric-registry.js';

/** A metric with its own label and the values of that label. */
export interface StatsFamily<Stats> {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly labels: readonly string[];
  readonly words: readonly string[] | undefined;
  /** Values by label value; without a label, under the empty string. */
  read(stats: Stats): Readonly<Record<string, number>>;
}

export function one<Stats>(
  type: StatsFamily<Stats>['type'],
  name: string,
  help: string,
  read: (stats: Stats) => number,
): StatsFamily<Stats> {
  return { type, name, help, labels: [], words: undefined, read: (stats) => ({ '': read(stats) }) };
}

export function several<Stats>(
  type: StatsFamily<Stats>['type'],
  name: string,
  help: string,
  label: string,
  words: readonly string[],
  read: StatsFamily<Stats>['read'],
): StatsFamily<Stats> {
  return { type, name, help, labels: [label], words, read };
}

/** The labels and the value of each of its series, for one that is observed. */
export function seriesOf<Stats>(
  { labels, read }: StatsFamily<Stats>,
  stats: Stats,
  common: Readonly<Record<string, string>>,
): { readonly labels: Readonly<Record<string, string>>; readonly value: number }[] {
  const [label] = labels;
  return Object.entries(read(stats)).map(([word, value]) => ({
    labels: { ...common, ...(label !== undefined && { [label]: word }) },
    value,
  }));
}

interface Observed<Stats> {
  stats(): Stats;
}

type Sources<Stats> = ReadonlyMap<Observed<Stats>, Readonly<Record<string, string>>>;

type SourceLabels = Readonly<Record<string, string>>;

/**
 * All stats of one kind that are read through one registry. Each has one set of labels: its own if it was exposed by
 * itself, otherwise those of the first pool that it was exposed with.
 */
export class ExposedStats<Stats> {
  readonly #registry: MetricRegistry;
  readonly #sources = new Map<Observed<Stats>, SourceLabels>();
  readonly #byThemselves = new Map<Observed<Stats>, SourceLabels>();
  readonly #withPools = new Map<Observed<Stats>, Set<SourceLabels>>();
  readonly #metrics: readonly StatsMetric<Stats>[];

  constructor(registry: MetricRegistry, families: readonly StatsFamily<Stats>[]) {
    this.#registry = registry;
    this.#metrics = families.map((family) => new StatsMetric(family, this.#sources));
  }

  /** Whether it is exposed by itself. */
  has(observed: Observed<Stats>): boolean {
    return this.#byThemselves.has(observed);
  }

  /** Returns the function that ends it. */
  add(observed: Observed<Stats>, labels: SourceLabels): () => void {
    this.#byThemselves.set(observed, labels);
    this.#settle(observed);
    return () => {
      if (this.#byThemselves.delete(observed)) this.#settle(observed);
    };
  }

  /** For a pool that shares it with others. Returns a function that ends it for this pool. */
  addWithPool(observed: Observed<Stats>, labels: SourceLabels): () => void {
    const pools = this.#withPools.get(observed) ?? new Set();
    this.#withPools.set(observed, pools.add(labels));
    this.#settle(observed);
    return () => {
      if (!pools.delete(labels)) return;
      if (pools.size === 0) this.#withPools.delete(observed);
      this.#settle(observed);
    };
  }

  #settle(observed: Observed<Stats>): void {
    const [first] = this.#withPools.get(observed) ?? [];
    const labels = this.#byThemselves.get(observed) ?? first;
    const wasEmpty = this.#sources.size === 0;
    if (labels === undefined) this.#sources.delete(observed);
    else {
      if (wasEmpty) for (const metric of this.#metrics) this.#registry.registerMetric(metric);
      this.#sources.set(observed, labels);
    }
    if (wasEmpty || this.#sources.size > 0) return;
    for (const { name } of this.#metrics) this.#registry.removeSingleMetric(name);
  }
}

class StatsMetric<Stats> implements RegisteredMetric {
  readonly name: string;
  readonly type: string;
  readonly #family: StatsFamily<Stats>;
  readonly #sources: Sources<Stats>;

  constructor(family: StatsFamily<Stats>, sources: Sources<Stats>) {
    this.name = family.name;
    this.type = family.type;
    this.#family = family;
    this.#sources = sources;
  }

  async get(): Promise<MetricReading> {
    const { name, help, type } = this.#family;
    const values = [...this.#sources].flatMap(([observed, common]) =>
      seriesOf(this.#family, observed.stats(), common),
    );
    // Metrics about all instances are the same in each process.
    return { name, help, type, aggregator: name.startsWith('dsql_') ? 'max' : 'sum', values };
  }

  reset(): void {}
}
