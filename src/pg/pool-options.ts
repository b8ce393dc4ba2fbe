/** The options of the drop-in: those of pg-pool with their meaning, and the engine's beside them. */
import type { PoolConfig } from 'pg';
import type { KeeperOptions } from '../core/keeper.js';
import type { Leases } from '../core/leases.js';
import { type PoolPolicy, readPolicy } from '../core/pool-policy.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import type { ReservoirOptions } from '../core/reservoir.js';
import type { WarmupOptions } from '../core/warmup.js';
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';
import { usualWarnAfter } from '../runtime/stuck-warning.js';
import { engineOptionsOf, numeric, userNames } from './engine-options.js';
import { type OnOpenTransaction, openTransactionChoices } from './open-transaction.js';
import { poolNameOf } from './pool-name.js';
import { warnOfUnknownOptions } from './unknown-options.js';

/** All options of `pg.Pool`, and Headgate's additions. Milliseconds may also be written as `'45s'`. */
export interface PoolOptions extends Omit<PoolConfig, 'pipeline'> {
  /** Names the pool in metrics and messages. Default: the host, port and database that it connects to. */
  readonly name?: string | undefined;
  /** Spares to keep ready; unlike `min`, they are opened ahead of need and again when lost. Default 0. */
  readonly minIdle?: number | undefined;
  /** Dials at the same time. Default 8. */
  readonly dialLimit?: number | undefined;
  /** Timeout of one dial, hooks included. Default: `connectionTimeoutMillis`, or 60 s where there is none. */
  readonly dialTimeoutMillis?: number | string | undefined;
  /** Timeout of a close, after which the socket is destroyed. Default 5 s. */
  readonly closeTimeoutMillis?: number | string | undefined;
  /** Spreads the lives of connections evenly over this width around `maxLifetimeSeconds`. Default 0. */
  readonly maxLifetimeJitterSeconds?: number | undefined;
  /** Time before the end of its life at which a spare is replaced, the new one first. Default: a hundredth of the life. */
  readonly guardWindowMillis?: number | string | undefined;
  /** A client idle for longer is asked `SELECT 1` before it is handed out. Default: off. */
  readonly checkAfterIdleMillis?: number | string | undefined;
  /** Idle clients are asked `SELECT 1` this often. Default: off. */
  readonly keepaliveMillis?: number | string | undefined;
  /** Timeout of such a check. Default 5 s. */
  readonly checkTimeoutMillis?: number | string | undefined;
  /** `lifo` hands out the client used last, `fifo` the one idle for longest. Default `lifo`, as pg-pool does. */
  readonly idleOrder?: 'lifo' | 'fifo' | undefined;
  /**
   * Meaning of a failed dial. `reject`: it is the answer to the caller it was for, as in pg-pool. `retry`: dial again
   * after a backoff until the caller's timeout, and fail fast when dialing keeps failing. Default `reject`.
   */
  readonly onDialFailure?: 'reject' | 'retry' | undefined;
  /** Ceiling of the delay after the first failed dial; it doubles with each further one. Default 100 ms. */
  readonly backoffBaseMillis?: number | string | undefined;
  /** The delay never grows past this. Default 10 s. */
  readonly backoffCapMillis?: number | string | undefined;
  /** Failed dials in a row after which only single probes are made. Default 5. */
  readonly breakerThreshold?: number | undefined;
  /** A client checked out for longer is reported, with the place that took it. Default: off. */
  readonly leakThresholdMillis?: number | string | undefined;
  /**
   * When a caller, `ready()` or `end()` has waited for this long, a process warning (`HG_POOL_STUCK`) gives the cause
   * and the users of the connections: once, then summed. Default 5 s; 0: never.
   */
  readonly warnAfterMillis?: number | string | undefined;
  /**
   * A client that comes back inside an open transaction: `rollback` rolls it back before anyone else gets the client, `discard` closes
   * the client, `keep` hands it on as it is, as pg-pool does, and `warn` does so with a warning (`HG_OPEN_TRANSACTION`), unless `max`
   * is 1. Default `warn`; with `pipeline: { depth }`, `discard`.
   */
  readonly onOpenTransaction?: OnOpenTransaction | undefined;
  /** Asked before each dial, for every purpose. */
  readonly rateLimiter?: RateLimiter | undefined;
  /** A budget above `max`, shared with other pools: asked before each dial, and told when the connection is closed. */
  readonly leases?: Leases | undefined;
  /**
   * Keeps connections ready behind a server that accepts few at a time. Its settings replace `minIdle`, the lifetime and
   * the guard window; callers wait for `emptyWait` unless `connectionTimeoutMillis` is given. Default: off.
   */
  readonly reservoir?: boolean | ReservoirOptions | undefined;
  /** Opens connections up to a size at the start, without a reservoir. Default: off. */
  readonly warmup?: boolean | WarmupOptions | undefined;
  /** Keeps the pool at a size, without a reservoir. Default: off. */
  readonly keeper?: boolean | KeeperOptions | undefined;
  /** Connections that no caller waits for are opened after a random delay of up to this. Default 0. */
  readonly startJitter?: Duration | undefined;
  /**
   * `pool.query()` sends up to `depth` queries on one connection without waiting in between.
   * A boolean is the option of `pg.Client`. Default: off.
   */
  readonly pipeline?: boolean | { readonly depth?: number | undefined } | undefined;
}

