/** `headgate/prometheus`: pools as Prometheus metrics. */
export { PeerMissingError } from './observe/errors.js';
export type { ObservedLeases } from './observe/lease-metrics.js';
export type {
  MetricReading,
  MetricRegistry,
  MetricValue,
  RegisteredMetric,
} from './observe/metric-registry.js';
export type { ObservedPool } from './observe/observed-pool.js';
export {
  type ExposeOptions,
  exposeLeases,
  exposePool,
  exposeRateLimiter,
  type PoolExposure,
} from './observe/prometheus.js';
export type { ObservedRateLimiter } from './observe/rate-metrics.js';
