/** A pool inside a program, as the page sees it: its numbers, its connections by state, and what can be done to it. */
import { DynamoLeases } from '../coordination/dynamodb/dynamo-leases.js';
import { TokenBucket } from '../core/token-bucket.js';
import { type WaitCause, waitCauseTexts } from '../core/wait-cause.js';
import type { ObservedPool } from '../observe/observed-pool.js';
import { onMessages } from '../observe/pool-messages.js';
import { TimeHistogram } from '../observe/time-histogram.js';
import { systemClock } from '../runtime/system.js';
import type { EventLog } from './event-log.js';
import { addLives, countLife, noLives } from './lives.js';
import type {
  BudgetRecord,
  FleetRecord,
  LivesRecord,
  Observation,
  PoolRecord,
  RateRecord,
  SubjectState,
} from './observation.js';
import type { Action, ActionName, Source } from './source.js';
import { timesOf } from './time-window.js';

/** Members of a `Pool`, `DsqlPool` or `PromisePool`. The page does not offer what a pool lacks. */
export interface ShownPool extends ObservedPool {
  pause?(): void;
  resume?(): void;
  resize?(max: number): void;
  /** Ages of the connections, and the time for which they may still be used; Infinity: no end. */
  lives?(): Iterable<{ readonly ageMs: number; readonly remainingMs: number }>;
}

type Stats = ReturnType<ObservedPool['stats']>;

/** Causes that neither the numbers nor the state of a pool show. */
const shortages: Readonly<Partial<Record<WaitCause, string>>> = {
  no_limit: waitCauseTexts.no_limit,
  breaker_open: waitCauseTexts.breaker_open,
  dial_failed: waitCauseTexts.dial_failed,
  lease: waitCauseTexts.lease,
  permit: waitCauseTexts.permit,
};

const states: Readonly<Record<Stats['state'], SubjectState>> = {
  open: 'active',
  paused: 'paused',
  draining: 'draining',
  closed: 'closed',
};

export class PoolSource implements Source {
  readonly kind = 'pool';
  readonly name: string;
  readonly actions: readonly ActionName[];
  readonly #pool: ShownPool;
  readonly #version: string;
  readonly #startedAt = Date.now();
  readonly #uses = new TimeHistogram();
  readonly #waits = new TimeHistogram();
  readonly #stop: () => void;
  #dialError: string | undefined;
  #highestLimit = 0;

