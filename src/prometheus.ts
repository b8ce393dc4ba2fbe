/** `headgate/prometheus`: pools as Prometheus metrics. */
export { PeerMissingError } from './observe/errors.js';
export type {
  MetricReading,
  MetricRegistry,
  MetricValue,
  RegisteredMetric,
} from './observe/metric-registry.js';
export type { ObservedPool } from './observe/observed-pool.js';
export { type ExposeOptions, exposePool, type PoolExposure } from './observe/prometheus.js';
