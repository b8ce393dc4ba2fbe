/** A Prometheus registry, as far as pools are read through it. prom-client's is one. */

/** One number, with the labels that tell it from the others. */
export interface MetricValue {
  /** Set where it differs from the metric's name: `..._bucket`, `..._sum`, `..._count`. */
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly value: number;
}

/** The numbers of one metric at one moment. */
export interface MetricReading {
  readonly name: string;
  readonly help: string;
  /** `counter`, `gauge` or `histogram`. (prom-client gives words, and declares numbers.) */
  readonly type: string | number;
  /** How the processes of a cluster are combined. */
  readonly aggregator: string;
  readonly values: readonly MetricValue[];
}

/** A metric that a registry asks for its numbers whenever it is scraped. */
export interface RegisteredMetric {
  /** The name and type of its readings. Always present; optional here because prom-client does not declare them. */
  readonly name?: string;
  readonly type?: string | number;
  get(): Promise<MetricReading>;
  /** Does nothing: the counts of a pool are kept. */
  reset(): void;
}

/** prom-client's `Registry`, or another that can do this. */
export interface MetricRegistry {
  registerMetric(metric: RegisteredMetric): void;
  /** The metric registered by this name, if there is one. */
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}
