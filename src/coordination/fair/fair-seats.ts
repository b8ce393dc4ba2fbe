/**
 * Users of budgets, the seats of their pools, and the leases that are recalled between pools. Budgets and
 * pools see each other only as described here.
 */
import type { FairShareAllocator } from '../../core/fair-share.js';
import type { Linked } from '../../kernel/linked-list.js';
import type { FairHolder, Tenant } from './fair-holder.js';
import { usualTerms } from './fair-policy.js';
import type { Rank } from './rank.js';
import type { TurnPace } from './turn-pace.js';

/** A budget, for the pools with a seat in it. */
export interface Budget {
  /** Unique; an older budget has a smaller one. */
  readonly number: number;
  /** Name in messages. */
  readonly name: string;
  readonly capacity: number;
  readonly held: number;
  readonly isLimited: boolean;
  /** Below 0 while a lowered capacity is being reached. */
  readonly free: number;
  /** Can never be the one that is short: another, which has all members of this one, has no more than this. */
  readonly isIdle: boolean;
  readonly users: ReadonlyMap<string, FairUser>;
  readonly members: ReadonlySet<Member>;
  /** Members that hold at least one. */
  readonly holding: Set<Member>;
  readonly pace: TurnPace;
  recalls: number;
  /** Leases released since the shares were last computed. */
  givenBack: number;
  /** While recalls are planned: leases free or on their way, and not assigned yet. */
  available: number;
  usersHolding: number;
  /** Members that wait, whatever they lack. */
  queued: number;
  /** While free leases are assigned: leases kept for another member. */
  reserved: number;
  userNamed(name: string): FairUser;
  /** Forgets a user without pools. */
  forgetIfGone(user: FairUser): void;
  /** The pools of a user are others than before. */
  touch(user: FairUser): void;
  memberCame(member: Member): void;
  memberLeft(member: Member): void;
  count(change: number): void;
  /** Tells the code that decides the capacity that a lease is missing or was released. */
  tellBalance(): void;
}

/** A pool, for its seats and for the budgets. */
export interface Member extends Linked<Member> {
  /** Unique. */
  readonly key: string;
  readonly tenant: Tenant;
  /** In the order in which they were named. */
  readonly seats: readonly Seat[];
  readonly held: number;
  /** Number of held leases that are recalled and not back yet, and of the others. */
  readonly recalled: number;
  readonly kept: number;
  /** Held leases that are recalled and not back yet, the oldest recall first. */
  readonly recalls: readonly Recall[];
  readonly demand: number;
  /** Demand, and connections wanted ready. */
  readonly need: number;
  readonly pending: number;
  /** Any of its budgets has a limit. */
  readonly isLimited: boolean;
  /** There are clients that could use its connections. */
  readonly hasClients: boolean;
  readonly isWaiting: boolean;
  /** The holder that asked last. */
  readonly latestHolder: FairHolder | undefined;
  /** Start of the longest idle time of a connection, and of the oldest dial under way. */
  readonly longestIdleSince: number | undefined;
  readonly dialingSince: number | undefined;
  /** Time of the last successful dial. */
  readonly openedAt: number;
  /** Since when it has held any, or none. */
  readonly turnBeganAt: number;
  readonly emptySince: number;
  /** Has left all seats. */
  readonly isForgotten: boolean;
  /** Its pool has ended. */
  hasLeft: boolean;
  /** Start of its wait for a lease; NaN while it does not wait. And the number it waits for. */
  waitingSince: number;
  wanted: number;
  /** Its place among the waiters. */
  rank: Rank;
  lineKey: number;
  /** One of its shares has changed since its place was assigned. */
  isMarked: boolean;
  /** A lease that was asked back for it has come, and since when. */
  isDue: boolean;
  dueSince: number;
  /** Its place among all members, while it has seats. */
  place: number;
  /** The highest demand of its pool between the last two computations of shares. */
  readonly peak: number;
  /** The highest demand since the last call. */
  takePeak(): number;
  /** A budget without a limit may have got one. */
  forgetLimits(): void;
  /** Takes its seats: its pool has begun, or was forgotten and has become active again. */
  enter(): void;
  /** Leaves all seats: the pool has ended, and holds nothing. */
  exit(): void;
  grant(count: number, holder: FairHolder): void;
  /** Takes back granted leases that the holder did not take. */
  ungrant(count: number, holder: FairHolder): void;
  /** Recalls one more lease, from the holder with the most that are not recalled yet. */
  recallOne(now: number, whom: Member | undefined): Recall | undefined;
  /** Notes that a recall was made for this member, or is no longer for it. */
  awaits(recall: Recall, does: boolean): void;
  /** Withdraws a recall that no member needs any more. */
  forget(recall: Recall): void;
}

