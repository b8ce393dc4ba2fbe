/**
 * The reservoir: connections kept ready behind a source that is slow or limited. It is a mode of the engine, not a
 * second pool: connections ready, in use, being opened and being closed stay within one limit.
 *
 * A connection inside the guard window of its end is not handed out any more. The checkout, the release or the scanner
 * discards it when it finds it, each with its own reason.
 */
import type { Duration } from '../kernel/duration.js';
import type { OptionReader } from '../kernel/option-reader.js';
import type { LifetimePolicy } from './lifetime.js';
import type { DiscardReason } from './reasons.js';

/** Durations are milliseconds or texts such as `'45s'`. */
export interface ReservoirOptions {
  /** Connections to keep ready, as far as `max` allows beside those in use. Default: `max`. */
  readonly targetReady?: number | undefined;
  /** Below this the pool is not ready, and goes first where several share a rate limiter. Default: `targetReady`. */
  readonly lowWatermark?: number | undefined;
  /** Mean lifetime of a connection. Default `11m`. */
  readonly baseLifetime?: Duration | undefined;
  /** Lives are spread evenly over this width around `baseLifetime`. Default `2m`. */
  readonly lifetimeJitter?: Duration | undefined;
  /** A connection with less than this left is not handed out. Longer than the longest transaction. Default `45s`. */
  readonly guardWindow?: Duration | undefined;
  /** Time for which `ready()` waits for `lowWatermark` before it warns and goes on. Default `30s`. */
  readonly initialFillTimeout?: Duration | undefined;
  /** Timeout of a caller that finds no ready connection and sets none itself. Default `100ms`. */
  readonly emptyWait?: Duration | undefined;
}

/** The options, complete, in milliseconds. */
export interface ReservoirPolicy {
  readonly targetReady: number;
  readonly lowWatermark: number;
  readonly initialFillTimeout: number;
  readonly emptyWait: number;
}

/** Collects problems in the reader; does not throw. */
export function readReservoir(read: OptionReader, max: number): ReservoirPolicy & LifetimePolicy {
  const targetReady = read.integer('targetReady', max, { min: 1 });
  const lowWatermark = read.integer('lowWatermark', targetReady, { min: 0 });
  if (targetReady > max) read.problem('targetReady', `is ${targetReady}, more than max, which is ${max}`);
  if (lowWatermark > targetReady)
    read.problem('lowWatermark', `is ${lowWatermark}, more than targetReady, which is ${targetReady}`);
  const maxLifetime = read.duration('baseLifetime', 660_000, Infinity);
  if (maxLifetime === Infinity)
    read.problem('baseLifetime', 'must not be 0: a reservoir is for connections that end');
  const maxLifetimeJitter = read.duration('lifetimeJitter', 120_000, 0);
  const shortest = maxLifetime - maxLifetimeJitter / 2;
  if (shortest <= 0) read.problem('lifetimeJitter', `is ${maxLifetimeJitter} ms, twice baseLifetime or more`);
  const guardWindow = read.duration('guardWindow', 45_000, 0);
  if (guardWindow >= shortest && shortest > 0)
    read.problem('guardWindow', `is ${guardWindow} ms, as long as the shortest life, ${shortest} ms`);
  const initialFillTimeout = read.duration('initialFillTimeout', 30_000, Infinity);
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

/** The discard reason of a connection that is too old for use, by finder and age. */
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
