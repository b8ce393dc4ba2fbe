/** Exposes pools to Prometheus: under Headgate's own names, and under those that dashboards for Aurora DSQL use. */
import { DynamoLeases } from '../coordination/dynamodb/dynamo-leases.js';
import { DynamoRateLimiter } from '../coordination/dynamodb/dynamo-rate-limiter.js';
import { PoolOptionsError } from '../kernel/errors.js';
import { OptionReader } from '../kernel/option-reader.js';
import { ExposedPools } from './exposed-pools.js';
import type { Labels } from './label-group.js';
import { leaseFamilies, type ObservedLeases } from './lease-metrics.js';
import type { PoolTimes } from './metric-family.js';
import type { MetricRegistry } from './metric-registry.js';
import type { ObservedPool } from './observed-pool.js';
import { loadPeer } from './optional-peer.js';
import { onMessages } from './pool-messages.js';
import { type ObservedRateLimiter, rateFamilies } from './rate-metrics.js';
import { ExposedStats, type StatsFamily } from './stats-family.js';
import { TimeHistogram } from './time-histogram.js';
import { recordTransactions, TransactionTally } from './transaction-tally.js';

/** The registry, and the names of the figures in it. */
export interface ExposeOptions {
  /** Default: the global `register` of prom-client. */
  readonly registry?: MetricRegistry | undefined;
  /** The label `service`. Default: the pool's name. */
  readonly service?: string | undefined;
  /** Added to every series, e.g. `{ region: 'eu-west-1' }`. */
  readonly labels?: Labels | undefined;
}

/** A pool that is exposed. */
export interface PoolExposure {
  /** The label `pool`: the pool's name, with `#2` where another pool of the registry has it. */
  readonly poolName: string;
  /** Stops exposing: the pool's series are missing from the next scrape on. Until then the pool can't be garbage collected. */
  stop(): void;
}

const exposedByRegistry = new WeakMap<MetricRegistry, ExposedPools>();

/** These labels tell the series of a pool apart; a program can't use them for another purpose. */
const ownLabels = [
  'service',
  'pool',
  'state',
  'reason',
  'cause',
  'operation',
  'error_class',
  'attempt',
  'le',
];

/**
 * Has a Prometheus registry read a pool at every scrape. Times are recorded from now on. Leases and a rate limiter in DynamoDB that a
 * `DsqlPool` has are exposed with it.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 * import { exposePool } from 'headgate/prometheus';
 *
 * const pool = new Pool({ name: 'orders' });
 * const exposure = exposePool(pool, { service: 'shop' });
 * // ... and answer GET /metrics with `await register.metrics()` of prom-client
 * await pool.end();
 * exposure.stop();
 * ```
 */
export function exposePool(pool: ObservedPool, options: ExposeOptions = {}): PoolExposure {
  const { registry, service, labels } = readOptions(pool, options);
  const times: PoolTimes = {
    checkout: new TimeHistogram(),
    wait: new TimeHistogram(),
    use: new TimeHistogram(),
    dial: new TimeHistogram(),
    transactions: new TransactionTally('transaction' in pool),
  };
  const { poolName, leave } = exposedOn(registry).add({ pool, times }, service, labels);
  const stopTimes = recordInto(times, pool);
  const stopLimits = exposeLimits(pool, registry, { service, ...labels });
  let isStopped = false;
  return {
    poolName,
    stop() {
      if (isStopped) return;
      isStopped = true;
      stopTimes();
      stopLimits();
      leave();
    },
  };
}

interface ExposedKind<Stats> {
  readonly exposed: WeakMap<MetricRegistry, ExposedStats<Stats>>;
  readonly families: readonly StatsFamily<Stats>[];
  readonly what: string;
}

const leaseKind: ExposedKind<ReturnType<ObservedLeases['stats']>> = {
  exposed: new WeakMap(),
  families: leaseFamilies,
  what: 'these leases',
};
const rateKind: ExposedKind<ReturnType<ObservedRateLimiter['stats']>> = {
  exposed: new WeakMap(),
  families: rateFamilies,
  what: 'this rate limiter',
};

/**
 * Has a Prometheus registry read leases in DynamoDB at every scrape.
 *
 * @example
 * ```ts
 * import { DynamoLeases } from 'headgate/dynamodb';
 * import { exposeLeases } from 'headgate/prometheus';
 *
 * const leases = new DynamoLeases({ table: 'connections', endpoint: 'db.example.com', limit: 500 });
 * const exposure = exposeLeases(leases, { service: 'shop' });
 * // ... and answer GET /metrics with `await register.metrics()` of prom-client
 * exposure.stop();
 * ```
 */
export function exposeLeases(leases: ObservedLeases, options: ExposeOptions = {}): { stop(): void } {
  return expose(leases, options, leaseKind);
}

