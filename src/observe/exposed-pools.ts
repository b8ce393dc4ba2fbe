/** The pools that are read through one registry, and the metrics that read them whenever the registry asks. */
import { dsqlMetrics } from './dsql-metrics.js';
import { type ExposedPool, LabelGroup, type Labels } from './label-group.js';
import type { MetricFamily } from './metric-family.js';
import type { MetricReading, MetricRegistry, MetricValue, RegisteredMetric } from './metric-registry.js';
import type { ObservedPool } from './observed-pool.js';
import { poolMetrics } from './pool-metrics.js';
import { transactionMetrics } from './transaction-metrics.js';

/** All metrics. */
export const metricFamilies: readonly MetricFamily[] = [
  ...poolMetrics,
  ...dsqlMetrics,
  ...transactionMetrics,
];

type Groups = Map<string, LabelGroup>;

export class ExposedPools {
  readonly #registry: MetricRegistry;
  readonly #groups = { pool: new Map() as Groups, service: new Map() as Groups };
  readonly #metrics: readonly PoolMetric[];
  readonly #names = new Map<ObservedPool, string>();

  constructor(registry: MetricRegistry) {
    this.#registry = registry;
    this.#metrics = metricFamilies.map((family) => new PoolMetric(family, this.#groups[family.scope]));
  }

  has(pool: ObservedPool): boolean {
    return this.#names.has(pool);
  }

  /** Returns the pool's name from now on: two pools of the same name are not counted as one. */
  add(exposed: ExposedPool, service: string, labels: Labels): { poolName: string; leave: () => void } {
    const { pool } = exposed;
    this.#register();
    const poolName = this.#freeName(pool.name);
    this.#names.set(pool, poolName);
    const groups = [
      [this.#groups.pool, { service, pool: poolName, ...labels }],
      [this.#groups.service, { service, ...labels }],
    ] as const;
    for (const [all, own] of groups) groupOf(all, own).join(exposed);
    const leave = (): void => {
      this.#names.delete(pool);
      for (const [all, own] of groups) {
        const group = groupOf(all, own);
        group.leave(exposed, metricFamilies);
        if (group.isEmpty) all.delete(keyOf(own));
      }
      if (this.#names.size === 0) this.#unregister();
    };
    return { poolName, leave };
  }

  #freeName(name: string): string {
    const taken = new Set(this.#names.values());
    let free = name;
    for (let number = 2; taken.has(free); number++) free = `${name}#${number}`;
    return free;
  }

  /** A registered metric may have been removed since. */
  #register(): void {
    try {
      for (const metric of this.#metrics) {
        if (!this.#isRegistered(metric)) this.#registry.registerMetric(metric);
      }
    } catch (error) {
      // The program has a metric of that name; it shall not be left with half of ours.
      if (this.#names.size === 0) this.#unregister();
      throw error;
    }
  }

  #unregister(): void {
    for (const metric of this.#metrics) {
      if (this.#isRegistered(metric)) this.#registry.removeSingleMetric(metric.family.name);
    }
  }

  #isRegistered(metric: PoolMetric): boolean {
    return this.#registry.getSingleMetric(metric.family.name) === metric;
  }
}

/** One metric of all pools of a registry. */
class PoolMetric implements RegisteredMetric {
  /** An OpenMetrics registry of prom-client takes the `_total` off counters, and puts it back in its own way. */
  name: string;
  readonly type: string;
  readonly family: MetricFamily;
  readonly #groups: Groups;

  constructor(family: MetricFamily, groups: Groups) {
    this.name = family.name;
    this.type = family.type;
    this.family = family;
    this.#groups = groups;
  }

  async get(): Promise<MetricReading> {
    const { help, type, aggregator } = this.family;
    const values = [...this.#groups.values()].flatMap((group) => this.#valuesOf(group));
    return { name: this.name, help, type, aggregator, values };
  }

  #valuesOf(group: LabelGroup): MetricValue[] {
    return group.read(this.family).map(({ suffix, labels, value }) => ({
      ...(suffix !== '' && { metricName: this.name + suffix }),
      labels: { ...group.labels, ...labels },
      value,
    }));
  }

  reset(): void {}
}

function groupOf(groups: Groups, labels: Labels): LabelGroup {
  const key = keyOf(labels);
  const known = groups.get(key);
  if (known !== undefined) return known;
  const made = new LabelGroup(labels);
  groups.set(key, made);
  return made;
}

/** Independent of the order of the labels. */
function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
