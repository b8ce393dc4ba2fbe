/** The destination of log lines: pino, or any logger that takes an object and a message as pino does. */
import { loadPeer } from './optional-peer.js';

/** From the least to the most important. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const;

export type LogLevel = (typeof logLevels)[number];

/** pino's way of logging. Loggers that have it as well: bunyan, `fastify.log`, `consoleLogger()`. */
export interface PoolLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

type MakePino = (options: { readonly name: string; readonly level: LogLevel }) => PoolLogger;

let pinoLogger: PoolLogger | undefined;

/** pino with its defaults, shared by all that give no logger of their own. */
export function usualLogger(): PoolLogger {
  pinoLogger ??= loadPeer<MakePino>(
    'pino',
    'give a logger, e.g. consoleLogger()',
  )({
    name: 'headgate',
    level: 'debug',
  });
  return pinoLogger;
}

/**
 * Logs to the console, a line of text each: the time, the level, the message, and the fields as `name=value`.
 *
 * @example
 * ```ts
 * import { Pool } from 'headgate';
 * import { consoleLogger, logPool } from 'headgate/logging';
 *
 * const pool = new Pool({ name: 'orders' });
 * const log = logPool(pool, { logger: consoleLogger(), level: 'warn' });
 * // ...
 * await pool.end();
 * log.stop();
 * ```
 */
export function consoleLogger(
  target: { readonly [Level in LogLevel]: (line: string) => void } = console,
): PoolLogger {
  const write =
    (level: LogLevel) =>
    (fields: object, message: string): void =>
      target[level](
        `${new Date().toISOString()} ${level.toUpperCase().padEnd(5)} ${lineOf(fields, message)}`,
      );
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

function lineOf(fields: object, message: string): string {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${shown(value)}`);
  return pairs.length === 0 ? message : `${message}  ${pairs.join(' ')}`;
}

/** In quotes where its end would not be clear, so that no value can look like another field or line. */
function shown(value: unknown): string {
  const text = String(value);
  return /^[\w.:/#@+-]+$/.test(text) ? text : JSON.stringify(text);
}
