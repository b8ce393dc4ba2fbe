/**
 * The engine of a pool, and those before it. When something changes that an engine can't change, another takes over: the old
 * one takes no more callers, and its connections go as they come back. All together never have more connections than one
 * may have.
 */
import type { ConnectionPool } from '../../core/connection-pool.js';
import type { Waiter } from '../../core/waiters.js';
import type { Backend } from './backend.js';

export type Engine = ConnectionPool<Backend>;

const noDeadline = Number.POSITIVE_INFINITY;

export class EngineLine {
  readonly #make: () => Engine;
  #present: Engine;
  /** Those whose connections are yet to go. */
  readonly #former = new Set<Engine>();
  #limit: number;
  #isPaused = false;

  /** `make`: one that has opened nothing yet, and is not started. */
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

  #begin(): Engine {
    const engine = this.#make();
    const limit = this.#left();
    if (engine.limit !== limit) engine.resize(limit);
    if (this.#isPaused) engine.pause();
    engine.start();
    return engine;
  }

  /** Another engine takes over. */
  renew(): void {
    const former = this.#present;
    this.#former.add(former);
    this.#present = this.#begin();
    former.drain(noDeadline, () => {
      this.#former.delete(former);
      this.share();
    });
  }

  setLimit(limit: number): void {
    this.#limit = limit;
    this.share();
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

  /** Closes idle connections for the sake of another pool; how many. */
  evictIdle(count: number): number {
    const { pending, live, idle } = this.#present.counts();
    const evicted = Math.min(count, idle);
    if (evicted === 0) return 0;
    this.#present.resize(Math.max(0, pending + live - evicted));
    this.#present.resize(this.#left());
    return evicted;
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

  /** Takes someone out of whichever queue it is in; false when it has had its answer. */
  withdraw(waiter: Waiter<Backend>): boolean {
    return this.all.some((engine) => engine.withdraw(waiter));
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

function totalOf(engine: Engine): number {
  const { pending, live, closing } = engine.counts();
  return pending + live + closing;
}