/**
 * Has a Prometheus registry read a rate limiter in DynamoDB at every scrape.
 *
 * @example
 * ```ts
 * import { DynamoRateLimiter } from 'headgate/dynamodb';
 * import { exposeRateLimiter } from 'headgate/prometheus';
 *
 * const rateLimiter = new DynamoRateLimiter({ table: 'connections', endpoint: 'db.example.com', rate: 90 });
 * const exposure = exposeRateLimiter(rateLimiter, { service: 'shop' });
 * // ... and answer GET /metrics with `await register.metrics()` of prom-client
 * exposure.stop();
 * ```
 */
export function exposeRateLimiter(
  rateLimiter: ObservedRateLimiter,
  options: ExposeOptions = {},
): { stop(): void } {
  return expose(rateLimiter, options, rateKind);
}

function expose<Stats>(
  observed: { stats(): Stats },
  options: ExposeOptions,
  kind: ExposedKind<Stats>,
): { stop(): void } {
  const { registry, service, labels } = readExposure(options, 'headgate');
  const known = exposedStats(registry, kind);
  if (known.has(observed))
    throw new PoolOptionsError([{ path: 'registry', message: `has ${kind.what} already` }]);
  return { stop: known.add(observed, { service, ...labels }) };
}

function exposedStats<Stats>(
  registry: MetricRegistry,
  { exposed, families }: ExposedKind<Stats>,
): ExposedStats<Stats> {
  const known = exposed.get(registry) ?? new ExposedStats(registry, families);
  exposed.set(registry, known);
  return known;
}

/** Several pools of a process have the same limits: each is one source, for as long as one of them is exposed. */
function exposeLimits(
  { leases, rateLimiter }: ObservedPool,
  registry: MetricRegistry,
  labels: Labels,
): () => void {
  const stops: (() => void)[] = [];
  if (leases instanceof DynamoLeases)
    stops.push(exposedStats(registry, leaseKind).addWithPool(leases, { ...labels }));
  if (rateLimiter instanceof DynamoRateLimiter)
    stops.push(exposedStats(registry, rateKind).addWithPool(rateLimiter, { ...labels }));
  return () => {
    for (const stop of stops) stop();
  };
}

function readOptions(pool: ObservedPool, options: ExposeOptions) {
  const { read, registry, service, labels } = readExposure(options, pool.name);
  if (exposedByRegistry.get(registry)?.has(pool)) {
    read.problem('registry', `has the pool ${pool.name} already: stop that exposure first`);
    read.throwIfAnyProblem();
  }
  return { registry, service, labels };
}

function readExposure(options: ExposeOptions, usualService: string) {
  const read = new OptionReader(options);
  const given = read.object<MetricRegistry>('registry', [
    'registerMetric',
    'getSingleMetric',
    'removeSingleMetric',
  ]);
  const service = read.string('service', usualService);
  const labels = read.object<Labels>('labels', []) ?? {};
  for (const [name, value] of Object.entries(labels)) checkLabel(read, name, value);
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return { read, registry: given ?? defaultRegistry(), service, labels: { ...labels } };
}

function checkLabel(read: OptionReader, name: string, value: unknown): void {
  const path = `labels.${name}`;
  if (!/^[a-zA-Z_]\w*$/.test(name) || name.startsWith('__'))
    read.problem(path, 'must be a name of letters, digits and _, and not begin with a digit or with __');
  if (ownLabels.includes(name)) read.problem(path, 'is a label of the metrics themselves');
  if (typeof value !== 'string') read.problem(path, `must be a text, not ${typeof value}`);
}

function defaultRegistry(): MetricRegistry {
  return loadPeer<{ readonly register: MetricRegistry }>('prom-client', 'give a registry').register;
}

function exposedOn(registry: MetricRegistry): ExposedPools {
  const known = exposedByRegistry.get(registry);
  if (known !== undefined) return known;
  const made = new ExposedPools(registry);
  exposedByRegistry.set(registry, made);
  return made;
}

function recordInto({ checkout, wait, use, dial, transactions }: PoolTimes, pool: ObservedPool): () => void {
  const stopTransactions = recordTransactions(pool, transactions);
  const stopTimes = onMessages(pool, {
    'headgate:pool:opened': ({ dialMs }) => dial.record(dialMs),
    'headgate:pool:acquired': ({ waitMs }) => {
      checkout.record(waitMs);
      if (waitMs > 0) wait.record(waitMs);
    },
    'headgate:pool:released': ({ useMs }) => use.record(useMs),
    'headgate:pool:timeout': ({ waitMs }) => wait.record(waitMs),
  });
  return () => {
    stopTransactions();
    stopTimes();
  };
}