export interface ResolvedPoolOptions {
  readonly policy: PoolPolicy;
  readonly name: string;
  /** 0: no pipelining by the pool. */
  readonly pipelineDepth: number;
  readonly onOpenTransaction: OnOpenTransaction;
  /** Milliseconds after which a wait is reported; Infinity: never. */
  readonly warnAfter: number;
}

const defaultPipelineDepth = 16;

/** Checks everything and throws all that is wrong; pg-pool's own tolerance (0 and null mean "default") is kept. */
export function resolvePoolOptions(options: Readonly<Record<string, unknown>>): ResolvedPoolOptions {
  const engineOptions = {
    ...engineOptionsOf(options),
    warnAfter: numeric(options['warnAfterMillis']) ?? undefined,
    onOpenTransaction: options['onOpenTransaction'] ?? undefined,
    name: options['name'] ?? undefined,
    log: options['log'] || undefined,
    verify: options['verify'] || undefined,
    onConnect: options['onConnect'] || undefined,
    Client: options['Client'] || undefined,
  };
  const read = new OptionReader(engineOptions, userNames);
  const policy = readPolicy(read, !options['allowExitOnIdle']);
  const name = read.string('name', poolNameOf(options));
  const warnAfter = read.duration('warnAfter', usualWarnAfter, Infinity);
  for (const hook of ['log', 'verify', 'onConnect', 'Client']) read.callback(hook, false);
  const pipelineDepth = readPipelineDepth(read, options['pipeline']);
  const usualChoice = pipelineDepth > 0 ? 'discard' : 'warn';
  const onOpenTransaction = read.oneOf('onOpenTransaction', usualChoice, openTransactionChoices);
  const isKept = onOpenTransaction === 'keep' || onOpenTransaction === 'warn';
  if (pipelineDepth > 0 && isKept) {
    const problem = `can't be '${onOpenTransaction}' with pipelining: others would join the transaction`;
    read.problem('onOpenTransaction', problem);
  }
  read.throwIfAnyProblem();
  warnOfUnknownOptions(options, options['Client'] !== undefined);
  return Object.freeze({ policy, name, pipelineDepth, warnAfter, onOpenTransaction });
}

function readPipelineDepth(read: OptionReader, pipeline: unknown): number {
  // `pipeline: true` is pg.Client's own option: its queries are pipelined by the caller that has the client checked out.
  if (typeof pipeline !== 'object' || pipeline === null) return 0;
  const depth = (pipeline as { depth?: unknown }).depth ?? defaultPipelineDepth;
  if (Number.isSafeInteger(depth) && (depth as number) >= 1 && (depth as number) <= 1_000)
    return depth as number;
  read.problem('pipeline.depth', `must be a whole number from 1 to 1000, not ${String(depth).slice(0, 40)}`);
  return 0;
}
