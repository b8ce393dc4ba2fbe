/** `headgate`: the drop-in for pg.Pool. */
export { SessionChangedError, TransactionLeftOpenError } from './pg/errors.js';
export { Pool } from './pg/pool.js';
export type { ConnectionLife, ConnectOptions, PoolClass, PoolClient } from './pg/pool-interface.js';
export type { PoolOptions } from './pg/pool-options.js';
export * from './shared-exports.js';
