/** One pool of a user, with a seat in every budget that counts its connections. The pool asks it for leases. */
import type { LeaseAnswer, Leases } from '../../core/leases.js';
import { tell } from '../tell.js';
import type { FairHolder, Tenant } from './fair-holder.js';
import { type Budget, type Member, Recall, Seat } from './fair-seats.js';
import { Rank } from './rank.js';

/** Calls of a member to its queue. */
export interface MemberEvents {
  mayAcquire(member: Member, count: number): boolean;
  acquire(member: Member, count: number, holder: FairHolder): LeaseAnswer;
  /** The counts are already updated. `arrived`: the recalls that this release answers. */
  released(member: Member, count: number, arrived: readonly Recall[]): void;
  left(member: Member): void;
  /** The member has taken its seats, or left them. */
  entered(member: Member): void;
  exited(member: Member): void;
  now(): number;
}

/** A budget, and the user to join it as. */
export interface SeatWish {
  readonly budget: Budget;
  readonly user: string;
}

interface Holding {
  held: number;
  recalled: number;
}

let lastMember = 0;

export class FairMember implements Leases, Member {
  /** Unique. */
  readonly key = `${++lastMember}`;
  readonly tenant: Tenant;
  /** In the order in which they were named. */
  readonly seats: readonly Seat[];
  held = 0;
  /** Start of its wait for a lease; NaN while it does not wait. And the number it waits for. */
  waitingSince = Number.NaN;
  wanted = 0;
  /** The highest demand of its pool between the last two computations of shares. */
  peak = 0;
  /** Its place among the waiters. */
  rank: Rank = Rank.wish;
  lineKey = 0;
  /** One of its shares has changed since its place was assigned. */
  isMarked = false;
  previous: Member | undefined;
  next: Member | undefined;
  /** A lease that was asked back for it has come, and since when. */
  isDue = false;
  dueSince = 0;
  /** Its pool has ended. */
  hasLeft = false;
  /** Has left all seats. */
  isForgotten = false;
  /** Since when it has held any, or none. */
  turnBeganAt = 0;
  emptySince = Number.NEGATIVE_INFINITY;
  /** Its place among all members, while it has seats. */
  place = -1;
  #isLimited: boolean | undefined;
  /** Held leases that are recalled and not back yet, the oldest recall first. */
  readonly recalls: Recall[] = [];
  /** Recalls from others for this member that have not come. */
  readonly #awaited = new Set<Recall>();
  readonly #events: MemberEvents;
  readonly #holdings = new Map<FairHolder, Holding>();
  /** The holder that asked last. */
  #latest: FairHolder | undefined;

  constructor(tenant: Tenant, seats: readonly SeatWish[], events: MemberEvents) {
    this.tenant = tenant;
    this.#events = events;
    this.seats = seats.map(({ budget, user }) => new Seat(budget, this, budget.userNamed(user)));
    this.enter();
  }

  /** Takes its seats: its pool has begun, or was forgotten and has become active again. */
  enter(): void {
    for (const seat of this.seats) {
      seat.user = seat.budget.userNamed(seat.user.name);
      seat.user.seats.push(seat);
      seat.budget.touch(seat.user);
      seat.budget.memberCame(this);
    }
    this.isForgotten = false;
    this.#events.entered(this);
  }

  /** Leaves all seats: the pool has ended, and holds nothing. */
  exit(): void {
    for (const seat of this.seats) {
      const { user, budget } = seat;
      user.seats.splice(user.seats.indexOf(seat), 1);
      budget.touch(user);
      budget.memberLeft(this);
      budget.forgetIfGone(user);
    }
    this.isForgotten = true;
    this.#events.exited(this);
  }

  get recalled(): number {
    return this.recalls.length;
  }

  get kept(): number {
    return this.held - this.recalls.length;
  }

  get isWaiting(): boolean {
    return this.wanted > 0;
  }

