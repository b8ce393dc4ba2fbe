/** Who shares a budget fairly: users, and of each user the pools that speak for it. They are counted here and nowhere else. */
import type { DemandTracker } from '../../core/demand-tracker.js';
import type { FairShareAllocator } from '../../core/fair-share.js';
import type { LeaseAnswer, Leases } from '../../core/leases.js';
import type { Linked } from '../../kernel/linked-list.js';
import type { FairHolder, Tenant } from './fair-holder.js';
import { usualTerms } from './fair-policy.js';
import { Holding } from './holding.js';

/** Someone whose share is the same whatever the number of its pools. */
export class FairUser {
  readonly name: string;
  readonly members = new Set<FairMember>();
  terms = usualTerms;
  /** What it wanted at most, of late, and is expected to want; and what fairness gives it. */
  demand = 0;
  share = 0;
  held = 0;
  /** Of those held: asked back, and not back yet. */
  recalled = 0;
  /** Pools of it that wait. */
  waiting = 0;
  /** Since when it has held any, or did last; and since when one of them could be used, as far as is known. */
  turnBeganAt = Number.NEGATIVE_INFINITY;
  openSince = 0;
  /** What it needed of late; and, where it has several pools, what gives each its part. */
  tracker: DemandTracker | undefined;
  splitter: FairShareAllocator | undefined;
  /** The look at all users in which this one was seen last, so that nobody is counted twice. */
  seenIn = 0;

  constructor(name: string) {
    this.name = name;
    this.tracker = undefined;
    this.splitter = undefined;
  }

  /** Since when it waits, of all its pools; undefined where none does. */
  get waitingSince(): number | undefined {
    if (this.waiting === 0) return undefined;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { waitingSince } of this.members) if (waitingSince < earliest) earliest = waitingSince;
    return earliest;
  }

  /** Connections that it will have left when what was recalled is back. */
  get kept(): number {
    return this.held - this.recalled;
  }
}

/** A claim comes before a wish, and who has nothing before who has something. */
export const Rank = { nothing: 0, belowShare: 1, wish: 2 } as const;
export type Rank = (typeof Rank)[keyof typeof Rank];

let lastMember = 0;

/** What happens to the counts of a member. */
export interface MemberEvents {
  readonly name: string;
  /** Infinity: there is no limit. */
  readonly capacity: number;
  readonly held: number;
  mayAcquire(member: FairMember, count: number): boolean;
  acquire(member: FairMember, count: number, holder: FairHolder): LeaseAnswer;
  released(member: FairMember, count: number): void;
  left(member: FairMember): void;
}

/** One pool of a user. It is what the pool asks for leases. */
export class FairMember implements Leases, Linked<FairMember> {
  /** No other has it. */
  readonly key = `${++lastMember}`;
  readonly tenant: Tenant;
  user: FairUser;
  /** Its part of the user's share. */
  share = 0;
  /** Since when it waits for a lease; NaN when it does not. And for how many. */
  waitingSince = Number.NaN;
  wanted = 0;
  /** Its place among those who wait. */
  rank: Rank = Rank.wish;
  previous: FairMember | undefined;
  next: FairMember | undefined;
  /** Its pool is no more. */
  hasLeft = false;
  /** Since when it has held any. */
  turnBeganAt = 0;
  /** When it was last asked to give some back. */
  recalledAt = 0;
  readonly #events: MemberEvents;
  readonly #holdings = new Map<FairHolder, Holding>();
  /** The holder that asked last. */
  #latest: FairHolder | undefined;
  #held = 0;
  #recalled = 0;

  constructor(user: FairUser, tenant: Tenant, events: MemberEvents) {
    this.user = user;
    this.tenant = tenant;
    this.#events = events;
    this.#latest = undefined;
    this.previous = undefined;
    this.next = undefined;
    user.members.add(this);
  }

  get held(): number {
    return this.#held;
  }

  /** Of those held, how many are to be given back. */
  get recalled(): number {
    return this.#recalled;
  }

  get kept(): number {
    return this.#held - this.#recalled;
  }

