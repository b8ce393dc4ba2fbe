/** Reports a pool to OpenTelemetry, in the words of its semantic conventions. */
import { type Attributes, type BatchObservableCallback, type Meter, metrics } from '@opentelemetry/api';
import { observeLast } from './observe-last.js';
import { observeLimits } from './observed-limits.js';
import { type ObservedStats, PoolInstruments } from './pool-instruments.js';
import { recordTimes } from './pool-times.js';
import { recordTransactions } from './transaction-tally.js';

/** A `Pool` or a `PromisePool`. */
export interface ObservablePool {
  readonly name: string;
  stats(): ObservedStats;
  /** Limits above the pool, as in a `DsqlPool`. Those in DynamoDB are observed with the pool. */
  readonly leases?: unknown;
  readonly rateLimiter?: unknown;
}

/** The meter, and the attributes of the figures. */
export interface ObserveOptions {
  /** Default: the meter `headgate` of the global provider, which must be set before. */
  readonly meter?: Meter | undefined;
  /** Added to every measurement, e.g. `{ 'server.address': 'db.example' }`. */
  readonly attributes?: Attributes | undefined;
}

/** An observation under way. */
export interface PoolObservation {
  /** Name of the pool in measurements, with `#2` where another observed pool has it. */
  readonly poolName: string;
  /** Ends the observation, with zero as the last of all levels. Until then the pool cannot be collected as garbage. */
  stop(): void;
}

/** Creating an instrument twice in one meter is at best a warning. */
const instrumentsByMeter = new WeakMap<Meter, PoolInstruments>();

/** The observed pools and their names there: two of the same name are not counted as one. */
const observed = new Map<ObservablePool, { readonly poolName: string; observations: number }>();

/**
 * Reports a pool as OpenTelemetry's `db.client.connection.*` metrics, and as `headgate.*` what they have no name for; with it
 * its leases and its rate limiter where those are in DynamoDB.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 * import { observePool } from 'headgate/opentelemetry';
 *
 * const pool = new Pool({ name: 'orders' });
 * const observation = observePool(pool, { attributes: { 'db.namespace': 'shop' } });
 * // ...
 * await pool.end();
 * observation.stop();
 * ```
 */
export function observePool(pool: ObservablePool, options: ObserveOptions = {}): PoolObservation {
  const meter = options.meter ?? metrics.getMeter('headgate');
  const instruments = instrumentsOf(meter);
  const poolName = claimName(pool);
  const attributes: Attributes = { ...options.attributes, 'db.client.connection.pool.name': poolName };

  const observables = instruments.observables;
  const observe: BatchObservableCallback = (result) => instruments.observe(result, pool.stats(), attributes);
  meter.addBatchObservableCallback(observe, observables);
  const stopTimes = recordTimes(pool, {
    created: (ms) => instruments.createTime.record(ms / 1000, attributes),
    waited: (ms) => instruments.waitTime.record(ms / 1000, attributes),
    used: (ms) => instruments.useTime.record(ms / 1000, attributes),
  });
  const stopLimits = observeLimits(pool, meter, { ...options.attributes });
  const stopTransactions = recordTransactions(pool, instruments.transactions.recorder(attributes));

  let stopped = false;
  return {
    poolName,
    stop() {
      if (stopped) return;
      stopped = true;
      giveUpName(pool);
      stopTimes();
      stopTransactions();
      stopLimits();
      meter.removeBatchObservableCallback(observe, observables);
      observeLast(meter, instruments, pool.stats(), attributes);
    },
  };
}

function instrumentsOf(meter: Meter): PoolInstruments {
  const known = instrumentsByMeter.get(meter);
  if (known !== undefined) return known;
  const made = new PoolInstruments(meter);
  instrumentsByMeter.set(meter, made);
  return made;
}

function claimName(pool: ObservablePool): string {
  const claim = observed.get(pool);
  if (claim !== undefined) {
    claim.observations++;
    return claim.poolName;
  }
  const taken = new Set(Array.from(observed.values(), ({ poolName }) => poolName));
  let poolName = pool.name;
  for (let number = 2; taken.has(poolName); number++) poolName = `${pool.name}#${number}`;
  observed.set(pool, { poolName, observations: 1 });
  return poolName;
}

function giveUpName(pool: ObservablePool): void {
  const claim = observed.get(pool);
  if (claim === undefined) return;
  claim.observations--;
  if (claim.observations === 0) observed.delete(pool);
}