  get latestHolder(): FairHolder | undefined {
    return this.#latest;
  }

  /** True if there are clients that could use its connections. */
  get hasClients(): boolean {
    return this.tenant.hasClients?.() !== false;
  }

  /** The holders with leases, and the one that asked last. */
  *#holders(): Iterable<FairHolder> {
    const latest = this.#latest;
    if (latest !== undefined && !this.#holdings.has(latest)) yield latest;
    yield* this.#holdings.keys();
  }

  get demand(): number {
    let demand = 0;
    for (const holder of this.#holders()) demand += holder.demand;
    return demand;
  }

  /** Demand, and connections wanted ready; endless where a holder does not tell those. */
  get need(): number {
    let need = 0;
    for (const { demand, readyDemand = Number.POSITIVE_INFINITY } of this.#holders())
      need += demand + readyDemand;
    return need;
  }

  /** The highest demand since the last call. */
  takePeak(): number {
    const latest = this.#latest;
    let peak = latest?.takeDemandPeak() ?? 0;
    if (this.#holdings.size > 0)
      for (const holder of this.#holdings.keys()) if (holder !== latest) peak += holder.takeDemandPeak();
    this.peak = peak;
    return peak;
  }

  /** True if any of its budgets has a limit. */
  get isLimited(): boolean {
    this.#isLimited ??= this.seats.some(({ budget }) => budget.isLimited);
    return this.#isLimited;
  }

  /** A budget without a limit may have got one. */
  forgetLimits(): void {
    this.#isLimited = undefined;
  }

  /** Start of the longest idle time of a connection. */
  get longestIdleSince(): number | undefined {
    let longest: number | undefined;
    for (const { longestIdleSince: since } of this.#holdings.keys())
      if (since !== undefined && since < (longest ?? Number.POSITIVE_INFINITY)) longest = since;
    return longest;
  }

  get pending(): number {
    let pending = 0;
    for (const holder of this.#holdings.keys()) pending += holder.pending ?? 0;
    return pending;
  }

  /** Start of the oldest dial under way. */
  get dialingSince(): number | undefined {
    let longest: number | undefined;
    for (const { dialingSince: since } of this.#holdings.keys())
      if (since !== undefined && since < (longest ?? Number.POSITIVE_INFINITY)) longest = since;
    return longest;
  }

  get openedAt(): number {
    let last = Number.NEGATIVE_INFINITY;
    for (const { openedAt } of this.#holders()) if (openedAt !== undefined) last = Math.max(last, openedAt);
    return last;
  }

  /** The smallest number of free leases in its other budgets. */
  spareBeside(own: Budget): number {
    let spare = Number.POSITIVE_INFINITY;
    for (const { budget } of this.seats)
      if (budget !== own) spare = Math.min(spare, Math.max(0, budget.free));
    return spare;
  }

  /** The smallest part that fairness gives it, of all its budgets. */
  get share(): number {
    let share = Number.POSITIVE_INFINITY;
    for (const seat of this.seats) if (seat.budget.isLimited) share = Math.min(share, seat.share);
    return share;
  }

  /** The budget that lacks a lease for it, if one does. */
  get missing(): Budget | undefined {
    return this.seats.find(({ budget }) => budget.free < Math.max(1, this.wanted))?.budget;
  }

  // ---- calls from a pool ------------------------------------------------------------------------------------------

  /** True if `count` leases would be granted at once. */
  isFree(count: number): boolean {
    return this.#events.mayAcquire(this, count);
  }

  acquire(count: number, holder: FairHolder): LeaseAnswer {
    this.#latest = holder;
    return this.#events.acquire(this, count, holder);
  }

  release(count: number, holder: FairHolder): void {
    const given = Math.min(count, this.#holdings.get(holder)?.held ?? 0);
    if (given === 0) return;
    const arrived: Recall[] = [];
    for (let n = 0; n < given; n++) {
      const recall = this.#endRecall(holder, 'first');
      if (recall !== undefined) arrived.push(recall);
    }
    this.#count(holder, -given);
    this.#events.released(this, given, arrived);
  }

  /** Its pool has ended. Leases that it still holds come back by `release()`. */
  leave(): void {
    this.#events.left(this);
  }

  // ---- calls from the queue ---------------------------------------------------------------------------------------

  grant(count: number, holder: FairHolder): void {
    // Recalls that were made for this lease go to the next claimant.
    for (const recall of [...this.#awaited].slice(0, count)) recall.for = undefined;
    // The holder knows that each lease granted is one less to give back.
    for (let n = 0; n < count; n++) this.#endRecall(holder, 'last');
    this.#count(holder, count);
  }

  /** Takes back granted leases that the holder did not take. */
  ungrant(count: number, holder: FairHolder): void {
    this.#count(holder, -count);
  }

  #count(holder: FairHolder, change: number): void {
    const now = this.#events.now();
    const holding = this.#holdings.get(holder) ?? { held: 0, recalled: 0 };
    this.#holdings.set(holder, holding);
    holding.held += change;
    if (holding.held === 0) this.#holdings.delete(holder);
    if (this.held === 0 && change > 0) this.turnBeganAt = now;
    this.held += change;
    if (this.held === 0) this.emptySince = now;
    for (const { user, budget } of this.seats) {
      user.count(change, now);
      budget.count(change);
      if (this.held > 0) budget.holding.add(this);
      else budget.holding.delete(this);
    }
  }

  /** Recalls one more lease, from the holder with the most that are not recalled yet. */
  recallOne(now: number, whom: Member | undefined): Recall | undefined {
    let richest: FairHolder | undefined;
    let most = 0;
    for (const [holder, { held, recalled }] of this.#holdings) {
      if (held - recalled <= most) continue;
      richest = holder;
      most = held - recalled;
    }
    if (richest === undefined) return undefined;
    const isElsewhere = whom !== undefined && whom.tenant.server !== this.tenant.server;
    const recall = new Recall(this, richest, now, isElsewhere);
    recall.for = whom;
    this.recalls.push(recall);
    this.#countRecalled(richest, 1);
    this.#tellRecalls(richest);
    return recall;
  }

  /** Notes that a recall was made for this member, or is no longer for it. */
  awaits(recall: Recall, does: boolean): void {
    if (does) this.#awaited.add(recall);
    else this.#awaited.delete(recall);
  }

  /** Withdraws a recall that no member needs any more. */
  forget(recall: Recall): void {
    const at = this.recalls.indexOf(recall);
    if (at === -1) return;
    this.recalls.splice(at, 1);
    recall.for = undefined;
    this.#countRecalled(recall.holder, -1);
    this.#tellRecalls(recall.holder);
  }

  /** Withdraws one recall: the first or the last one made. */
  #endRecall(holder: FairHolder, which: 'first' | 'last'): Recall | undefined {
    const isOf = (recall: Recall): boolean => recall.holder === holder;
    const at = which === 'first' ? this.recalls.findIndex(isOf) : this.recalls.findLastIndex(isOf);
    if (at === -1) return undefined;
    this.#countRecalled(holder, -1);
    const [ended] = this.recalls.splice(at, 1);
    if (which === 'last' && ended !== undefined) ended.for = undefined;
    return ended;
  }

  #countRecalled(holder: FairHolder, change: number): void {
    const holding = this.#holdings.get(holder);
    if (holding !== undefined) holding.recalled += change;
    for (const { user } of this.seats) user.recalled += change;
  }

  #tellRecalls(holder: FairHolder): void {
    const recalled = this.#holdings.get(holder)?.recalled ?? 0;
    let hanging = 0;
    for (const recall of this.recalls) if (recall.holder === holder && recall.isOfHanging) hanging++;
    tell(() => holder.leasesRecalled(recalled, hanging));
  }
}
