/**
 * Slots of one pool of a worker, which the supervisor keeps. Requests stay there until they are granted. A granted slot that
 * the pool does not take is given back at once.
 */
import type { FairHolder } from '../../coordination/fair/fair-holder.js';
import { tell } from '../../coordination/tell.js';
import { hangsAfterMs } from '../../core/dials.js';
import type { LeaseAnswer, LeaseHolder } from '../../core/leases.js';
import type { BudgetedPool, BudgetLeases } from '../budgets/server-budgets.js';
import type { PoolReport } from '../messages/messages.js';

/** An engine of a pool: the present one, or a former one with connections that are not closed yet. */
type Engine = FairHolder & { readonly limit: number };

/** A peak that changed by less than this fraction is not reported at once, but after this time. */
const littleChange = 0.125;
const littleAfterMs = 250;
/** A used connection must not count as idle: the supervisor may overestimate its idle time by at most this. */
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
  /** Unique among the pools of the worker. */
  readonly number: number;
  /** Latest share from the supervisor. */
  share = Number.POSITIVE_INFINITY;
  /** Number of connections to keep in this worker, from the supervisor, and the size that the supervisor was told. */
  #partToKeep = 0;
  #sizeToKeep = 0;
  /** Budget that has nothing for this pool, latest from the supervisor. */
  #shortage: string | undefined;
  readonly #link: LeaseLink;
  readonly #heldBy = new Map<Engine, number>();
  /** Engines whose request is not granted yet, in order. */
  readonly #asking = new Set<Engine>();
  /** Holders that were asked for a lease, and still need it. */
  readonly #insisting = new Set<Engine>();
  /** Number of slots ever granted. */
  #seen = 0;
  /** The engine that asked last. */
  #present: Engine | undefined;
  /** Latest report, its time, and the peak since then that was not worth a report. */
  #told: PoolReport | undefined;
  #toldAt = 0;
  #untoldPeak = 0;
  #hasLeft = false;

  constructor(pool: BudgetedPool, number: number, link: LeaseLink) {
    this.pool = pool;
    this.number = number;
    this.#link = link;
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** True if there is anything to report. */
  get isActive(): boolean {
    return this.#heldBy.size > 0 || this.#asking.size > 0;
  }

  /** True if the next report may differ. */
  get isInUse(): boolean {
    if (this.#asking.size > 0) return true;
    for (const { demand } of this.#heldBy.keys()) if (demand > 0) return true;
    return false;
  }

  // ---- called by the pool -----------------------------------------------------------------------------------------

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

  /** The supervisor knows the connections that other workers keep. */
  partToKeep(size: number): number {
    if (size !== this.#sizeToKeep) {
      this.#sizeToKeep = size;
      this.#link.keeping(this.number, size);
    }
    return Math.min(size, this.#partToKeep);
  }

  /** The pool is closed. */
  leave(): void {
    this.#hasLeft = true;
    this.#link.left(this.number);
  }

  // ---- messages from the supervisor -------------------------------------------------------------------------------

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

  /** The supervisor has sent the fair share and the shortage. */
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

  /** Engines whose connections are to be closed anyway come first. */
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

  // ---- reports to the supervisor ----------------------------------------------------------------------------------

  report(): PoolReport {
    return this.#tell(this.#look());
  }

  /** The next report, if it is worth sending; for periodic calls. */
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

  /**
   * Withdraws requests that are no longer needed, since a connection may have been released meanwhile. An engine told to ask
   * again does so only if it still must.
   */
  #withdrawUnneeded(): void {
    for (const engine of [...this.#asking]) {
      if (engine.demand > this.#heldOf(engine) || this.#insisting.has(engine)) continue;
      this.#withdraw(engine);
      tell(() => engine.leasesAvailable());
      if (this.#asking.has(engine)) this.#insisting.add(engine);
    }
  }

  /** Limit over all engines: the present one's own limit, plus what the former ones still hold. */
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
 * A request for more includes the demand. Otherwise the supervisor relies on peaks, and on who has idle connections: present
 * use changes constantly, and is no reason to wake it.
 */
function isNews(now: PoolReport, told: PoolReport, sinceMs: number): boolean {
  if (now.limit !== told.limit || now.wanted !== told.wanted) return true;
  if ((now.idleForMs === undefined) !== (told.idleForMs === undefined)) return true;
  if ((now.demand === 0) !== (told.demand === 0) || now.hasClients !== told.hasClients) return true;
  // A reported dial counts as under way since then.
  if (isTooOld(now.dialingForMs, told.dialingForMs, sinceMs)) return true;
  if (Math.abs(now.peak - told.peak) > Math.max(now.peak, told.peak) * littleChange) return true;
  // A reported idle connection counts as idle since then.
  if (told.idleForMs !== undefined && now.idleForMs !== undefined)
    if (told.idleForMs + sinceMs - now.idleForMs >= mostTooIdleMs) return true;
  return (now.demand !== told.demand || now.peak !== told.peak) && sinceMs >= littleAfterMs;
}

/** A new dial may be reported late, since it is young. The end of one may not, even if there is no other. */
function isTooOld(now: number | undefined, told: number | undefined, sinceMs: number): boolean {
  if (now === undefined || told === undefined)
    return now !== told && (now ?? hangsAfterMs) >= hangsAfterMs / 2;
  return told + sinceMs - now >= hangsAfterMs / 2;
}
