/**
 * The engine of a pool, and those before it. When something changes that an engine can't change, another takes over: the old
 * one takes no more callers, and its connections go as they come back. All together never have more connections than one
 * may have.
 */
import type { ConnectionPool } from '../../core/connection-pool.js';
import type { AdjustablePolicy } from '../../core/pool-policy.js';
import type { PoolCounts, PoolTotals } from '../../core/pool-stats.js';
import type { Waiter } from '../../core/waiters.js';
import { systemClock } from '../../runtime/system.js';
import type { Backend } from './backend.js';

export type Engine = ConnectionPool<Backend>;

/** Connections by what they do: together all that there are. */
export type EngineCounts = Pick<PoolCounts, 'pending' | 'idle' | 'lent' | 'checking' | 'closing'>;

const noDeadline = Number.POSITIVE_INFINITY;

export class EngineGenerations {
  readonly #make: () => Engine;
  #present: Engine;
  /** Those whose connections are yet to go. */
  readonly #former = new Set<Engine>();
  /** Of those that are no more. */
  #past: PoolTotals | undefined;
  #limit: number;
  #kept = 0;
  #isPaused = false;

  /** `make`: one that has opened nothing yet, and is not started. */
  constructor(limit: number, make: () => Engine) {
    this.#limit = limit;
    this.#make = make;
    this.#past = undefined;
    this.#present = this.#begin();
  }

  get present(): Engine {
    return this.#present;
  }

  get all(): readonly Engine[] {
    return [this.#present, ...this.#former];
  }

  get limit(): number {
    return this.#limit;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Connections that are to go, and are still there. */
  get leaving(): number {
    let count = 0;
    for (const former of this.#former) count += totalOf(former);
    return count;
  }

  /** Of all engines. One that is to go lends nothing any more, and closes what is idle. */
  counts(): EngineCounts {
    const sum = { pending: 0, idle: 0, lent: 0, checking: 0, closing: 0 };
    for (const engine of this.all) {
      const counts = engine.counts();
      for (const key of Object.keys(sum) as (keyof EngineCounts)[]) sum[key] += counts[key];
    }
    return sum;
  }

  /** Of all engines that there were. */
  totals(): PoolTotals {
    let sum = this.#past;
    for (const engine of this.all) sum = sumOf(sum, engine.stats().totals);
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

  /** Another engine takes over, and those who wait go over to it. */
  renew(): void {
    const former = this.#present;
    this.#former.add(former);
    // It opens nothing more, whoever waits: the next one counts on that.
    former.resize(0);
    this.#present = this.#begin();
    const now = systemClock.now();
    for (const waiter of former.withdrawAll()) this.enqueue(waiter, waiter.heapKey - now);
    former.drain(noDeadline, () => {
      this.#former.delete(former);
      this.#past = sumOf(this.#past, former.stats().totals);
      this.share();
    });
  }

  setLimit(limit: number): void {
    this.#limit = limit;
    this.share();
  }

  /** So many connections stay however long they are idle, and are opened again; none until it is said. */
  keep(count: number): void {
    if (count === this.#kept) return;
    this.#kept = count;
    this.#present.keepAtMost(count);
  }

  /** Those that are to go have nothing left to do by it. */
  adjust(policy: AdjustablePolicy): void {
    this.#present.adjust(policy);
  }

  /** The present engine may have what those before it have given up. */
  share(): void {
    const limit = this.#left();
    if (limit !== this.#present.limit) this.#present.resize(limit);
  }

  /** The limit, less what others hold. */
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
    this.#present.enqueue(waiter, timeoutMs);
  }

  /** All who wait are told that there will be no connection for them. */
  refuse(error: Error): void {
    for (const waiter of this.#present.withdrawAll()) waiter.failed(error);
  }

  /** Takes someone out of the queue; false when it has had its answer. */
  withdraw(waiter: Waiter<Backend>): boolean {
    return this.#present.withdraw(waiter);
  }

  /** Takes no more callers, and closes all connections as they come back, at the deadline in any case. */
  drain(deadline: number, then: () => void): void {
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

/** Numbers are added up, and so are those inside. */
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
