/** Prometheus metrics read off the `stats()` of something that is no pool: its families, and a registry that reads them. */
import { headOf, type MetricHead, type MetricTable } from './metric-declaration.js';
import type { MetricReading, MetricRegistry, RegisteredMetric } from './metric-registry.js';

/** A metric with at most one label of its own. */
export interface StatsFamily<Stats> extends MetricHead {
  /** Values by label value; without a label, under the empty string. */
  read(stats: Stats): Readonly<Record<string, number>>;
}

/** Makes the families of a table. */
export class StatsFamilyMaker<Table extends MetricTable> {
  readonly #table: Table;

  constructor(table: Table) {
    this.#table = table;
  }

  one<Stats>(name: keyof Table & string, read: (stats: Stats) => number): StatsFamily<Stats> {
    return { ...headOf(this.#table, name), read: (stats) => ({ '': read(stats) }) };
  }

  several<Stats>(name: keyof Table & string, read: StatsFamily<Stats>['read']): StatsFamily<Stats> {
    return { ...headOf(this.#table, name), read };
  }

  /** 1 for the present one of the words, and 0 for the others. */
  state<Stats extends { readonly state: string }>(name: keyof Table & string): StatsFamily<Stats> {
    const head = headOf(this.#table, name);
    const read = ({ state }: Stats) =>
      Object.fromEntries((head.words ?? []).map((word) => [word, Number(word === state)]));
    return { ...head, read };
  }
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

  /** True if it is exposed by itself. */
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
    const { name, help, type, across: aggregator } = this.#family;
    const values = [...this.#sources].flatMap(([observed, common]) =>
      seriesOf(this.#family, observed.stats(), common),
    );
    return { name, help, type, aggregator, values };
  }

  reset(): void {}
}
