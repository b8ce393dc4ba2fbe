/** `headgate`: the drop-in for pg.Pool. */
export type { BreakerState } from './core/breaker.js';
export {
  AcquireAbortedError,
  AcquireTimeoutError,
  CheckTimeoutError,
  ConnectFailedError,
  DialTimeoutError,
  DoubleReleaseError,
  PoolClosedError,
  ReadyTimeoutError,
} from './core/errors.js';
export type { PoolCounts, PoolState, PoolStats, PoolTotals } from './core/pool-stats.js';
export type { RateLimiter } from './core/rate-limiter.js';
export type { DiscardReason } from './core/reasons.js';
export { TokenBucket, type TokenBucketOptions } from './core/token-bucket.js';
export type { Duration } from './kernel/duration.js';
export { HeadgateError, InvariantError, type OptionProblem, PoolOptionsError } from './kernel/errors.js';
export { SessionChangedError, TransactionLeftOpenError } from './pg/errors.js';
export { Pool } from './pg/pool.js';
export type { ConnectOptions, PoolClass, PoolClient } from './pg/pool-interface.js';
export type { PoolOptions } from './pg/pool-options.js';
export type { ConnectionMessage, PoolChannels, PoolMessage } from './runtime/channels.js';