/** The part of one pool in one budget. */
export class Seat {
  readonly budget: Budget;
  readonly member: Member;
  user: FairUser;
  /** Its part of the user's share. */
  share = 0;

  constructor(budget: Budget, member: Member, user: FairUser) {
    this.budget = budget;
    this.member = member;
    this.user = user;
  }
}

export class FairUser {
  readonly name: string;
  readonly budget: Budget;
  readonly seats: Seat[] = [];
  terms = usualTerms;
  /** The highest recent or expected need, and the fair share. */
  demand = 0;
  share = 0;
  held = 0;
  /** Number of held leases that are recalled and not back yet. */
  recalled = 0;
  /** Number of its pools that wait. */
  waiting = 0;
  /** When it began to hold leases, or last did; and when one of its connections became usable, NaN if unknown. */
  turnBeganAt = Number.NEGATIVE_INFINITY;
  openSince = Number.NaN;
  /** One of its pools yields to another: that is still the same turn. */
  isHandingOver = false;
  /** Start of the time without any lease. */
  emptySince = Number.NEGATIVE_INFINITY;
  /** For several pools: computes the part of each. */
  splitter: FairShareAllocator | undefined;
  /** The round in which it was last counted, so that no user counts twice; and what it may still claim in that round. */
  seenIn = 0;
  claimLeft = 0;

  constructor(name: string, budget: Budget) {
    this.name = name;
    this.budget = budget;
  }

  /** Start of the longest wait among its pools; undefined if none waits. */
  get waitingSince(): number | undefined {
    if (this.waiting === 0) return undefined;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { member } of this.seats) if (member.waitingSince < earliest) earliest = member.waitingSince;
    return earliest;
  }

  /** Number of connections that remain when all recalls are back. */
  get kept(): number {
    return this.held - this.recalled;
  }

  /** The promised minimum, as far as it can be kept. */
  get promise(): number {
    return Math.min(this.terms.minimum, this.share);
  }

  /** Holds, needs or waits for a connection. */
  get isBusy(): boolean {
    return this.held > 0 || this.demand > 0 || this.waiting > 0;
  }

  /** True if there are clients that could use its connections. */
  get hasClients(): boolean {
    for (const { member } of this.seats) if (member.hasClients) return true;
    return false;
  }

  count(change: number, now: number): void {
    if (this.held === 0 && change > 0) {
      if (!this.isHandingOver) {
        this.turnBeganAt = now;
        this.openSince = Number.NaN;
      }
      this.isHandingOver = false;
    }
    this.held += change;
    if (this.held === 0) this.emptySince = now;
  }
}

/** One recalled lease: who must release it, and for whom. */
export class Recall {
  readonly of: Member;
  readonly holder: FairHolder;
  readonly at: number;
  /** For a connection to another server: a hanging dial may be given up for it. */
  readonly isOfHanging: boolean;
  #for: Member | undefined;

  constructor(of: Member, holder: FairHolder, at: number, isOfHanging: boolean) {
    this.of = of;
    this.holder = holder;
    this.at = at;
    this.isOfHanging = isOfHanging;
  }

  /** The member that gets the lease when it comes back; undefined if a budget has shrunk, or for the next claimant. */
  get for(): Member | undefined {
    return this.#for;
  }

  set for(whom: Member | undefined) {
    this.#for?.awaits(this, false);
    this.#for = whom;
    whom?.awaits(this, true);
  }
}
