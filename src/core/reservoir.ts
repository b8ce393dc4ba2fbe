/**
 * The reservoir: connections kept ready behind a source that is slow or limited. It is a way of running the engine, not
 * a second pool: what is ready, lent, being opened and being closed stays within one limit.
 *
 * A connection inside the guard window of its end is not lent any more. Whoever finds it discards it and goes on: the
 * checkout, the return, or the scanner, each with its own word.
 */
import type { Duration } from '../kernel/duration.js';
import type { OptionReader } from '../kernel/option-reader.js';
import type { LifetimePolicy } from './lifetime.js';
import type { DiscardReason } from './reasons.js';

/** Durations are milliseconds or texts such as `'45s'`. */
export interface ReservoirOptions {
  /** Connections to keep ready, as far as `max` leaves room beside those that are lent. Default: `max`. */
  readonly targetReady?: number | undefined;
  /** With fewer than this the pool is not ready, and goes first where several share a rate limiter. Default: `targetReady`. */
  readonly lowWatermark?: number | undefined;
  /** How long a connection lives, around which lives are spread. Default `11m`. */
  readonly baseLifetime?: Duration | undefined;
  /** Lives are spread evenly over this width around `baseLifetime`. Default `2m`. */
  readonly lifetimeJitter?: Duration | undefined;
  /** A connection with less than this left is not lent any more. Longer than the longest transaction. Default `45s`. */
  readonly guardWindow?: Duration | undefined;
  /** How long `ready()` waits for `lowWatermark` before it warns and goes on. Default `30s`. */
  readonly initialFillTimeout?: Duration | undefined;
  /** How long a caller waits who finds nothing ready and says nothing else. Default `100ms`. */
  readonly emptyWait?: Duration | undefined;
}

/** The options, complete, in milliseconds. */
export interface ReservoirPolicy {
  readonly targetReady: number;
  readonly lowWatermark: number;
  readonly initialFillTimeout: number;
  readonly emptyWait: number;
}

/** Problems stay with the reader. */
export function readReservoir(read: OptionReader, max: number): ReservoirPolicy & LifetimePolicy {
  const targetReady = read.integer('targetReady', max, { min: 1 });
  const lowWatermark = read.integer('lowWatermark', targetReady, { min: 0 });
  if (targetReady > max) read.problem('targetReady', `is ${targetReady}, more than max, which is ${max}`);
  if (lowWatermark > targetReady)
    read.problem('lowWatermark', `is ${lowWatermark}, more than targetReady, which is ${targetReady}`);
  const maxLifetime = read.duration('baseLifetime', 660_000, Number.POSITIVE_INFINITY);
  if (maxLifetime === Number.POSITIVE_INFINITY)
    read.problem('baseLifetime', 'must not be 0: a reservoir is for connections that end');
  const maxLifetimeJitter = read.duration('lifetimeJitter', 120_000, 0);
  const shortest = maxLifetime - maxLifetimeJitter / 2;
  if (shortest <= 0) read.problem('lifetimeJitter', `is ${maxLifetimeJitter} ms, twice baseLifetime or more`);
  const guardWindow = read.duration('guardWindow', 45_000, 0);
  if (guardWindow >= shortest && shortest > 0)
    read.problem('guardWindow', `is ${guardWindow} ms, as long as the shortest life, ${shortest} ms`);
  const initialFillTimeout = read.duration('initialFillTimeout', 30_000, Number.POSITIVE_INFINITY);
  const emptyWait = read.duration('emptyWait', 100, 0);
  read.refuseUnknown();
  return {
    targetReady,
    lowWatermark,
    maxLifetime,
    maxLifetimeJitter,
    guardWindow,
    initialFillTimeout,
    emptyWait,
  };
}

/** The word for a connection that is too old to be lent, by who found it and how old it is. */
export function tooOld(
  isReservoir: boolean,
  { expiresAt }: { readonly expiresAt: number },
  now: number,
  foundBy: 'checkout' | 'return' | 'scan',
): DiscardReason {
  if (!isReservoir) return 'max_lifetime';
  if (now >= expiresAt) return `expired_on_${foundBy}`;
  return foundBy === 'scan' ? 'expiring_soon_on_scan' : 'insufficient_remaining_lifetime';
}
