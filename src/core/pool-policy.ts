/** The engine's options: their meaning, defaults and validation. */
import type { Duration } from '../kernel/duration.js';
import type { OptionReader } from '../kernel/option-reader.js';
import type { BreakerPolicy } from './breaker.js';
import { type KeeperOptions, type KeeperPolicy, readKeeper } from './keeper.js';
import type { Leases } from './leases.js';
import type { LifetimePolicy } from './lifetime.js';
import type { RateLimiter } from './rate-limiter.js';
import { type ReservoirOptions, type ReservoirPolicy, readReservoir } from './reservoir.js';
import { readWarmup, type WarmupOptions, type WarmupPolicy } from './warmup.js';

/** Durations are milliseconds or texts such as `'45s'`; 0 switches a feature off where that is possible. */
export interface PolicyOptions {
  /** The limit: connections being opened, open, and being closed, all together. Default 10. */
  readonly max?: number | undefined;
  /** Spare connections to keep ready, as far as `max` allows. Default 0. */
  readonly minIdle?: number | undefined;
  /** Idle connections are not closed for idleness while there are no more than this in all. Default 0. */
  readonly idleFloor?: number | undefined;
  /** Timeout of a caller, time in the queue included. Default `30s`; 0: for ever. */
  readonly acquireTimeout?: Duration | undefined;
  /** Timeout of one dial. Default `10s`; 0: for ever. */
  readonly dialTimeout?: Duration | undefined;
  /** Dials at the same time. Default 8. */
  readonly dialLimit?: number | undefined;
  /** Timeout of an orderly close, after which the connection is destroyed. Default `5s`. */
  readonly closeTimeout?: Duration | undefined;
  /** A connection idle for longer is closed. Default `10m`; 0: never. */
  readonly idleTimeout?: Duration | undefined;
  /** A connection that has lived longer is closed once it is idle. Default `30m`; 0: never. */
  readonly maxLifetime?: Duration | undefined;
  /** Lives are spread evenly over this width around `maxLifetime`. Default: a tenth of `maxLifetime`. */
  readonly maxLifetimeJitter?: Duration | undefined;
  /** Time before its end at which a spare is replaced, the new one first. Default: a hundredth of `maxLifetime`. */
  readonly guardWindow?: Duration | undefined;
  /** A connection used this many times is closed. Default: no limit. */
  readonly maxUses?: number | undefined;
  /** A connection idle for longer is checked before use. Default: off (0). */
  readonly checkAfterIdle?: Duration | undefined;
  /** Idle connections are checked this often. Default: off (0). */
  readonly keepalive?: Duration | undefined;
  /** Timeout of a check. Default `5s`. */
  readonly checkTimeout?: Duration | undefined;
  /** `lifo` lends the one used last, `fifo` the one idle for longest. Default `lifo`. */
  readonly idleOrder?: 'lifo' | 'fifo' | undefined;
  /**
   * Meaning of a failed dial for callers that wait. `retry`: dial again after a backoff, and give up when it keeps failing.
   * `reject`: each failure is the answer to one caller. Default `retry`.
   */
  readonly onDialFailure?: 'retry' | 'reject' | undefined;
  /** Ceiling of the delay after the first failed dial; it doubles with each further one. Default `100ms`. */
  readonly backoffBase?: Duration | undefined;
  /** The delay never grows past this. Default `10s`. */
  readonly backoffCap?: Duration | undefined;
  /** Failed dials in a row after which only single probes are made. Default 5. */
  readonly breakerThreshold?: number | undefined;
  /** A connection in use for longer is reported as a leak. Default: off (0). */
  readonly leakThreshold?: Duration | undefined;
  /** Asked before each dial. */
  readonly rateLimiter?: RateLimiter | undefined;
  /** A budget above `max`, shared with other pools: asked before each dial, and told when the connection is closed. */
  readonly leases?: Leases | undefined;
  /**
   * Keeps connections ready behind a source that is slow or limited. Its own settings replace `minIdle`, the lifetime
   * and the guard window. Default: off.
   */
  readonly reservoir?: boolean | ReservoirOptions | undefined;
  /** Opens connections up to a size at the start, without a reservoir. Default: off. */
  readonly warmup?: boolean | WarmupOptions | undefined;
  /** Keeps the pool at a size, without a reservoir. Default: off. */
  readonly keeper?: boolean | KeeperOptions | undefined;
  /** Connections that no caller waits for are opened after a random delay of up to this, so that processes started together do not dial
   * together. Default 0. */
  readonly startJitter?: Duration | undefined;
}

/** The options, complete, in milliseconds, with Infinity for "never", and frozen. */
export interface PoolPolicy extends LifetimePolicy, BreakerPolicy {
  readonly max: number;
  readonly minIdle: number;
  readonly idleFloor: number;
  readonly acquireTimeout: number;
  readonly dialTimeout: number;
  readonly dialLimit: number;
  readonly closeTimeout: number;
  readonly idleTimeout: number;
  readonly maxUses: number;
  readonly checkAfterIdle: number;
  readonly keepalive: number;
  readonly checkTimeout: number;
  readonly idleOrder: 'lifo' | 'fifo';
  readonly onDialFailure: 'retry' | 'reject';
  readonly leakThreshold: number;
  readonly rateLimiter: RateLimiter | undefined;
  readonly leases: Leases | undefined;
  readonly reservoir: ReservoirPolicy | undefined;
  readonly warmup: WarmupPolicy | undefined;
  readonly keeper: KeeperPolicy | undefined;
  readonly startJitter: number;
  /** An idle connection that will be closed for idleness keeps the program running until then. */
  readonly idleKeepsProcessAlive: boolean;
}

