/** The log lines of one pool: the text, level and fields of each event. */
import type { FillProgress } from '../core/pool-listener.js';
import type { PoolStats } from '../core/pool-stats.js';
import type { DiscardReason, RefillCause } from '../core/reasons.js';
import { formatDuration } from '../kernel/duration.js';
import { errorFields } from './error-text.js';
import type { ObservedPool } from './observed-pool.js';
import { type LogLevel, logLevels, type PoolLogger } from './pool-logger.js';
import type { MessageHandlers } from './pool-messages.js';
import { Repetition } from './repetition.js';

const failureLines: Readonly<Record<RefillCause, readonly [LogLevel, string]>> = {
  lease_acquire: ['error', 'lease acquire failed'],
  // Passes by itself, as the pool slows down.
  rate_limit: ['warn', 'failed to create connection'],
  token_provider: ['error', 'token provider failed'],
  connection_open: ['error', 'connection open failed'],
};

/** Ends that a program has asked for, and the end of every lifetime. */
const ordinaryEnds: readonly DiscardReason[] = [
  'idle_timeout',
  'max_lifetime',
  'max_uses',
  'expiring_soon_on_scan',
  'over_limit',
  'drained',
];

/** After this long without a caller that finds the reservoir empty, the next one is logged again. */
const quietMs = 10_000;

export class PoolLines {
  readonly #pool: ObservedPool;
  readonly #logger: PoolLogger;
  readonly #least: number;
  readonly #hasReservoir: boolean;
  readonly #failures = new Repetition<RefillCause>();
  readonly #droughts = new Repetition<'empty'>(quietMs);
  readonly #timeouts = new Repetition<'timeout'>(quietMs);
  #hasToldOfWarmup = false;

  constructor(pool: ObservedPool, logger: PoolLogger, level: LogLevel) {
    this.#pool = pool;
    this.#logger = logger;
    this.#least = logLevels.indexOf(level);
    this.#hasReservoir = pool.stats().reservoir !== undefined;
  }

  readonly handlers: MessageHandlers = {
    'headgate:pool:opened': () => this.#opened(),
    'headgate:pool:refill-failed': ({ cause, error }) => this.#failed(cause, error),
    'headgate:pool:discarded': ({ reason, remainingMs }) => this.#discarded(reason, remainingMs),
    'headgate:pool:empty': () => this.#foundEmpty(),
    'headgate:pool:fill': (progress) =>
      progress.kind === 'reservoir' ? this.#filled(progress) : this.#warmedUp(progress),
    'headgate:pool:top-up': ({ count, size, target }) =>
      this.#line('debug', 'Pool keeper: opening connections', () => ({
        count,
        current_size: size,
        target_pool_size: target,
      })),
    'headgate:pool:timeout': ({ waitMs }) => this.#timedOut(waitMs),
    'headgate:pool:stuck': ({ waits, waitedMs, cause, text }) =>
      this.#line('warn', `${this.#who}: callers wait for long`, () => ({
        waits,
        waited: durationText(waitedMs),
        cause,
        details: text,
      })),
    'headgate:pool:leak': ({ heldMs, takenAt }) =>
      this.#line('warn', `${this.#who}: connection was not given back`, () => ({
        held: durationText(heldMs),
        taken_at: takenAt,
      })),
  };

  /** Most pools have begun before a listener can be added, so the initial state is read. */
  begin(): void {
    const { reservoir, warmup, keeper } = this.#pool.stats();
    if (reservoir !== undefined) {
      this.#line('info', 'Reservoir refiller started', () => ({
        target_ready: reservoir.targetReady,
        low_watermark: reservoir.lowWatermark,
        base_lifetime: durationText(reservoir.baseLifetimeMs),
      }));
    }
    if (warmup?.isOver === false) this.#warmupBegan(warmup.target);
    if (keeper !== undefined) {
      this.#line('info', 'DSQL pool keeper started', () => ({
        target_pool_size: keeper.target,
        tick_interval: durationText(keeper.intervalMs),
        max_conns_per_tick: keeper.perTick,
      }));
    }
  }

  #opened(): void {
    this.#failures.end();
    const fields = ({ idle, minIdle, live, limit }: PoolStats): object =>
      // Reported before the connection is among the idle ones.
      this.#hasReservoir ? { reservoir_size: idle + 1, target: minIdle } : { current_size: live, limit };
    this.#line('debug', `${this.#opener}: created connection`, fields);
  }

  #failed(cause: RefillCause, error: Error): void {
    const attempt = this.#failures.add(cause);
    if (attempt === undefined) return;
    const [level, text] = failureLines[cause];
    this.#line(level, `${this.#opener}: ${text}`, () => ({ ...errorFields(error), attempt }));
  }

  #discarded(reason: DiscardReason, remainingMs: number): void {
    const level = ordinaryEnds.includes(reason) ? 'debug' : 'warn';
    this.#line(level, `${this.#who}: discarding connection`, ({ reservoir }) => ({
      reason,
      remaining: durationText(Math.max(0, remainingMs)),
      ...(reservoir && { guard_window: durationText(reservoir.guardWindowMs) }),
    }));
  }

  #foundEmpty(): void {
    const times = this.#droughts.add('empty');
    if (times === undefined) return;
    this.#line('warn', 'Reservoir: nothing was ready', ({ minIdle, pending, inUse }) => ({
      target: minIdle,
      opening: pending,
      in_use: inUse,
      times,
    }));
  }

  #timedOut(waitMs: number): void {
    const times = this.#timeouts.add('timeout');
    if (times === undefined) return;
    this.#line(
      'warn',
      `${this.#who}: acquire timed out`,
      ({ state, limit, inUse, idle, pending, waiting }) => ({
        waited: durationText(waitMs),
        ...{ state, limit, in_use: inUse, idle, opening: pending, waiting, times },
      }),
    );
  }

  #filled({ phase, size, target, elapsedMs }: FillProgress): void {
    const elapsed = durationText(elapsedMs);
    if (phase === 'complete')
      this.#line('info', 'Reservoir initial fill complete', () => ({ size, target, elapsed }));
    else if (phase !== 'started')
      this.#line('warn', 'Reservoir initial fill timeout', () => ({ current: size, target, elapsed }));
  }

  #warmupBegan(target: number): void {
    if (this.#hasToldOfWarmup) return;
    this.#hasToldOfWarmup = true;
    this.#line('info', 'Starting DSQL pool warmup', ({ live }) => ({
      current_connections: live,
      target_connections: target,
      connections_to_create: Math.max(0, target - live),
    }));
  }

  #warmedUp({ phase, size, target, failed }: FillProgress): void {
    if (phase === 'started') {
      this.#warmupBegan(target);
      return;
    }
    const isComplete = phase === 'complete';
    const text = `DSQL pool warmup ${isComplete ? 'complete' : 'incomplete'}`;
    this.#line(isComplete ? 'info' : 'warn', text, ({ totals }) => ({
      connections_created: totals.opened,
      connections_failed: failed,
      final_open_connections: size,
    }));
  }

  get #who(): string {
    return this.#hasReservoir ? 'Reservoir' : 'Pool';
  }

  get #opener(): string {
    return this.#hasReservoir ? 'Reservoir refiller' : 'Pool';
  }

  #line(level: LogLevel, message: string, fields: (stats: PoolStats) => object): void {
    if (logLevels.indexOf(level) < this.#least) return;
    this.#logger[level]({ pool: this.#pool.name, ...fields(this.#pool.stats()) }, message);
  }
}

/** Whole milliseconds are enough for a reader. */
function durationText(milliseconds: number): string {
  return formatDuration(Math.round(milliseconds));
}
