/** `headgate/engine`: the pool for any kind of connection. */
export { BadConnectionError, ForeignReleaseError } from './core/errors.js';
export type { PolicyOptions } from './core/pool-policy.js';
export type { Checkout } from './runtime/checkout.js';
export type { ConnectionFunctions } from './runtime/promise-dialer.js';
export { type AcquireOptions, PromisePool, type PromisePoolOptions } from './runtime/promise-pool.js';
export * from './shared-exports.js';
