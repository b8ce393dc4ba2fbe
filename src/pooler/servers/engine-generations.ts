/**
 * The present engine of a pool, and its former ones. A change that an engine can't make replaces it: the former engine takes no
 * more callers and closes its connections when they are released. All engines together never exceed the limit of one.
 */
import type { ConnectionPool } from '../../core/connection-pool.js';
import type { PoolCounts } from '../../core/pool-counts.js';
import type { AdjustablePolicy } from '../../core/pool-policy.js';
import type { PoolTotals } from '../../core/pool-stats.js';
import type { Waiter } from '../../core/waiters.js';
import { systemClock } from '../../runtime/system.js';
import type { Backend } from './backend.js';

export type Engine = ConnectionPool<Backend>;

/** Connections by state; together all that are open or opening. */
export type EngineCounts = Pick<PoolCounts, 'pending' | 'idle' | 'inUse' | 'checking' | 'closing'>;

const noConnections: EngineCounts = Object.freeze({ pending: 0, idle: 0, inUse: 0, checking: 0, closing: 0 });
const noDeadline = Number.POSITIVE_INFINITY;

export class EngineGenerations {
  readonly #make: () => Engine;
  #present: Engine;
  /** Former engines with connections that are not closed yet. */
  readonly #former = new Set<Engine>();
  /** Former engines whose idle connections are still to be closed. */
  readonly #undrained = new Map<Engine, NodeJS.Timeout>();
  /** Totals of engines that have closed all connections. */
  #past: PoolTotals | undefined;
  #limit: number;
  #kept = 0;
  #isPaused = false;

  /** `make` returns an engine that has opened nothing yet and is not started. */
  constructor(limit: number, make: () => Engine) {
    this.#limit = limit;
    this.#make = make;
    this.#present = this.#begin();
  }

  get present(): Engine {
    return this.#present;
  }

  get all(): readonly Engine[] {
    return [this.#present, ...this.#former];
  }

  /** No connection is open, of the present engine and of former ones. */
  get isUnconnected(): boolean {
    return this.#former.size === 0 && this.#present.live === 0;
  }

  /** No connection is open, opening or closing. */
  get isEmpty(): boolean {
    return this.#present.total === 0 && (this.#former.size === 0 || this.leaving === 0);
  }

  get limit(): number {
    return this.#limit;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Connections of former engines that are still open. */
  get leaving(): number {
    let count = 0;
    for (const former of this.#former) count += totalOf(former);
    return count;
  }

  /** Counts of all engines. A former engine hands out nothing any more, and closes idle connections. */
  counts(): EngineCounts {
    if (this.isEmpty) return noConnections;
    const sum = { pending: 0, idle: 0, inUse: 0, checking: 0, closing: 0 };
    for (const engine of this.all) {
      const { pending, idle, inUse, checking, closing } = engine.counts();
      sum.pending += pending;
      sum.idle += idle;
      sum.inUse += inUse;
      sum.checking += checking;
      sum.closing += closing;
    }
    return sum;
  }

  /** Totals of all engines that there ever were. */
  totals(): PoolTotals {
    let sum = this.#past;
    if (this.#former.size === 0 && sum === undefined) return this.#present.totals();
    for (const engine of this.all) sum = sumOf(sum, engine.totals());
    return sum as PoolTotals;
  }

  #begin(): Engine {
    const engine = this.#make();
    const limit = this.#left();
    if (engine.limit !== limit) engine.resize(limit);
    engine.keepAtMost(this.#kept);
    if (this.#isPaused) engine.pause();
    engine.start();
    return engine;
  }

  /**
   * Starts another engine and moves the waiters over to it. The former engine closes its idle connections after `closeAfterMs`,
   * or before that when somebody waits.
   */
  renew(closeAfterMs = 0): void {
    const former = this.#present;
    this.#former.add(former);
    const waiters = former.withdrawAll();
    if (closeAfterMs === 0) this.#retire(former);
    else {
      // A former engine opens nothing more: the next one counts on that.
      former.pause();
      this.#undrained.set(former, setTimeout(() => this.#retire(former), closeAfterMs).unref());
    }
    this.#present = this.#begin();
    const now = systemClock.now();
    for (const waiter of waiters) this.enqueue(waiter, waiter.heapKey - now);
  }

  #retire(former: Engine): void {
    clearTimeout(this.#undrained.get(former));
    this.#undrained.delete(former);
    // Before the limit is 0: idle connections close because the engine drains, and not because there are too many.
    former.drain(noDeadline, () => {
      this.#former.delete(former);
      this.#past = sumOf(this.#past, former.totals());
      if (this.#present !== former) this.share();
    });
    // The former engine opens nothing more: the next engine counts on that.
    former.resize(0);
  }

  #retireAll(): void {
    for (const former of [...this.#undrained.keys()]) this.#retire(former);
  }

  setLimit(limit: number): void {
    this.#limit = limit;
    this.share();
  }

  /** Keeps this many connections open however long they are idle, and opens them again; none until this is called. */
  keep(count: number): void {
    if (count === this.#kept) return;
    this.#kept = count;
    this.#present.keepAtMost(count);
  }

  /** Applies to the present engine only: former ones have nothing left to do by a policy. */
  adjust(policy: AdjustablePolicy): void {
    this.#present.adjust(policy);
  }

  /** Gives the present engine what the former ones have released. */
  share(): void {
    const limit = this.#left();
    if (limit !== this.#present.limit) this.#present.resize(limit);
  }

  /** The limit, less the connections of former engines. */
  #left(): number {
    return Math.max(0, this.#limit - this.leaving);
  }

  /** Hands out nothing until `resume()`. */
  pause(): void {
    this.#isPaused = true;
    this.#present.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#present.resume();
  }

  enqueue(waiter: Waiter<Backend>, timeoutMs: number): void {
    this.#retireAll();
    this.#present.enqueue(waiter, timeoutMs);
  }

  /** Fails all waiters: there will be no connection for them. */
  refuse(error: Error): void {
    for (const waiter of this.#present.withdrawAll()) waiter.failed(error);
  }

  /** Removes a waiter from the queue; false when it was already answered. */
  withdraw(waiter: Waiter<Backend>): boolean {
    return this.#present.withdraw(waiter);
  }

  /** Takes no more callers, and closes each connection when it is released, all of them at the deadline. */
  drain(deadline: number, then: () => void): void {
    this.#retireAll();
    const engines = this.all;
    let left = engines.length;
    for (const engine of engines) {
      engine.drain(deadline, () => {
        if (--left === 0) then();
      });
    }
  }
}

function sumOf(one: PoolTotals | undefined, other: PoolTotals): PoolTotals {
  return one === undefined ? other : (added(one, other) as PoolTotals);
}

/** Adds up numbers, also those in nested objects. */
function added(one: object, other: object): object {
  const more = new Map<string, unknown>(Object.entries(other));
  return Object.fromEntries(
    Object.entries(one).map(([key, value]) => {
      const second = more.get(key);
      return [key, typeof value === 'number' ? value + (second as number) : added(value, second as object)];
    }),
  );
}

function totalOf(engine: Engine): number {
  const { pending, live, closing } = engine.counts();
  return pending + live + closing;
}
