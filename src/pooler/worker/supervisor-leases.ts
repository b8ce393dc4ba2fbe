/**
 * The slots of one pool of a worker, which the supervisor keeps. What was asked for stands there until it is granted. What is granted and
 * not taken by the pool goes back at once.
 */
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import { tell } from '../../coordination/tell.js';
import { hangsAfterMs } from '../../core/dials.js';
import type { LeaseAnswer, LeaseHolder } from '../../core/leases.js';
import type { BudgetedPool, BudgetLeases } from '../budgets/server-budgets.js';
import type { PoolReport } from '../messages/messages.js';

/** The engine of a pool: the present one, or one before it whose connections are yet to go. */
type Engine = FairHolder & { readonly limit: number };

/** A peak that has changed by such a part is not worth a message of its own, and is told after so long. */
const littleChange = 0.125;
const littleAfterMs = 250;
/** What is used must not be taken for idle: there, a connection may seem to be so for no more than this too long. */
const mostTooIdleMs = 75;

export interface LeaseLink {
  readonly clock: { now(): number };
  asked(report: PoolReport): void;
  released(pool: number, count: number): void;
  keeping(pool: number, size: number): void;
  left(pool: number): void;
}

export class SupervisorLeases implements BudgetLeases {
  readonly pool: BudgetedPool;
  /** Other pools of the worker have other numbers. */
  readonly number: number;
  /** As the supervisor has said last. */
  share = Number.POSITIVE_INFINITY;
  /** Of the connections to keep, those that are for this worker, as the supervisor has said last; and what it was told. */
  #partToKeep = 0;
  #sizeToKeep = 0;
  /** Which budget has nothing for it, as the supervisor has said last. */
  #shortage: string | undefined;
  readonly #link: LeaseLink;
  readonly #heldBy = new Map<Engine, number>();
  /** Engines for which something has been asked and not been granted, in order. */
  readonly #asking = new Set<Engine>();
  /** Of these, those that were asked whether they still want it, and do. */
  readonly #insisting = new Set<Engine>();
  /** Slots that were ever granted. */
  #seen = 0;
  /** The engine that asked last. */
  #present: Engine | undefined;
  /** What was told last, and when; and the peak of what has not been worth telling since. */
  #told: PoolReport | undefined;
  #toldAt = 0;
  #untoldPeak = 0;
  #hasLeft = false;

