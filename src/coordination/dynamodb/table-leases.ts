/**
 * Leases for the pools of an instance, out of the slots that it holds of a budget which many instances share.
 *
 * A pool that asks is answered at once from slots in hand. They are held ahead of need, so that a dial waits for the table
 * only when an instance grows faster than it ever did. A slot is given back when its connection is gone, and stays in
 * hand for the next one: to replace a connection costs the table nothing.
 */
import type { LeaseAnswer, LeaseHolder, Leases } from '../../core/leases.js';
import { LeaseCoordinatorError, LeaseLimitError } from '../errors.js';
import { type HolderStats, isCount, LeaseBook } from '../lease-book.js';
import { tell } from '../tell.js';
import { WaitingHolders } from '../waiting-holders.js';
import { BlockSize } from './block-size.js';
import { DemandWindow } from './demand-window.js';
import { type LeaseGoal, leaseGoal } from './lease-goal.js';
import { type LeaseDenial, LeaseOwner } from './lease-owner.js';
import { type LeaseSettings, sweepTimes } from './lease-settings.js';
import { Recalls } from './recalls.js';
import { RecentPeak } from './recent-peak.js';
import { Sweeper } from './sweeper.js';
import type { Table } from './table.js';
import { type CallTally, type CallWorld, TableCalls } from './table-calls.js';
import { hasTurn } from './turns.js';

/**
 * - `unused`: nothing was asked for yet.
 * - `ok`: the lease is valid, and the table answers.
 * - `failing`: the lease is valid, and the table does not answer.
 * - `lost`: there is no valid lease, and the table does not answer.
 * - `ended`: everything was given back.
 */
export type CoordinatorState = 'unused' | 'ok' | 'failing' | 'lost' | 'ended';

export interface TableLeasesStats {
  /** The limit of all instances together. */
  readonly limit: number;
  /** Slots that all instances hold together, as last seen. */
  readonly active: number;
  /** Slots that this instance holds. */
  readonly owned: number;
  /** Of those, the ones that pools of this instance use. */
  readonly held: number;
  /** Pools of this instance that were refused and have not been told since that it is worth asking again. */
  readonly waiting: number;
  /** Instances that want more than they have, and instances in all, as last counted. */
  readonly waitingInstances: number;
  readonly instances: number;
  /** Slots of instances that are gone, which this one took back for all. */
  readonly reclaimed: number;
  /** By how much this instance found the counter wrong, all in all, and put it right. */
  readonly repaired: number;
  /** How often slots that were wanted were not had, by reason. */
  readonly denied: Readonly<Record<LeaseDenial, number>>;
  readonly state: CoordinatorState;
  readonly calls: Readonly<CallTally>;
  readonly byHolder: readonly HolderStats[];
  /** Leases given back by those who did not hold them. Above 0 there is a mistake in a holder. */
  readonly strayReleases: number;
}

/** Told of what an operator may want to know. */
export type LeaseNote = (message: string, error?: unknown) => void;