/** Numbers that can change while the pool is at work. */
export type AdjustablePolicy = Pick<
  PoolPolicy,
  | 'idleFloor'
  | 'dialLimit'
  | 'idleTimeout'
  | 'maxUses'
  | 'checkAfterIdle'
  | 'idleOrder'
  | 'base'
  | 'cap'
  | 'keeper'
>;

/** Copies only the numbers that can change from `numbers` into a policy that is in use. */
export function adjustPolicy(policy: PoolPolicy, numbers: AdjustablePolicy): void {
  const { idleFloor, dialLimit, idleTimeout, maxUses, checkAfterIdle, idleOrder, base, cap, keeper } =
    numbers;
  const adjusted = {
    idleFloor,
    dialLimit,
    idleTimeout,
    maxUses,
    checkAfterIdle,
    idleOrder,
    base,
    cap,
    keeper,
  };
  Object.assign(policy, adjusted);
}

const never = Infinity;

/** Reads the engine's options. Collects problems in the reader; the caller makes it throw. */
export function readPolicy(read: OptionReader, idleKeepsProcessAlive: boolean): PoolPolicy {
  const max = read.integer('max', 10, { min: 1 });
  const inReservoir = read.group('reservoir');
  const reservoir = inReservoir && readReservoir(inReservoir, max);
  if (reservoir !== undefined) refuseBeside(read);
  const minIdle = reservoir?.targetReady ?? readMinIdle(read, max);
  const life = reservoir ?? readLife(read);
  const warmup = read.group('warmup');
  const keeper = read.group('keeper');
  const base = read.duration('backoffBase', 100, 0);
  if (base < 1)
    read.problem('backoffBase', `is ${base} ms, but without a delay a failing dial is repeated in a loop`);
  const cap = read.duration('backoffCap', 10_000, 0);
  if (cap < base) read.problem('backoffCap', `is ${cap} ms, less than backoffBase, which is ${base} ms`);
  return Object.freeze({
    max,
    minIdle,
    idleFloor: read.integer('idleFloor', 0, { min: 0 }),
    acquireTimeout: read.duration('acquireTimeout', reservoir?.emptyWait ?? 30_000, never),
    dialTimeout: read.duration('dialTimeout', 10_000, never),
    dialLimit: read.integer('dialLimit', 8, { min: 1, orInfinity: true }),
    closeTimeout: read.duration('closeTimeout', 5_000, 0),
    idleTimeout: read.duration('idleTimeout', 600_000, never),
    maxLifetime: life.maxLifetime,
    maxLifetimeJitter: life.maxLifetimeJitter,
    guardWindow: life.guardWindow,
    maxUses: read.integer('maxUses', never, { min: 1, orInfinity: true }),
    checkAfterIdle: read.duration('checkAfterIdle', never, never),
    keepalive: read.duration('keepalive', never, never),
    checkTimeout: read.duration('checkTimeout', 5_000, 5_000),
    // First in, first out, so that all connections are used.
    idleOrder: read.oneOf('idleOrder', reservoir === undefined ? 'lifo' : 'fifo', ['lifo', 'fifo']),
    onDialFailure: read.oneOf('onDialFailure', 'retry', ['retry', 'reject']),
    base,
    cap,
    threshold: read.integer('breakerThreshold', 5, { min: 1 }),
    leakThreshold: read.duration('leakThreshold', never, never),
    rateLimiter: read.object<RateLimiter>('rateLimiter', ['take']),
    leases: read.object<Leases>('leases', ['acquire', 'release']),
    reservoir,
    warmup: warmup && readWarmup(warmup, max),
    keeper: keeper && readKeeper(keeper, max),
    startJitter: read.duration('startJitter', 0, 0),
    idleKeepsProcessAlive,
  });
}

/** The reservoir has its own words for these. */
function refuseBeside(read: OptionReader): void {
  const insteads = {
    minIdle: 'reservoir.targetReady',
    maxLifetime: 'reservoir.baseLifetime',
    maxLifetimeJitter: 'reservoir.lifetimeJitter',
    guardWindow: 'reservoir.guardWindow',
    warmup: 'reservoir',
    keeper: 'reservoir',
  };
  for (const [name, instead] of Object.entries(insteads)) {
    if (read.has(name))
      read.problem(name, `can't be given together with a reservoir: ${instead} stands in for it`);
  }
}

function readMinIdle(read: OptionReader, max: number): number {
  const minIdle = read.integer('minIdle', 0, { min: 0 });
  if (minIdle > max) read.problem('minIdle', `is ${minIdle}, more than max, which is ${max}`);
  return minIdle;
}

function readLife(read: OptionReader): LifetimePolicy {
  const maxLifetime = read.duration('maxLifetime', 1_800_000, never);
  const finiteLifetime = Number.isFinite(maxLifetime) ? maxLifetime : 0;
  const maxLifetimeJitter = read.duration('maxLifetimeJitter', finiteLifetime / 10, 0);
  if (maxLifetimeJitter > 2 * finiteLifetime && Number.isFinite(maxLifetime)) {
    read.problem(
      'maxLifetimeJitter',
      `is ${maxLifetimeJitter} ms, more than twice maxLifetime (${maxLifetime} ms)`,
    );
  }
  const guardWindow = read.duration('guardWindow', finiteLifetime / 100, 0);
  if (guardWindow >= maxLifetime - maxLifetimeJitter / 2 && guardWindow > 0) {
    read.problem('guardWindow', `is ${guardWindow} ms, as long as the shortest life a connection may get`);
  }
  return { maxLifetime, maxLifetimeJitter, guardWindow };
}