  get isWaiting(): boolean {
    return this.wanted > 0;
  }

  get latestHolder(): FairHolder | undefined {
    return this.#latest;
  }

  /** Of those who hold something, and of the one that asked last. */
  get demand(): number {
    const latest = this.#latest;
    let demand = latest === undefined || this.#holdings.has(latest) ? 0 : latest.demand;
    for (const holder of this.#holdings.keys()) demand += holder.demand;
    return demand;
  }

  takeDemandPeak(): number {
    const latest = this.#latest;
    let peak = latest === undefined || this.#holdings.has(latest) ? 0 : latest.takeDemandPeak();
    for (const holder of this.#holdings.keys()) peak += holder.takeDemandPeak();
    return peak;
  }

  /** Since when the connection is idle that nobody has used for longest. */
  get longestIdleSince(): number | undefined {
    let longest = Number.POSITIVE_INFINITY;
    for (const { longestIdleSince } of this.#holdings.keys())
      if (longestIdleSince !== undefined && longestIdleSince < longest) longest = longestIdleSince;
    return longest === Number.POSITIVE_INFINITY ? undefined : longest;
  }

  /** All that it holds is yet to be opened. */
  get isOpening(): boolean {
    let pending = 0;
    for (const holder of this.#holdings.keys()) pending += holder.pending ?? 0;
    return pending >= this.#held;
  }

  // ---- what a pool asks -------------------------------------------------------------------------------------------

  /** Whether so many would be granted at once. */
  mayAcquire(count: number): boolean {
    return this.#events.mayAcquire(this, count);
  }

  /** What it is a part of. */
  get budget(): Pick<MemberEvents, 'name' | 'capacity' | 'held'> {
    return this.#events;
  }

  get isLimited(): boolean {
    return this.#events.capacity !== Number.POSITIVE_INFINITY;
  }

  acquire(count: number, holder: FairHolder): LeaseAnswer {
    this.#latest = holder;
    return this.#events.acquire(this, count, holder);
  }

  release(count: number, holder: FairHolder): void {
    const holding = this.#holdings.get(holder);
    if (holding === undefined) return;
    const given = Math.min(count, holding.held);
    const recalled = Math.min(given, holding.recalled);
    holding.held -= given;
    holding.recalled -= recalled;
    this.#held -= given;
    this.user.held -= given;
    this.#countRecalled(-recalled);
    if (holding.held === 0) {
      this.#holdings.delete(holder);
      holding.end();
    }
    this.#events.released(this, given);
  }

  /** Its pool is no more; what it still holds comes back by `release()`. */
  leave(): void {
    this.#events.left(this);
  }

  // ---- what the budget does ---------------------------------------------------------------------------------------

  grant(count: number, holder: FairHolder, now: number): void {
    const holding = this.#holdings.get(holder) ?? new Holding(holder);
    this.#holdings.set(holder, holding);
    if (this.#held === 0) this.turnBeganAt = now;
    if (this.user.held === 0) {
      this.user.turnBeganAt = now;
      this.user.openSince = now;
    }
    holding.held += count;
    // The holder knows that each lease granted is one less to be given back.
    const fewer = Math.min(count, holding.recalled);
    holding.recalled -= fewer;
    this.#countRecalled(-fewer);
    this.#held += count;
    this.user.held += count;
  }

  /** Asks for one more back, of whoever holds most that nobody has asked for yet. */
  recallOne(now: number): void {
    let richest: Holding | undefined;
    for (const holding of this.#holdings.values()) if (holding.kept > (richest?.kept ?? 0)) richest = holding;
    if (richest === undefined) return;
    this.recalledAt = now;
    this.#countRecalled(1);
    richest.recall(richest.recalled + 1);
  }

  /** Nobody needs them any more. */
  forgetRecalls(): void {
    if (this.#recalled === 0) return;
    this.#countRecalled(-this.#recalled);
    for (const holding of [...this.#holdings.values()]) if (holding.recalled > 0) holding.recall(0);
  }

  #countRecalled(change: number): void {
    this.#recalled += change;
    this.user.recalled += change;
  }
}