/** With more of the limit in use than this, nothing is held ahead of need but one, and nothing is kept that was. */
const crowded = 0.9;
/** So long slots that have been in use are kept. */
const keptMs = 10 * 60_000;
const keptParts = 10;
/** So often in a row may a call fail for want of luck before those who ask are told. */
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
  #slotsBefore = 0;
  /** Of those who wait, the ones that are owed an answer. */
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
    this.#recalls = new Recalls(this.#book);
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

  // ---- what pools ask ---------------------------------------------------------------------------------------------

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    if (!isCount(count)) return new RangeError(`One can't ask for ${count} leases.`);
    if (this.#isEnding) return new LeaseCoordinatorError('These leases have been given back for good.');
    const now = this.#world.clock.now();
    this.#isUsed = true;
    this.#sweeper.start();
    const free = this.#free(now);
    if (count <= free && this.#waiting.mayTake(holder, count)) {
      this.#book.grant(count, holder);
      this.#waiting.took(holder, count);
      this.#asking.delete(holder);
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

  release(count: number, holder: LeaseHolder): void {
    const given = this.#book.giveBack(count, holder);
    this.#recalls.released(given, holder);
    this.#goRound(holder);
    this.#owner.pump();
    this.#endIfEmpty();
  }

  /**
   * Gives the slots back for good as soon as no pool uses any, and takes no more. Who does not call it leaves its slots
   * to be taken back when its lease has ended.
   */
  end(onEnded: () => void): void {
    this.#isEnding = true;
    this.#sweeper.stop();
    this.#refuseAsking(new LeaseCoordinatorError('These leases are being given back for good.'));
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

  /** A pool is owed an answer. */
  get isAsking(): boolean {
    return this.#asking.size > 0;
  }

  stats(): TableLeasesStats {
    const now = this.#world.clock.now();
    const counter = this.#owner.counter(now, Number.POSITIVE_INFINITY);
    return {
      limit: this.#settings.limit,
      // What was seen may be older than what this instance has got since.
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

  /** How many connections there may be. */
  #capacity(now: number): number {
    if (this.#owner.isValid(now)) return Math.min(this.#owner.slots, this.#level(now));
    const { onCoordinatorLoss, localShare } = this.#settings;
    // Those that are open stay, and none is opened.
    if (onCoordinatorLoss === 'hold') return this.#book.held;
    return onCoordinatorLoss === 'localShare' && this.#owner.failures > 0 ? localShare : 0;
  }

  #free(now: number): number {
    return this.#capacity(now) - this.#book.held;
  }

  /** What is to be closed: above what there may be, and while others wait, above what there is use for. */
  #surplus(now: number): number {
    const { held } = this.#book;
    const most = this.#capacity(now);
    const isScarce = this.#level(now) !== Number.POSITIVE_INFINITY;
    return Math.max(0, held - (isScarce ? Math.min(most, this.#wanted(now)) : most));
  }

  /** No instance is to have more, while others wait. */
  #level(now: number): number {
    const counter = this.#owner.counter(now, Number.POSITIVE_INFINITY);
    if (counter === undefined || counter.waiting === 0) return Number.POSITIVE_INFINITY;
    const { sweepMs } = sweepTimes(this.#settings);
    const ageMs = this.#calls.time.earliest(now) - counter.levelMs;
    if (ageMs > 4 * sweepMs) return Number.POSITIVE_INFINITY;
    if (counter.turns === undefined) return counter.level;
    return hasTurn(counter.turns, this.#owner.confirmedSlots > 0, this.#owner.sinceMs) ? 1 : 0;
  }

  #goal(isRenewing: boolean): LeaseGoal {
    const now = this.#world.clock.now();
    const { held } = this.#book;
    if (this.#isEnding) return { slots: held, used: held, wanted: held };
    this.#block.tick(now);
    const { limit, lookMs, block: largestBlock } = this.#settings;
    const active = this.#owner.counter(now, 3 * lookMs)?.active ?? 0;
    return leaseGoal({
      held,
      limit,
      largestBlock,
      isRenewing,
      block: this.#block.size,
      slots: this.#owner.confirmedSlots,
      wanted: this.#wanted(now),
      usedLately: this.#used.of(held, now),
      level: this.#level(now),
      isDenied: this.#owner.isDenied,
      isCrowded: active > limit * crowded,
    });
  }

  /** What the pools have use for. Who waits asks for one at a time, however many it needs; who tells nothing needs what it has. */
  #wanted(now: number): number {
    let wanted = 0;
    for (const holder of new Set([...this.#book.latestFirst(), ...this.#waiting])) {
      const held = this.#book.heldBy(holder);
      const wish = this.#waiting.wishOf(holder);
      const demand = this.#demand.of(holder, now) ?? held;
      wanted += wish > 0 ? Math.max(held + wish, demand) : demand;
    }
    return wanted;
  }

  // ---- answering --------------------------------------------------------------------------------------------------

  /** Why it makes no sense to wait for an answer now. */
  #refusal(count: number, holder: LeaseHolder, now: number): Error | undefined {
    if (this.#owner.failures >= patience || (this.#owner.failures > 0 && !this.#owner.isValid(now)))
      return this.#coordinatorError();
    const isRefused = this.#owner.isDenied || this.#goal(false).slots <= this.#owner.confirmedSlots;
    return isRefused ? this.#limitError(count, holder) : undefined;
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

  /** Something has changed: what is too much is asked back, what is free goes round, and who gets nothing is told. */
  #settle(): void {
    const now = this.#world.clock.now();
    this.#noteState(now);
    this.#noteSlots(this.#owner.confirmedSlots);
    this.#recalls.set(this.#surplus(now));
    this.#goRound(undefined);
    this.#seeToShares(now);
    if (this.#asking.size === 0 || this.#isEnding) return;
    if (!this.#owner.isDenied && this.#goal(false).slots > this.#owner.confirmedSlots) return;
    if (this.#owner.failures === 0) this.#refuseAsking(undefined);
  }

  /** Who waits sees to it that shares and turns are found anew, unless another has just done so. */
  #seeToShares(now: number): void {
    const counter = this.#owner.counter(now, Number.POSITIVE_INFINITY);
    if (counter === undefined || this.#isEnding) return;
    const isWaiting = this.#wanted(now) > this.#owner.confirmedSlots;
    const { urgentMs } = sweepTimes(this.#settings);
    const isOld = this.#calls.time.earliest(now) - counter.sweptMs >= urgentMs;
    if (isWaiting && isOld) this.#sweeper.hurry(counter.waiting);
    else this.#sweeper.relax();
  }

  #goRound(caller: LeaseHolder | undefined): void {
    if (this.#isEnding) return;
    const now = this.#world.clock.now();
    this.#waiting.goRound(() => this.#free(now), caller);
    // Who was told has been answered, whatever it made of it.
    for (const holder of [...this.#asking])
      if (this.#waiting.wishOf(holder) === 0) this.#asking.delete(holder);
  }

  /** `error` undefined: the limit is reached. They go on waiting, and are told when it is worth asking again. */
  #refuseAsking(error: Error | undefined): void {
    for (const holder of [...this.#asking]) {
      this.#asking.delete(holder);
      const refusal = error ?? this.#limitError(this.#waiting.wishOf(holder), holder);
      tell(() => holder.leasesRefused(refusal));
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
