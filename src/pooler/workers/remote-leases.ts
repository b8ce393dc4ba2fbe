/**
 * The slots of one pool of a worker, which the supervisor keeps. What was asked for stands there until it is granted. What
 * is granted is in hand while its pool is told, and goes back at once if that does not take it.
 */
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import { tell } from '../../coordination/tell.js';
import type { LeaseAnswer, LeaseHolder } from '../../core/leases.js';
import type { BudgetedPool, BudgetLeases } from '../tenants/server-budgets.js';
import type { PoolReport } from './messages.js';

/** The engine of a pool: the present one, or one before it whose connections are yet to go. */
type Engine = FairHolder & { readonly limit: number };

export interface LeaseLine {
  readonly clock: { now(): number };
  asked(report: PoolReport): void;
  released(pool: number, count: number): void;
  left(pool: number): void;
}

export class RemoteLeases implements BudgetLeases {
  readonly pool: BudgetedPool;
  /** Other pools of the worker have other numbers. */
  readonly number: number;
  /** As the supervisor has said last. */
  share = Number.POSITIVE_INFINITY;
  /** Only the supervisor knows. */
  readonly shortage = undefined;
  readonly #line: LeaseLine;
  readonly #heldBy = new Map<Engine, number>();
  /** Engines for which something has been asked and not been granted, in order. */
  readonly #asking = new Set<Engine>();
  /** Of these, those that were asked whether they still want it, and do. */
  readonly #insisting = new Set<Engine>();
  /** Slots that were ever granted. */
  #seen = 0;
  /** Told that there is one, and about to take it. */
  #inHandOf: Engine | undefined;
  /** The engine that asked last. */
  #present: Engine | undefined;
  #last: PoolReport | undefined;
  #hasLeft = false;

  constructor(pool: BudgetedPool, number: number, line: LeaseLine) {
    this.pool = pool;
    this.number = number;
    this.#line = line;
    this.#inHandOf = undefined;
    this.#present = undefined;
    this.#last = undefined;
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Whether there is anything to tell of it. */
  get isActive(): boolean {
    return this.#heldBy.size > 0 || this.#asking.size > 0;
  }

  // ---- what the pool asks -----------------------------------------------------------------------------------------

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    if (count !== 1) return new RangeError(`A pool asks for one slot after the other, and not for ${count}.`);
    const engine = holder as Engine;
    this.#present = engine;
    if (this.#inHandOf === engine) {
      this.#inHandOf = undefined;
      this.#heldBy.set(engine, this.#heldOf(engine) + 1);
      return 'granted';
    }
    if (!this.#asking.has(engine)) {
      this.#asking.add(engine);
      this.#line.asked(this.report());
    }
    return 'asking';
  }

  release(count: number, holder: LeaseHolder): void {
    const engine = holder as Engine;
    const given = Math.min(count, this.#heldOf(engine));
    this.#setHeld(engine, this.#heldOf(engine) - given);
    if (given > 0) this.#line.released(this.number, given);
  }

  /** The pool is no more. */
  leave(): void {
    this.#hasLeft = true;
    this.#line.left(this.number);
  }

  // ---- what the supervisor says -----------------------------------------------------------------------------------

  granted(): void {
    const [engine] = this.#asking;
    this.#seen++;
    if (engine !== undefined) {
      this.#withdraw(engine);
      this.#inHandOf = engine;
      tell(() => engine.leasesAvailable());
    }
    const wasTaken = engine !== undefined && this.#inHandOf === undefined;
    this.#inHandOf = undefined;
    if (!wasTaken) this.#line.released(this.number, 1);
  }

  #withdraw(engine: Engine): void {
    this.#asking.delete(engine);
    this.#insisting.delete(engine);
  }

  lost(count: number): void {
    let left = count;
    for (const [engine, held] of [...this.#heldBy]) {
      const lost = Math.min(left, held);
      if (lost === 0) continue;
      left -= lost;
      this.#setHeld(engine, held - lost);
      tell(() => engine.leasesLost(lost));
    }
  }

  /** Engines whose connections go anyway come first. */
  recalled(count: number): void {
    let left = count;
    const inOrder = [...this.#heldBy].sort(([one], [other]) => this.#rank(one) - this.#rank(other));
    for (const [engine, held] of inOrder) {
      const recalled = Math.min(left, held);
      left -= recalled;
      tell(() => engine.leasesRecalled(recalled));
    }
  }

  #rank(engine: Engine): number {
    return engine === this.#present ? 1 : 0;
  }

  // ---- what is told of it -----------------------------------------------------------------------------------------

  report(): PoolReport {
    const engines = new Set([...this.#heldBy.keys(), ...this.#asking]);
    let [demand, peak] = [0, 0];
    let idleSince: number | undefined;
    for (const engine of engines) {
      demand += engine.demand;
      peak += engine.takeDemandPeak();
      const since = engine.longestIdleSince;
      if (since !== undefined) idleSince = Math.min(since, idleSince ?? since);
    }
    const idleForMs = idleSince === undefined ? undefined : Math.max(0, this.#line.clock.now() - idleSince);
    const wanted = this.#asking.size;
    this.#last = { pool: this.number, demand, peak, idleForMs, limit: this.#limit, wanted, seen: this.#seen };
    return this.#last;
  }

  /** Undefined where it would be the same as before. */
  news(): PoolReport | undefined {
    const before = this.#last;
    this.#withdrawUnneeded();
    const now = this.report();
    const isSame =
      before?.demand === now.demand &&
      before.peak === now.peak &&
      before.limit === now.limit &&
      before.wanted === now.wanted &&
      (before.idleForMs === undefined) === (now.idleForMs === undefined);
    return isSame ? undefined : now;
  }

  /** A connection may have come back meanwhile. Who is told that it may ask again does so only if it still has to. */
  #withdrawUnneeded(): void {
    for (const engine of [...this.#asking]) {
      if (engine.demand > this.#heldOf(engine) || this.#insisting.has(engine)) continue;
      this.#withdraw(engine);
      tell(() => engine.leasesAvailable());
      if (this.#asking.has(engine)) this.#insisting.add(engine);
    }
  }

  /** Engines share it: the present one has what those before it have left. */
  get #limit(): number {
    let limit = this.#present?.limit ?? 0;
    for (const [engine, held] of this.#heldBy) if (engine !== this.#present) limit += held;
    return limit;
  }

  #heldOf(engine: Engine): number {
    return this.#heldBy.get(engine) ?? 0;
  }

  #setHeld(engine: Engine, held: number): void {
    if (held > 0) this.#heldBy.set(engine, held);
    else this.#heldBy.delete(engine);
  }
}
