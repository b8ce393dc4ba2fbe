/** Reports leases and rate limiters in DynamoDB to OpenTelemetry. Pools that share one report it once for each meter. */
import type { Attributes, BatchObservableCallback, Meter } from '@opentelemetry/api';
import { DynamoLeases } from '../coordination/dynamodb/dynamo-leases.js';
import { DynamoRateLimiter } from '../coordination/dynamodb/dynamo-rate-limiter.js';
import type { TableLeasesStats } from '../coordination/dynamodb/table-leases.js';
import type { TableRateLimiterStats } from '../coordination/dynamodb/table-rate-limiter.js';
import { leaseMetricTable, rateMetricTable } from './lease-metric-table.js';
import { leaseFamilies } from './lease-metrics.js';
import type { MetricTable } from './metric-declaration.js';
import { observeLast } from './observe-last.js';
import type { ObservedPool } from './observed-pool.js';
import { rateFamilies } from './rate-metrics.js';
import type { StatsFamily } from './stats-family.js';
import { StatsInstruments } from './stats-instruments.js';

interface Source<Stats> {
  stats(): Stats;
}

interface Observation {
  users: number;
  readonly stop: () => void;
}

/** Limits of one kind, and the meters that they are reported to. */
class ObservedLimits<Stats> {
  readonly #families: readonly StatsFamily<Stats>[];
  readonly #table: MetricTable;
  /** Creating an instrument twice in one meter is at best a warning. */
  readonly #instruments = new WeakMap<Meter, StatsInstruments<Stats>>();
  readonly #observations = new WeakMap<Meter, Map<Source<Stats>, Observation>>();

  constructor(families: readonly StatsFamily<Stats>[], table: MetricTable) {
    this.#families = families;
    this.#table = table;
  }

  /** With the attributes of whoever comes first. Returns the function that ends it. */
  add(source: Source<Stats>, meter: Meter, attributes: Attributes): () => void {
    const observations = this.#observations.get(meter) ?? new Map<Source<Stats>, Observation>();
    this.#observations.set(meter, observations);
    const observation = observations.get(source) ?? {
      users: 0,
      stop: this.#observe(source, meter, attributes),
    };
    observations.set(source, observation);
    observation.users++;
    return () => {
      observation.users--;
      if (observation.users > 0) return;
      observations.delete(source);
      observation.stop();
    };
  }

  #observe(source: Source<Stats>, meter: Meter, attributes: Attributes): () => void {
    const known = this.#instruments.get(meter);
    const instruments = known ?? new StatsInstruments(meter, this.#families, this.#table);
    this.#instruments.set(meter, instruments);
    const { observables } = instruments;
    const observe: BatchObservableCallback = (result) =>
      instruments.observe(result, source.stats(), attributes);
    meter.addBatchObservableCallback(observe, observables);
    return () => {
      meter.removeBatchObservableCallback(observe, observables);
      observeLast(meter, instruments, source.stats(), attributes);
    };
  }
}

const observedLeases = new ObservedLimits<TableLeasesStats>(leaseFamilies, leaseMetricTable);
const observedRates = new ObservedLimits<TableRateLimiterStats>(rateFamilies, rateMetricTable);

/** Observes the limits of a pool that are kept in DynamoDB. Returns the function that ends it for this pool. */
export function observeLimits(
  { leases, rateLimiter }: Pick<ObservedPool, 'leases' | 'rateLimiter'>,
  meter: Meter,
  attributes: Attributes,
): () => void {
  const stops: (() => void)[] = [];
  if (leases instanceof DynamoLeases) stops.push(observedLeases.add(leases, meter, attributes));
  if (rateLimiter instanceof DynamoRateLimiter) stops.push(observedRates.add(rateLimiter, meter, attributes));
  return () => {
    for (const stop of stops) stop();
  };
}
