/** Exports that `headgate` and `headgate/engine` share: errors, statistics, leases and rates. Not an entry point. */
export { LeaseCoordinatorError, LeaseLimitError } from './coordination/errors.js';
export type { HolderStats } from './coordination/lease-book.js';
export type { LeaseCall, LeasesFromOptions } from './coordination/lease-functions.js';
export {
  LocalLeases,
  type LocalLeasesOptions,
  type LocalLeasesStats,
  localLeases,
} from './coordination/local-leases.js';
export { leasesFrom, PromisedLeases, type PromisedLeasesStats } from './coordination/promised-leases.js';
export { tokenBucket } from './coordination/token-bucket.js';
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
  ReservoirEmptyError,
} from './core/errors.js';
export type { KeeperOptions } from './core/keeper.js';
export type { LeaseAnswer, LeaseHolder, Leases, LeaseWait } from './core/leases.js';
export { PermitWaitError } from './core/permit-waits.js';
export type { PoolCounts, PoolState } from './core/pool-counts.js';
export type { FillProgress } from './core/pool-listener.js';
export type { PoolStats, PoolTotals, ReservoirStats } from './core/pool-stats.js';
export type { RateLimiter } from './core/rate-limiter.js';
export type { DiscardReason, RefillCause } from './core/reasons.js';
export type { ReservoirOptions } from './core/reservoir.js';
export { TokenBucket, type TokenBucketOptions, type TokenBucketStats } from './core/token-bucket.js';
export type { WaitCause } from './core/wait-cause.js';
export type { WarmupOptions } from './core/warmup.js';
export type { Duration } from './kernel/duration.js';
export { HeadgateError, InvariantError, type OptionProblem, PoolOptionsError } from './kernel/errors.js';
export type { ConnectionMessage, PoolChannels, PoolMessage } from './runtime/channels.js';