  constructor(pool: ShownPool, events: EventLog, version: string) {
    this.#pool = pool;
    this.#version = version;
    this.name = pool.name;
    this.actions = [
      ...(pool.pause === undefined ? [] : (['pause', 'resume'] as const)),
      ...(pool.resize === undefined ? [] : (['set'] as const)),
    ];
    const note = (level: string, message: string, details = {}): void =>
      events.note(Date.now(), level, message, details);
    this.#stop = onMessages(pool, {
      'headgate:pool:acquired': ({ waitMs }) => {
        if (waitMs > 0) this.#waits.record(waitMs);
      },
      'headgate:pool:released': ({ useMs }) => this.#uses.record(useMs),
      'headgate:pool:opened': () => {
        this.#dialError = undefined;
      },
      'headgate:pool:dial-failed': ({ error }) => {
        this.#dialError = error.message;
        note('error', 'a connection could not be opened', { error: error.message });
      },
      'headgate:pool:timeout': ({ waitMs }) => {
        this.#waits.record(waitMs);
        note('warn', 'a caller timed out');
      },
      'headgate:pool:leak': ({ takenAt }) =>
        note('warn', 'a connection was not given back', { taken: takenAt.trim().split('\n', 1)[0] }),
    });
  }

  observe(): Observation {
    const stats = this.#pool.stats();
    const { totals, waiting, inUse, idle, pending, checking, closing, longestWaitMs } = stats;
    this.#highestLimit = Math.max(this.#highestLimit, stats.limit);
    return {
      at: Date.now(),
      startedAt: this.#startedAt,
      version: this.#version,
      state: states[stats.state],
      pausedDatabases: [],
      budgets: [this.#budget(stats)],
      callers: {
        ...{ active: inUse, waiting, idle: 0, loggingIn: 0, limit: Number.POSITIVE_INFINITY },
        longestWaitMs,
      },
      connections: { opening: pending, idle, active: inUse, checking, closing },
      counters: {
        queries: totals.acquired,
        transactions: 0,
        opened: totals.opened,
        openFailures: totals.dialsFailed,
        waitTimeouts: totals.timedOut,
        errors: counted({ 'pool timed_out': totals.timedOut, 'pool dial_failed': totals.dialsFailed }),
        discards: counted(totals.discarded),
        receivedBytes: 0,
        sentBytes: 0,
        queryTimes: timesOf(this.#uses),
        waitTimes: timesOf(this.#waits),
      },
      pools: [this.#poolRecord(stats)],
      poolCount: 1,
      pins: { count: 0, byReason: {}, longest: [] },
      reservoirs: reservoirsOf(this.name, stats),
      lives: this.#lives(),
      rates: this.#rates(),
      rebalances: [],
      fleet: this.#fleet(),
      workers: [],
      statements: undefined,
      running: [],
      dialError: this.#dialError,
    };
  }

  #budget(stats: Stats): BudgetRecord {
    const { limit, peak, inUse, idle, pending, checking, closing, waiting, longestWaitMs } = stats;
    const held = inUse + idle + pending + checking + closing;
    const part = (user: string, count: number) => ({
      ...{ user, held: count, demand: count, share: count },
      ...{ weight: 1, recalled: 0, waitedMs: 0 },
    });
    const checkedOut = { ...part('in use', inUse), demand: inUse + waiting, waitedMs: longestWaitMs };
    return {
      name: this.name,
      parts: 'states',
      capacity: limit,
      held,
      // A limit that has shrunk is reached by closing: only what is above the highest there was is too many.
      exceeded: Math.max(0, peak - this.#highestLimit),
      peak,
      waiting,
      recalls: 0,
      users: [checkedOut, part('ready', idle), part('opening', pending), part('closing', closing + checking)],
    };
  }

  #poolRecord(stats: Stats): PoolRecord {
    const { inUse, waiting, live, pending, closing, limit, longestWaitMs, waitCause, totals, state } = stats;
    return {
      ...{ user: this.name, database: '', active: inUse, waiting, idle: 0 },
      ...{ connections: live + pending + closing, limit, longestWaitMs },
      isPaused: state === 'paused',
      shortage: waitCause && shortages[waitCause],
      queries: totals.acquired,
      errors: totals.timedOut + totals.dialsFailed,
      queryTimes: timesOf(this.#uses),
      waitTimes: timesOf(this.#waits),
    };
  }

  #lives(): LivesRecord | undefined {
    const lives = noLives();
    for (const { ageMs, remainingMs } of this.#pool.lives?.() ?? []) countLife(lives, ageMs, remainingMs);
    return addLives([lives]);
  }

  #rates(): RateRecord[] {
    const { rateLimiter, name } = this.#pool;
    return rateLimiter instanceof TokenBucket
      ? [{ server: name, ...rateLimiter.stats(systemClock.now()) }]
      : [];
  }

  #fleet(): FleetRecord[] {
    const { leases, name } = this.#pool;
    if (!(leases instanceof DynamoLeases)) return [];
    const { state, limit, active, owned, held, waiting, instances } = leases.stats();
    return [{ server: name, instance: '', state, limit, active, owned, held, waiting, instances }];
  }

  list(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  act({ name, key, value = '' }: Action): Promise<string> {
    return new Promise((resolve) => {
      const { state } = this.#pool.stats();
      if (state === 'draining' || state === 'closed') throw new Error(`Pool ${this.name} is ${state}.`);
      if (name === 'pause') this.#pool.pause?.();
      else if (name === 'resume') this.#pool.resume?.();
      else if (key === 'max') this.#pool.resize?.(Number(value.trim() === '' ? Number.NaN : value));
      else throw new Error(`A pool has no setting ${JSON.stringify(key)}; it has max.`);
      resolve(name === 'set' ? `max = ${value}` : name);
    });
  }

  close(): void {
    this.#stop();
  }
}

function counted(counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

function reservoirsOf(pool: string, { reservoir, idle, totals }: Stats): Observation['reservoirs'] {
  if (reservoir === undefined) return [];
  const { targetReady, lowWatermark, isFilled } = reservoir;
  return [{ pool, ready: idle, target: targetReady, lowWatermark, isFilled, foundEmpty: totals.foundEmpty }];
}