  constructor(pool: BudgetedPool, number: number, link: LeaseLink) {
    this.pool = pool;
    this.number = number;
    this.#link = link;
    this.#shortage = undefined;
    this.#present = undefined;
    this.#told = undefined;
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Whether there is anything to tell of it. */
  get isActive(): boolean {
    return this.#heldBy.size > 0 || this.#asking.size > 0;
  }

  /** Whether what there is to tell may soon be another thing. */
  get isInUse(): boolean {
    if (this.#asking.size > 0) return true;
    for (const { demand } of this.#heldBy.keys()) if (demand > 0) return true;
    return false;
  }

  // ---- what the pool asks -----------------------------------------------------------------------------------------

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    if (count !== 1) return new RangeError(`A pool asks for one slot after the other, and not for ${count}.`);
    const engine = holder as Engine;
    this.#present = engine;
    if (!this.#asking.has(engine)) {
      this.#asking.add(engine);
      this.#link.asked(this.report());
    }
    return 'asking';
  }

  release(count: number, holder: LeaseHolder): void {
    const engine = holder as Engine;
    const given = Math.min(count, this.#heldOf(engine));
    this.#setHeld(engine, this.#heldOf(engine) - given);
    if (given > 0) this.#link.released(this.number, given);
  }

  /** Who else keeps some is the supervisor's to know. */
  partToKeep(size: number): number {
    if (size !== this.#sizeToKeep) {
      this.#sizeToKeep = size;
      this.#link.keeping(this.number, size);
    }
    return Math.min(size, this.#partToKeep);
  }

  /** The pool is no more. */
  leave(): void {
    this.#hasLeft = true;
    this.#link.left(this.number);
  }

  // ---- what the supervisor says -----------------------------------------------------------------------------------

  granted(): void {
    const [engine] = this.#asking;
    this.#seen++;
    let taken = 0;
    if (engine !== undefined) {
      this.#withdraw(engine);
      this.#setHeld(engine, this.#heldOf(engine) + 1);
      tell(() => {
        taken = engine.leasesGranted(1);
      });
      if (taken === 0) this.#setHeld(engine, this.#heldOf(engine) - 1);
    }
    if (taken === 0) this.#link.released(this.number, 1);
  }

  /** The supervisor has said what fairness gives, and what is waited for. */
  shareChanged(share: number, shortage: string | undefined): void {
    this.share = share;
    this.#shortage = shortage;
  }

  get shortage(): string | undefined {
    return this.#asking.size > 0 ? this.#shortage : undefined;
  }

  toKeep(count: number): void {
    this.#partToKeep = count;
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
  recalled(count: number, hanging: number): void {
    let left = count;
    let hangingLeft = hanging;
    const inOrder = [...this.#heldBy].sort(([one], [other]) => this.#rank(one) - this.#rank(other));
    for (const [engine, held] of inOrder) {
      const recalled = Math.min(left, held);
      left -= recalled;
      const ofHanging = Math.min(hangingLeft, recalled);
      hangingLeft -= ofHanging;
      tell(() => engine.leasesRecalled(recalled, ofHanging));
    }
  }

  #rank(engine: Engine): number {
    return engine === this.#present ? 1 : 0;
  }

  // ---- what is told of it -----------------------------------------------------------------------------------------

  report(): PoolReport {
    return this.#tell(this.#look());
  }

  /** What it is worth to tell; to be asked again and again. */
  news(): PoolReport | undefined {
    this.#withdrawUnneeded();
    const seen = this.#look();
    const sinceMs = this.#link.clock.now() - this.#toldAt;
    if (this.#told === undefined || isNews(seen, this.#told, sinceMs)) return this.#tell(seen);
    this.#untoldPeak = seen.peak;
    return undefined;
  }

  #look(): PoolReport {
    const engines = new Set([...this.#heldBy.keys(), ...this.#asking]);
    let [demand, peak] = [0, 0];
    let idleSince: number | undefined;
    let dialingSince: number | undefined;
    let openedAt: number | undefined;
    for (const engine of engines) {
      demand += engine.demand;
      peak += engine.takeDemandPeak();
      idleSince = least(idleSince, engine.longestIdleSince);
      dialingSince = least(dialingSince, engine.dialingSince);
      if (engine.openedAt !== undefined) openedAt = Math.max(engine.openedAt, openedAt ?? engine.openedAt);
    }
    const now = this.#link.clock.now();
    const ageOf = (since: number | undefined): number | undefined =>
      since === undefined ? undefined : Math.max(0, now - since);
    return {
      pool: this.number,
      demand,
      peak: Math.max(peak, this.#untoldPeak),
      idleForMs: ageOf(idleSince),
      dialingForMs: ageOf(dialingSince),
      openedForMs: ageOf(openedAt),
      hasClients: this.pool.hasClients?.() !== false,
      limit: this.#limit,
      wanted: this.#asking.size,
      seen: this.#seen,
    };
  }

  #tell(report: PoolReport): PoolReport {
    this.#told = report;
    this.#toldAt = this.#link.clock.now();
    this.#untoldPeak = 0;
    return report;
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

function least(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

/**
 * Whoever asks for more tells its demand with that. Otherwise the supervisor goes by the peaks, and by who has something idle:
 * how busy a pool is at the moment is another thing each time, and no reason to wake it.
 */
function isNews(now: PoolReport, told: PoolReport, sinceMs: number): boolean {
  if (now.limit !== told.limit || now.wanted !== told.wanted) return true;
  if ((now.idleForMs === undefined) !== (told.idleForMs === undefined)) return true;
  if ((now.demand === 0) !== (told.demand === 0) || now.hasClients !== told.hasClients) return true;
  // A dial that was told of is taken to be under way ever since.
  if (isTooOld(now.dialingForMs, told.dialingForMs, sinceMs)) return true;
  if (Math.abs(now.peak - told.peak) > Math.max(now.peak, told.peak) * littleChange) return true;
  // What was told is taken to have been idle ever since.
  if (told.idleForMs !== undefined && now.idleForMs !== undefined)
    if (told.idleForMs + sinceMs - now.idleForMs >= mostTooIdleMs) return true;
  return (now.demand !== told.demand || now.peak !== told.peak) && sinceMs >= littleAfterMs;
}

/** One that has begun meanwhile may be told of late, since it is young; one that is over may not, nor that there is none. */
function isTooOld(now: number | undefined, told: number | undefined, sinceMs: number): boolean {
  if (now === undefined || told === undefined)
    return now !== told && (now ?? hangsAfterMs) >= hangsAfterMs / 2;
  return told + sinceMs - now >= hangsAfterMs / 2;
}
