/**
 * Leases for the pools of an instance, out of the slots that it holds of a budget shared by many instances.
 *
 * A pool that asks is answered at once from free slots. They are held ahead of need, so that a dial waits for the table
 * only when an instance grows faster than it ever did. A slot is released when its connection is closed, and is kept for
 * the next one: replacing a connection costs the table nothing.
 */
import type { LeaseAnswer, LeaseHolder, Leases, LeaseWait } from '../../core/leases.js';
import { LeaseCoordinatorError, LeaseLimitError } from '../errors.js';
import { type HolderStats, isCount, LeaseBook } from '../lease-book.js';
import { tell } from '../tell.js';
import { grantTo, WaitingHolders } from '../waiting-holders.js';
import { BlockSize } from './block-size.js';
import { DemandWindow } from './demand-window.js';
import { type Claim, enoughForAll, type FairLevels, type Needs, shareOf } from './fair-level.js';
import { type LeaseGoal, leaseGoal } from './lease-goal.js';
import { isScarce } from './lease-items.js';
import { type LeaseDenial, LeaseOwner } from './lease-owner.js';
import { type LeaseSettings, sweepTimes } from './lease-settings.js';
import { Recalls } from './recalls.js';
import { RecentPeak } from './recent-peak.js';
import { Sweeper } from './sweeper.js';
import type { Table } from './table.js';
import { type CallTally, type CallWorld, TableCalls } from './table-calls.js';
import { slotsInTurn, wholeSlots } from './turns.js';

/**
 * - `unused`: nothing was asked for yet.
 * - `ok`: the lease is valid, and the table answers.
 * - `failing`: the lease is valid, and the table does not answer.
 * - `lost`: there is no valid lease, and the table does not answer.
 * - `ended`: everything was released.
 */
export type CoordinatorState = 'unused' | 'ok' | 'failing' | 'lost' | 'ended';

export interface TableLeasesStats {
  /** The limit of all instances together. */
  readonly limit: number;
  /** Slots that all instances hold together, as last seen. */
  readonly active: number;
  /** Slots that this instance holds. */
  readonly owned: number;
  /** Number of those slots that pools of this instance use. */
  readonly held: number;
  /** Pools of this instance that wait for a lease. */
  readonly waiting: number;
  /** Instances with less than their share or than their callers need, and instances in all, as last counted. */
  readonly waitingInstances: number;
  readonly instances: number;
  /** Slots of dead instances that this one reclaimed for all. */
  readonly reclaimed: number;
  /** Sum of the errors of the counter that this instance found and corrected. */
  readonly repaired: number;
  /** Number of times that wanted slots could not be had, by reason. */
  readonly denied: Readonly<Record<LeaseDenial, number>>;
  readonly state: CoordinatorState;
  readonly calls: Readonly<CallTally>;
  readonly byHolder: readonly HolderStats[];
  /** Leases released by pools that did not hold them. Above 0, a holder has a bug. */
  readonly strayReleases: number;
}

/** Receives messages for an operator. */
export type LeaseNote = (message: string, error?: unknown) => void;

/** With more of the limit in use than this, only one slot is held ahead of need, and no slot is kept for its earlier use. */
const crowded = 0.9;
/** How long slots that were in use are kept. */
const keptMs = 10 * 60_000;
const keptParts = 10;
/** How many times in a row a call may fail by chance before waiting pools are told. */
const patience = 3;

