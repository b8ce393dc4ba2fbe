/** `headgate/logging`: pools as log lines. */
export { PeerMissingError } from './observe/errors.js';
export { type LogOptions, logPool, type PoolLog } from './observe/logging.js';
export type { ObservedPool } from './observe/observed-pool.js';
export { consoleLogger, type LogLevel, type PoolLogger } from './observe/pool-logger.js';
