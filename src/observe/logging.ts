/** Logs the events of a pool, with the texts and fields that runbooks for Aurora DSQL look for. */
import { OptionReader } from '../kernel/option-reader.js';
import type { ObservedPool } from './observed-pool.js';
import { PoolLines } from './pool-lines.js';
import { type LogLevel, logLevels, type PoolLogger, usualLogger } from './pool-logger.js';
import { onMessages } from './pool-messages.js';

/** The logger, and which lines it gets. */
export interface LogOptions {
  /** Default: pino, with its defaults. */
  readonly logger?: PoolLogger | undefined;
  /** Lines below this level are left out. Default: `info` without a logger; one that is given gets all, and chooses itself. */
  readonly level?: LogLevel | undefined;
}

/** A pool that is logged. */
export interface PoolLog {
  /** Ends it. Until then the pool cannot be collected as garbage. */
  stop(): void;
}

/**
 * Logs a pool from now on. Failures that repeat are thinned out: the 1st, 2nd, 4th, 8th ... in a row of the same cause.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 * import { logPool } from 'headgate/logging';
 *
 * const pool = new Pool({ name: 'orders' });
 * const log = logPool(pool); // with pino
 * // ...
 * await pool.end();
 * log.stop();
 * ```
 */
export function logPool(pool: ObservedPool, options: LogOptions = {}): PoolLog {
  const read = new OptionReader(options);
  const given = read.object<PoolLogger>('logger', logLevels);
  const level = read.oneOf('level', given === undefined ? 'info' : 'debug', logLevels);
  read.refuseUnknown();
  read.throwIfAnyProblem();
  const lines = new PoolLines(pool, given ?? usualLogger(), level);
  const stop = onMessages(pool, lines.handlers);
  lines.begin();
  return { stop };
}