export class TableLeases implements Leases {
  readonly #settings: LeaseSettings;
  readonly #world: CallWorld;
  readonly #calls: TableCalls;
  readonly #owner: LeaseOwner;
  readonly #sweeper: Sweeper;
  readonly #block: BlockSize;
  readonly #recalls: Recalls;
  readonly #note: LeaseNote;
  readonly #book = new LeaseBook();
  readonly #waiting = new WaitingHolders();
  readonly #demand = new DemandWindow();
  readonly #used = new RecentPeak(keptMs, keptParts);
  /** The holder that is asking now: its need counts like that of a waiter. */
  #asker: { readonly holder: LeaseHolder; readonly count: number } | undefined;
  #slotsBefore = 0;
  /** The waiters that have not got an answer yet. */
  readonly #asking = new Set<LeaseHolder>();
  readonly #denied: Record<LeaseDenial, number> = {
    ...{ limit: 0, gone: 0 },
    ...{ conflict: 0, throttled: 0, misconfigured: 0, unavailable: 0 },
  };
  #reclaimed = 0;
  #repaired = 0;
  #isUsed = false;
  #isEnding = false;
  #noted: CoordinatorState = 'unused';

  constructor(table: Table, settings: LeaseSettings, world: CallWorld, note: LeaseNote = () => {}) {
    this.#settings = settings;
    this.#world = world;
    this.#note = note;
    this.#calls = new TableCalls(table, world);
    this.#block = new BlockSize(settings.block);
    this.#recalls = new Recalls(this.#book, this.#waiting, {
      all: () => this.#holders(),
      needsOf: (holder) => this.#needsOf(holder),
    });
    this.#owner = new LeaseOwner(this.#calls, world, settings, {
      goal: (isRenewing) => this.#goal(isRenewing),
      changed: () => this.#settle(),
      denied: (reason, error) => this.#noteDenied(reason, error),
      lost: (slots) => this.#noteLost(slots),
      miscounted: () => this.#sweeper.hurry(),
    });
    this.#sweeper = new Sweeper(
      this.#calls,
      world,
      { ...sweepTimes(settings), keys: settings.keys, limit: settings.limit, graceMs: settings.graceMs },
      this.#owner.key,
      {
        reclaimed: (slots, { instance }) => {
          this.#reclaimed += slots;
          this.#note(`took back ${slots} slots of ${instance}, which has not renewed its lease`);
          this.#owner.hurry();
        },
        repaired: (by) => {
          this.#repaired += Math.abs(by);
          this.#note(`the counter of connections was wrong by ${by}, and was put right`);
        },
        swept: () => this.#owner.hurry(),
      },
    );
  }

  // ---- calls from pools -------------------------------------------------------------------------------------------

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    if (!isCount(count)) return new RangeError(`One can't ask for ${count} leases.`);
    this.#asker = { holder, count };
    const answer = this.#answer(count, holder);
    this.#asker = undefined;
    return answer;
  }

  #answer(count: number, holder: LeaseHolder): LeaseAnswer {
    if (this.#isEnding)
      return new LeaseCoordinatorError('These leases have been given back, and no more are handed out.');
    const now = this.#world.clock.now();
    this.#isUsed = true;
    this.#sweeper.start();
    if (this.#mayTake(count, holder, now)) {
      this.#waiting.remove(holder);
      this.#asking.delete(holder);
      this.#book.grant(count, holder);
      this.#owner.pump();
      return 'granted';
    }
    this.#waiting.add(holder, count);
    if (this.#asking.has(holder)) return 'asking';
    const refusal = this.#refusal(count, holder, now);
    if (refusal !== undefined) return refusal;
    this.#asking.add(holder);
    this.#block.ranOut();
    this.#owner.pump();
    return 'asking';
  }

  #mayTake(count: number, holder: LeaseHolder, now: number): boolean {
    if (!this.#waiting.mayTake(holder)) return false;
    const capacity = this.#capacity(now);
    return count <= capacity - this.#book.held && this.#recalls.mayHave(holder, count, capacity);
  }

  release(count: number, holder: LeaseHolder): void {
    const given = this.#book.giveBack(count, holder);
    this.#recalls.released(given, holder);
    this.#serve(holder);
    this.#owner.pump();
    this.#endIfEmpty();
  }

  /**
   * Releases the slots for good as soon as no pool uses any, and takes no more. Without this call, other instances
   * reclaim the slots when the lease has ended.
   */
  end(onEnded: () => void): void {
    this.#isEnding = true;
    this.#sweeper.stop();
    for (const holder of this.#waiting) this.#asking.add(holder);
    this.#refuseAsking(
      new LeaseCoordinatorError('These leases are being given back, and no more are handed out.'),
    );
    this.#onEnded.push(onEnded);
    this.#endIfEmpty();
  }

  readonly #onEnded: (() => void)[] = [];

  #endIfEmpty(): void {
    if (!this.#isEnding || this.#book.held > 0 || this.#onEnded.length === 0) return;
    const ended = this.#onEnded.splice(0);
    this.#owner.end(() => {
      for (const onEnded of ended) onEnded();
    });
  }

  /** Makes no further call, as if the program had ended. */
  abandon(): void {
    this.#sweeper.stop();
    this.#owner.abandon();
    this.#calls.giveUp();
  }

  /** Leases that pools have. */
  get held(): number {
    return this.#book.held;
  }

  /** A pool has a request that is not granted yet. */
  get isAsking(): boolean {
    return this.#waiting.size > 0;
  }

  stats(): TableLeasesStats {
    const now = this.#world.clock.now();
    const counter = this.#owner.counter(now, Number.POSITIVE_INFINITY);
    return {
      limit: this.#settings.limit,
      // The sweep may be older than slots that this instance has got since.
      active: Math.max(counter?.active ?? 0, this.#owner.confirmedSlots),
      owned: this.#owner.confirmedSlots,
      held: this.#book.held,
      waiting: this.#waiting.size,
      waitingInstances: counter?.waiting ?? 0,
      instances: counter?.owners ?? 0,
      reclaimed: this.#reclaimed,
      repaired: this.#repaired,
      denied: { ...this.#denied },
      state: this.#state(now),
      calls: { ...this.#calls.tally, failures: { ...this.#calls.tally.failures } },
      byHolder: this.#book.stats(this.#waiting),
      strayReleases: this.#book.strays,
    };
  }

  // ---- how many ---------------------------------------------------------------------------------------------------

  #state(now: number): CoordinatorState {
    if (this.#owner.isOver) return 'ended';
    const isFailing = this.#owner.failures > 0;
    if (this.#owner.isValid(now)) return isFailing ? 'failing' : 'ok';
    return isFailing ? 'lost' : this.#isUsed ? 'ok' : 'unused';
  }

  /** Number of connections allowed now. */
  #capacity(now: number): number {
    if (this.#owner.isValid(now)) return Math.min(this.#owner.slots, this.#allowed(now));
    const { onCoordinatorLoss, localShare } = this.#settings;
    // Open connections stay, and none is opened.
    if (onCoordinatorLoss === 'hold') return this.#book.held;
    return onCoordinatorLoss === 'localShare' && this.#owner.failures > 0 ? localShare : 0;
  }

  /** Number of connections to keep: while there is not enough for all, only those needed here. */
  #kept(now: number): number {
    const most = this.#capacity(now);
    return this.#scarceLevels(now) === undefined ? most : Math.min(most, this.#needs(now).total);
  }

  /** The levels for shares while there is not enough for all. */
  #scarceLevels(now: number): FairLevels | undefined {
    const counter = this.#owner.counter(now, Number.POSITIVE_INFINITY);
    if (counter === undefined || !isScarce(counter)) return undefined;
    const ageMs = this.#calls.time.earliest(now) - counter.levelMs;
    return ageMs > 4 * sweepTimes(this.#settings).sweepMs ? undefined : counter.levels;
  }

  /** The instance's share, if it needed any number of connections; Infinity while there is enough for all. */
  #allowed(now: number): number {
    const levels = this.#scarceLevels(now);
    if (levels === undefined) return Number.POSITIVE_INFINITY;
    const claim = this.#claim(now);
    const turns = this.#owner.counter(now, Number.POSITIVE_INFINITY)?.turns;
    if (turns === undefined) return shareOf({ ...claim, total: Number.POSITIVE_INFINITY }, levels);
    if (claim.callers === 0) return 0;
    return slotsInTurn(claim, this.#owner.confirmedSlots, this.#owner.sinceMs, turns);
  }

  #goal(isRenewing: boolean): LeaseGoal {
    const now = this.#world.clock.now();
    const { held } = this.#book;
    if (this.#isEnding)
      return { slots: held, used: held, needs: { callers: held, total: held, claimants: 1 }, whole: 0 };
    this.#block.tick(now);
    const { limit, lookMs, block: largestBlock } = this.#settings;
    const { active = 0, owners = 0, callersShort = 0 } = this.#owner.counter(now, 3 * lookMs) ?? {};
    const turns = this.#scarceLevels(now) && this.#owner.counter(now, Number.POSITIVE_INFINITY)?.turns;
    return leaseGoal({
      whole: turns === undefined ? 0 : wholeSlots(this.#claim(now), turns),
      held,
      limit,
      largestBlock,
      isRenewing,
      block: this.#block.size,
      slots: this.#owner.confirmedSlots,
      needs: this.#needs(now),
      usedLately: this.#used.of(held, now),
      levels: this.#scarceLevels(now) ?? (this.#owner.isDenied ? enoughForAll : undefined),
      share: this.#allowed(now),
      free: limit - active,
      instances: owners,
      areCallersShort: callersShort > 0,
      isCrowded: active > limit * crowded,
    });
  }

  /** The needs of all pools of this instance together. */
  #needs(now: number): Needs {
    let [callers, total, claimants] = [0, 0, 0];
    for (const holder of this.#holders()) {
      const needs = this.#needsOf(holder, now);
      callers += needs.callers;
      total += needs.total;
      if (needs.total > 0) claimants += needs.claimants;
    }
    return { callers, total, claimants: claimants > 0 ? claimants : 1 };
  }

  #needsOf(holder: LeaseHolder, now = this.#world.clock.now()): Needs {
    const asked = this.#asker?.holder === holder ? this.#asker.count : 0;
    const wish = Math.max(asked, this.#waiting.wishOf(holder));
    return this.#demand.of(holder, { held: this.#book.heldBy(holder), wish }, now);
  }

  /** Holders that hold, wait or ask. */
  #holders(): LeaseHolder[] {
    const holders = this.#book.latestFirst();
    for (const holder of this.#waiting) if (this.#book.heldBy(holder) === 0) holders.push(holder);
    const asker = this.#asker?.holder;
    if (asker !== undefined && this.#book.heldBy(asker) + this.#waiting.wishOf(asker) === 0)
      holders.push(asker);
    return holders;
  }

  /** The claim, with the weight that other instances know: the levels were computed with it. */
  #claim(now: number): Claim {
    const needs = this.#needs(now);
    const { claimants } = this.#owner.toldNeeds ?? needs;
    return { ...needs, claimants, rank: this.#owner.rank };
  }

  // ---- answering --------------------------------------------------------------------------------------------------

  /** The reason why no answer can be expected soon. */
  #refusal(count: number, holder: LeaseHolder, now: number): LeaseWait | Error | undefined {
    if (this.#owner.failures >= patience || (this.#owner.failures > 0 && !this.#owner.isValid(now)))
      return this.#coordinatorError();
    return this.#hasAll() ? { reason: this.#limitError(count, holder) } : undefined;
  }

  /** No more slots can be had now. */
  #hasAll(): boolean {
    return this.#owner.isDenied || this.#goal(false).slots <= this.#owner.confirmedSlots;
  }

  #limitError(count: number, holder: LeaseHolder): LeaseLimitError {
    const { limit } = this.#settings;
    const active = this.#owner.counter(this.#world.clock.now(), Number.POSITIVE_INFINITY)?.active;
    return new LeaseLimitError(holder.name, count, active ?? limit, limit);
  }

  #coordinatorError(): LeaseCoordinatorError {
    const failure = this.#calls.lastFailure;
    const why = failure === undefined ? '' : ` (${failure.reason})`;
    return new LeaseCoordinatorError(`The table of the leases does not answer${why}.`, failure?.error);
  }

  /** Handles a change: recalls the excess, grants free slots, and answers pools that wait. */
  #settle(): void {
    const now = this.#world.clock.now();
    this.#noteState(now);
    this.#noteSlots(this.#owner.confirmedSlots);
    this.#recalls.limit(this.#kept(now), this.#hasAll());
    this.#serve(undefined);
    this.#seeToShares(now);
    if (this.#asking.size === 0 || this.#isEnding || !this.#hasAll()) return;
    if (this.#owner.failures === 0) this.#refuseAsking(undefined);
  }

  /** Asks for new shares if this instance waits or uses old shares and slot turns, unless another has just computed them. */
  #seeToShares(now: number): void {
    const counter = this.#owner.counter(now, Number.POSITIVE_INFINITY);
    if (counter === undefined || this.#isEnding) return;
    const { slots, needs } = this.#goal(false);
    const isWaiting = Math.max(needs.callers, slots) > this.#owner.confirmedSlots;
    const { urgentMs, sweepMs } = sweepTimes(this.#settings);
    const ageMs = this.#calls.time.earliest(now) - counter.sweptMs;
    if (isWaiting && ageMs >= urgentMs) this.#sweeper.hurry(counter.waiting);
    else if (isScarce(counter) && ageMs >= sweepMs) this.#sweeper.hurry(counter.owners);
    else this.#sweeper.relax();
  }

  #serve(caller: LeaseHolder | undefined): void {
    if (this.#isEnding) return;
    const now = this.#world.clock.now();
    this.#waiting.serve({
      caller,
      free: () => this.#capacity(now) - this.#book.held,
      mayHave: (holder, count) => this.#recalls.mayHave(holder, count, this.#capacity(now)),
      grant: (count, holder) => {
        this.#asking.delete(holder);
        return grantTo(holder, count, this.#book);
      },
    });
  }

  /** `error` undefined: the limit is reached. Pools keep their place in either case. */
  #refuseAsking(error: Error | undefined): void {
    for (const holder of [...this.#asking]) {
      this.#asking.delete(holder);
      if (error === undefined) {
        const reason = this.#limitError(this.#waiting.wishOf(holder), holder);
        tell(() => holder.leasesDelayed?.(reason));
      } else tell(() => holder.leasesRefused(error));
    }
  }

  // ---- noting -----------------------------------------------------------------------------------------------------

  #noteDenied(reason: LeaseDenial, error: Error | undefined): void {
    this.#denied[reason]++;
    if (reason === 'limit') {
      this.#sweeper.hurry();
      this.#refuseAsking(undefined);
      return;
    }
    if (reason === 'gone') return;
    const isLucky = (reason === 'conflict' || reason === 'throttled') && this.#owner.failures < patience;
    if (!isLucky) this.#refuseAsking(this.#coordinatorError());
    this.#noteState(this.#world.clock.now(), error);
  }

  #noteSlots(slots: number): void {
    if (slots > this.#slotsBefore && this.#slotsBefore > 0) this.#block.fetched();
    this.#slotsBefore = slots;
  }

  #noteLost(slots: number): void {
    this.#note(
      `the lease with ${slots} slots was taken back by others, since it had not been renewed in time`,
    );
    this.#settle();
  }

  #noteState(now: number, error?: Error): void {
    const state = this.#state(now);
    if (state === this.#noted) return;
    const before = this.#noted;
    this.#noted = state;
    if (state === 'failing')
      this.#note('the table of the leases does not answer; the lease is still valid', error);
    if (state === 'lost') {
      const { onCoordinatorLoss } = this.#settings;
      this.#note(`there is no valid lease, and the table does not answer: ${onCoordinatorLoss}`, error);
    }
    if (state === 'ok' && before !== 'unused') this.#note('the table of the leases answers again');
  }
}
