/** Shared by the promise forms of every pool: timeouts as users write them, readiness and draining as promises. */
import type { ConnectionPool } from '../core/connection-pool.js';
import { PoolClosedError, ReadyTimeoutError } from '../core/errors.js';
import { type Duration, parseDuration } from '../kernel/duration.js';
import { PoolOptionsError } from '../kernel/errors.js';
import { systemClock } from './system.js';
import { warn } from './warn.js';

/** Milliseconds; 0 is "for ever". */
export function readTimeout(value: Duration | undefined, fallback: number, name = 'timeout'): number {
  if (value === undefined) return fallback;
  if (value === Infinity) return value;
  const milliseconds = parseDuration(value);
  if (milliseconds === undefined) {
    const message = `must be a duration such as 500 (ms), '500ms' or '45s', not ${String(value).slice(0, 40)}`;
    throw new PoolOptionsError([{ path: name, message }]);
  }
  return milliseconds === 0 ? Infinity : milliseconds;
}

/** The wait of one caller. */
export interface Wait {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Validates the options of a caller's wait. */
export function readWait(
  options: { readonly timeout?: Duration | undefined; readonly signal?: AbortSignal | undefined },
  usualTimeoutMs: number,
): Wait {
  const { signal } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new PoolOptionsError([{ path: 'signal', message: 'must be an AbortSignal' }]);
  }
  return { timeoutMs: readTimeout(options.timeout, usualTimeoutMs), signal };
}

/** Changes the limit of a pool; 0 is legal, and means that everyone waits. */
export function resizePool<C>(engine: ConnectionPool<C>, max: number): void {
  if (!Number.isSafeInteger(max) || max < 0) {
    const message = `must be a whole number of at least 0, not ${String(max).slice(0, 40)}`;
    throw new PoolOptionsError([{ path: 'max', message }]);
  }
  engine.resize(max);
}

/** Without a `count`: as many as the pool keeps ready by itself, or as many as a reservoir needs to be ready. */
export async function whenReady<C>(
  engine: ConnectionPool<C>,
  count: number | undefined,
  timeout: Duration | undefined,
): Promise<void> {
  const { reservoir, minIdle } = engine.policy;
  const target = count ?? reservoir?.lowWatermark ?? minIdle;
  const timeoutMs = readTimeout(timeout, reservoir?.initialFillTimeout ?? 30_000);
  if (!Number.isSafeInteger(target) || target < 0 || target > engine.limit) {
    const message = `must be a whole number from 0 to the limit, which is ${engine.limit}, not ${target}`;
    throw new PoolOptionsError([{ path: 'count', message }]);
  }
  return new Promise((resolve, reject) => {
    engine.whenReady({
      target,
      deadline: systemClock.now() + timeoutMs,
      reached: resolve,
      missed: () => {
        if (engine.state === 'draining' || engine.state === 'closed') {
          reject(new PoolClosedError());
          return;
        }
        const error = new ReadyTimeoutError(
          target,
          timeoutMs,
          engine.counts(),
          engine.lastDialError,
          engine.whyWaiting(),
        );
        if (count !== undefined || reservoir === undefined) {
          reject(error);
          return;
        }
        // Best effort: the existing connections can serve, and the rest is on its way.
        const cause = error.cause === undefined ? '' : ` The last error: ${(error.cause as Error).message}`;
        warn(
          'HG_INITIAL_FILL_TIMEOUT',
          `The reservoir of ${engine.name} is not full yet: ${error.message}.${cause}`,
        );
        resolve();
      },
    });
  });
}

export async function drainPool<C>(engine: ConnectionPool<C>, deadline: Duration | undefined): Promise<void> {
  const deadlineMs = readTimeout(deadline, Infinity, 'deadline');
  return new Promise((resolve) => {
    engine.drain(systemClock.now() + deadlineMs, resolve);
  });
}
