/** `headgate/engine`: the pool for any kind of connection. */
export type { BreakerState } from './core/breaker.js';
export {
  AcquireAbortedError,
  AcquireTimeoutError,
  BadConnectionError,
  CheckTimeoutError,
  ConnectFailedError,
  DialTimeoutError,
  DoubleReleaseError,
  ForeignReleaseError,
  PoolClosedError,
  ReadyTimeoutError,
} from './core/errors.js';
export type { PolicyOptions } from './core/pool-policy.js';
export type { PoolCounts, PoolState, PoolStats, PoolTotals } from './core/pool-stats.js';
export type { RateLimiter } from './core/rate-limiter.js';
export type { DiscardReason } from './core/reasons.js';
export { TokenBucket, type TokenBucketOptions } from './core/token-bucket.js';
export type { Duration } from './kernel/duration.js';
export { HeadgateError, InvariantError, type OptionProblem, PoolOptionsError } from './kernel/errors.js';
export type { ConnectionMessage, PoolChannels, PoolMessage } from './runtime/channels.js';
export type { Lease } from './runtime/lease.js';
export type { ConnectionFunctions } from './runtime/promise-dialer.js';
export { type AcquireOptions, PromisePool, type PromisePoolOptions } from './runtime/promise-pool.js';
