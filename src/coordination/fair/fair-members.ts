/** Who shares a budget fairly: users, and of each user the pools that speak for it. They are counted here and nowhere else. */
import type { LeaseAnswer, Leases } from '../../core/leases.js';
import type { FairHolder, Tenant } from './fair-holder.js';
import { usualTerms } from './fair-policy.js';

/** Someone whose share is the same whatever the number of its pools. */
export class FairUser {
  readonly name: string;
  readonly members = new Set<FairMember>();
  terms = usualTerms;
  /** What it wanted at most, of late, and is expected to want; and what fairness gives it. */
  demand = 0;
  share = 0;
  held = 0;
  /** Since when it has held any. */
  turnBeganAt = 0;
  /** When it last wanted any. */
  activeAt: number;

  constructor(name: string, now: number) {
    this.name = name;
    this.activeAt = now;
  }

  get recalled(): number {
    let recalled = 0;
    for (const member of this.members) recalled += member.recalled;
    return recalled;
  }

  /** Since when it waits, of all its pools; undefined where none does. */
  get waitingSince(): number | undefined {
    let earliest: number | undefined;
    for (const member of this.members)
      if (member.isWaiting && !(member.waitingSince >= (earliest ?? Number.POSITIVE_INFINITY)))
        earliest = member.waitingSince;
    return earliest;
  }

  /** Connections that it will have left when what was recalled is back. */
  get kept(): number {
    return this.held - this.recalled;
  }
}

/** The leases of one holder of a member. A pool that was set up anew has another holder from then on. */
interface Holding {
  held: number;
  recalled: number;
}

let lastMember = 0;

/** What happens to the counts of a member. */
export interface MemberEvents {
  /** Infinity: there is no limit. */
  readonly capacity: number;
  mayAcquire(member: FairMember, count: number): boolean;
  acquire(member: FairMember, count: number, holder: FairHolder): LeaseAnswer;
  released(member: FairMember, holder: FairHolder): void;
  left(member: FairMember): void;
}

/** One pool of a user. It is what the pool asks for leases. */
export class FairMember implements Leases {
  /** No other has it. */
  readonly key = `${++lastMember}`;
  readonly user: FairUser;
  readonly tenant: Tenant;
  /** Its part of the user's share. */
  share = 0;
  /** Since when it waits for a lease; NaN when it does not. */
  waitingSince = Number.NaN;
  /** Its pool is no more. */
  hasLeft = false;
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
    user.members.add(this);
  }

  get held(): number {
    return this.#held;
  }

  /** Of those held, how many are to be given back. */
  get recalled(): number {
    return this.#recalled;
  }

  get isWaiting(): boolean {
    return !Number.isNaN(this.waitingSince);
  }

  get latestHolder(): FairHolder | undefined {
    return this.#latest;
  }

  get demand(): number {
    let demand = 0;
    for (const holder of this.#holders()) demand += holder.demand;
    return demand;
  }

  takeDemandPeak(): number {
    let peak = 0;
    for (const holder of this.#holders()) peak += holder.takeDemandPeak();
    return peak;
  }

  /** Since when the connection is idle that nobody has used for longest. */
  get longestIdleSince(): number | undefined {
    let longest: number | undefined;
    for (const { longestIdleSince } of this.#holdings.keys())
      if (longestIdleSince !== undefined && !(longestIdleSince >= (longest ?? Number.POSITIVE_INFINITY)))
        longest = longestIdleSince;
    return longest;
  }

  /** Those who hold something, and the one that asked last. */
  *#holders(): IterableIterator<FairHolder> {
    yield* this.#holdings.keys();
    if (this.#latest !== undefined && !this.#holdings.has(this.#latest)) yield this.#latest;
  }

  // ---- what a pool asks -------------------------------------------------------------------------------------------

  /** Whether so many would be granted at once. */
  mayAcquire(count: number): boolean {
    return this.#events.mayAcquire(this, count);
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
    this.#recalled -= recalled;
    this.user.held -= given;
    if (holding.held === 0) this.#holdings.delete(holder);
    this.#events.released(this, holder);
  }

  /** Its pool is no more; what it still holds comes back by `release()`. */
  leave(): void {
    this.#events.left(this);
  }

  // ---- what the budget does ---------------------------------------------------------------------------------------

  grant(count: number, holder: FairHolder, now: number): void {
    const holding = this.#holdings.get(holder) ?? { held: 0, recalled: 0 };
    this.#holdings.set(holder, holding);
    holding.held += count;
    this.#held += count;
    if (this.user.held === 0) this.user.turnBeganAt = now;
    this.user.held += count;
    this.waitingSince = Number.NaN;
  }

  /** Asks for one more back, of whoever holds most that nobody has asked for yet. */
  recallOne(now: number): void {
    let richest: FairHolder | undefined;
    let most = 0;
    for (const [holder, { held, recalled }] of this.#holdings) {
      if (held - recalled <= most) continue;
      richest = holder;
      most = held - recalled;
    }
    if (richest === undefined) return;
    const holding = this.#holdings.get(richest) as Holding;
    holding.recalled++;
    this.#recalled++;
    this.recalledAt = now;
    richest.leasesRecalled(holding.recalled);
  }

  /** Nobody needs them any more. */
  forgetRecalls(): void {
    if (this.#recalled === 0) return;
    this.#recalled = 0;
    for (const [holder, holding] of this.#holdings) {
      if (holding.recalled === 0) continue;
      holding.recalled = 0;
      holder.leasesRecalled(0);
    }
  }
}
