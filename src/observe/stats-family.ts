/** What is read off the `stats()` of something that is no pool, as Prometheus metrics: its families, and a registry that reads them. */
import type { MetricReading, MetricRegistry, RegisteredMetric } from './metric-registry.js';

/** A metric, with the label that it has of its own and the words of that. */
export interface StatsFamily<Stats> {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly labels: readonly string[];
  readonly words: readonly string[] | undefined;
  /** By the word of its label; without one, by the empty word. */
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

/** All of one kind that are read through one registry. */
export class ExposedStats<Stats> {
  readonly #registry: MetricRegistry;
  readonly #sources = new Map<Observed<Stats>, Readonly<Record<string, string>>>();
  readonly #metrics: readonly StatsMetric<Stats>[];

  constructor(registry: MetricRegistry, families: readonly StatsFamily<Stats>[]) {
    this.#registry = registry;
    this.#metrics = families.map((family) => new StatsMetric(family, this.#sources));
  }

  has(observed: Observed<Stats>): boolean {
    return this.#sources.has(observed);
  }

  /** Answers the function that ends it. */
  add(observed: Observed<Stats>, labels: Readonly<Record<string, string>>): () => void {
    if (this.#sources.size === 0) for (const metric of this.#metrics) this.#registry.registerMetric(metric);
    this.#sources.set(observed, labels);
    return () => {
      if (!this.#sources.delete(observed) || this.#sources.size > 0) return;
      for (const { name } of this.#metrics) this.#registry.removeSingleMetric(name);
    };
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
    // What is about all instances is the same in each process.
    return { name, help, type, aggregator: name.startsWith('dsql_') ? 'max' : 'sum', values };
  }

  reset(): void {}
}
