/**
 * Passes what pools publish about times on to those who record it, each pool's to its own.
 *
 * One subscription serves all observed pools: with one for each, every message would be looked at by all of them.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { PoolChannels } from '../runtime/channels.js';

/** Takes times in milliseconds. */
export interface TimeRecorder {
  created(dialMs: number): void;
  waited(waitMs: number): void;
  used(useMs: number): void;
}

const recorders = new Map<object, Set<TimeRecorder>>();

const handlers: { [Name in keyof PoolChannels]?: (message: PoolChannels[Name]) => void } = {
  'headgate:pool:opened': ({ pool, dialMs }) => each(pool, (recorder) => recorder.created(dialMs)),
  'headgate:pool:acquired': ({ pool, waitMs }) => each(pool, (recorder) => recorder.waited(waitMs)),
  'headgate:pool:released': ({ pool, useMs }) => each(pool, (recorder) => recorder.used(useMs)),
};

function each(pool: object, tell: (recorder: TimeRecorder) => void): void {
  recorders.get(pool)?.forEach(tell);
}

/** Records the times of one pool until the function that it returns is called. */
export function recordTimes(pool: object, recorder: TimeRecorder): () => void {
  if (recorders.size === 0) forEachHandler(subscribe);
  const ofPool = recorders.get(pool) ?? new Set();
  recorders.set(pool, ofPool.add(recorder));
  return () => {
    if (!ofPool.delete(recorder) || ofPool.size > 0) return;
    recorders.delete(pool);
    if (recorders.size === 0) forEachHandler(unsubscribe);
  };
}

function forEachHandler(change: typeof subscribe | typeof unsubscribe): void {
  for (const [name, handler] of Object.entries(handlers)) change(name, handler as (message: unknown) => void);
}
