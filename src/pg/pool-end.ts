/** `pool.end()`: once, with a promise or a callback, and with a deadline for callers that still use a client. */
import type { ConnectionPool } from '../core/connection-pool.js';
import type { Duration } from '../kernel/duration.js';
import { inPresentContext } from '../runtime/async-context.js';
import { soon } from '../runtime/soon.js';
import { systemClock } from '../runtime/system.js';
import { readTimeout } from '../runtime/waiting.js';
import { asPromiseOf, type PromisingPool } from './own-promise.js';
import type { PgConnection } from './pg-connection.js';

interface EndingPool extends PromisingPool {
  ending: boolean;
  ended: boolean;
}

export type EndArgument = (() => void) | { readonly deadline?: Duration };

export function endPool(
  pool: EndingPool,
  engine: ConnectionPool<PgConnection>,
  first: EndArgument | undefined,
): unknown {
  const callback = typeof first === 'function' ? (first as (error?: Error) => void) : undefined;
  if (pool.ending) {
    const error = new Error('Called end on pool more than once');
    return callback ? callback(error) : pool.Promise.reject(error);
  }
  const deadline = typeof first === 'object' && first !== null ? first.deadline : undefined;
  let deadlineMs: number;
  try {
    deadlineMs = readTimeout(deadline, Infinity, 'deadline');
  } catch (error) {
    return pool.Promise.reject(error);
  }
  pool.ending = true;
  const drained = (then: () => void): void => {
    engine.drain(systemClock.now() + deadlineMs, () => {
      pool.ended = true;
      then();
    });
  };
  if (callback === undefined) return asPromiseOf(pool, new Promise<void>(drained));
  drained(inPresentContext(() => soon(callback)));
  return undefined;
}
