/** Computes users' shares of a budget from their recent needs, and from those the shares of their pools. */
import { FairShareAllocator, type ShareUser, usualShrinkAfter } from '../../core/fair-share.js';
import { formerPlaces } from '../../core/former-places.js';
import { ShareAllocator } from '../../core/share-allocator.js';
import type { ShareBook } from '../../core/share-book.js';
import type { ShareReason } from '../../core/share-reasons.js';
import { checkCapacity } from '../../core/share-request.js';
import type { FairUser, Seat } from './fair-seats.js';
import type { MemberColumns } from './member-columns.js';
import { type ShareLook, several, UserColumns } from './user-columns.js';

/** The reason for which shares were computed. */
export type RebalanceReason =
  | 'interval'
  | 'newcomer'
  | 'wait'
  | 'release'
  | 'capacity'
  | 'configuration'
  | 'asked';

/** One changed share. */
export interface ShareChange {
  readonly user: string;
  readonly from: number;
  readonly to: number;
  readonly demand: number;
  readonly reason: ShareReason;
}

/** The budget that is shared out. */
export interface SharedBudget {
  readonly capacity: number;
  /** A new list whenever a user joins or leaves. */
  readonly userList: readonly FairUser[];
  /** Users that joined, or whose pools did, since the last call. */
  takeTouched(): ReadonlySet<FairUser>;
}

/** Up to this many users are looked up one by one. */
const fewTouched = 32;

/** The shares of one budget. */
export class Shares {
  readonly #columns = new UserColumns();
  #allocator: ShareAllocator | undefined;
  /** The users in the order of the allocator's book. */
  #booked: readonly FairUser[] = [];
  /** Shares and terms of all users may be others than they are in the columns. */
  #isStale = false;
  /** The last time, other budgets decided. */
  #isFollowing = false;
  /** The last time, the allocator was not asked, and does not know the shares. */
  #wasSettled = false;
  /** Users with several pools. */
  readonly #several: FairUser[] = [];

  /** Members are noted, and smaller budgets have given out their shares. */
  allocate(budget: SharedBudget, look: ShareLook): ShareChange[] {
    const { capacity } = budget;
    const columns = this.#columns;
    if (this.#isFollowing) this.#isStale = true;
    this.#isFollowing = false;
    const touched = this.#arrange(budget);
    columns.lookAtDemand(look);
    for (const place of touched) {
      columns.tellDemand(place);
      markPools(columns.users[place] as FairUser);
    }
    const [only] = columns.users;
    // Most users have only one database: there is nothing to share out.
    const isSettled = only !== undefined && columns.users.length === 1 && isContent(only, capacity);
    const told = isSettled
      ? []
      : this.#shareOut(capacity, look, this.#wasSettled ? columns.places() : touched);
    this.#wasSettled = isSettled;
    this.#tellMembers(look);
    return told;
  }

  /** A budget that can't be short itself copies the shares of the budgets that decide. */
  follow(budget: SharedBudget, { members: ofAll }: ShareLook): void {
    if (!this.#isFollowing) this.#isStale = true;
    this.#isFollowing = true;
    this.#arrange(budget);
    const { users, members, demands, followed } = this.#columns;
    for (let place = 0; place < users.length; place++) {
      const member = members[place] as number;
      const share = ofAll.shares[member] as number;
      if (member !== several && share === followed[place] && ofAll.demands[member] === demands[place])
        continue;
      followed[place] = share;
      demands[place] = followPools(users[place] as FairUser, budget.capacity, ofAll);
    }
  }

  /** Users may have other terms. */
  forgetTerms(): void {
    this.#isStale = true;
  }

  /** Forgets the recent demand of users. */
  forgetDemand(): void {
    this.#columns.forgetDemand();
  }

  /** Notes users whose values may differ from the columns, and returns their places. */
  #arrange(budget: SharedBudget): readonly number[] {
    const columns = this.#columns;
    if (budget.userList !== columns.users) columns.arrange(budget.userList);
    const touched = this.#placesOf(budget.takeTouched());
    for (const place of touched) columns.note(place);
    return touched;
  }

  #placesOf(touched: ReadonlySet<FairUser>): readonly number[] {
    const { users } = this.#columns;
    const isAll = this.#isStale || touched.size > fewTouched;
    this.#isStale = false;
    if (isAll) return this.#columns.places();
    return Array.from(touched, (user) => users.indexOf(user)).filter((place) => place !== -1);
  }

  // ---- sharing out ------------------------------------------------------------------------------------------------

  #shareOut(capacity: number, look: ShareLook, touched: readonly number[]): ShareChange[] {
    checkCapacity(capacity);
    this.#allocator ??= new ShareAllocator(0, usualShrinkAfter);
    const { book, changes } = this.#allocator;
    this.#book(book);
    this.#claim(book, look);
    this.#allocator.shareOut(capacity, look.isRound);
    const { users, demands } = this.#columns;
    for (const place of touched) giveShare(users[place] as FairUser, book.shares[place] as number);
    const told = changes.map(({ place, from, to, reason }) => {
      const user = users[place] as FairUser;
      giveShare(user, to);
      markPools(user);
      return { user: user.name, from, to, demand: demands[place] as number, reason };
    });
    for (const user of this.#several) {
      split(user);
      markPools(user);
    }
    return told;
  }

  /** A user that has left and come back under the same name is remembered. */
  #book(book: ShareBook): void {
    const { users } = this.#columns;
    if (this.#booked === users) return;
    const from = formerPlaces(this.#booked, users);
    this.#booked = users;
    const keys = Array.from(from, (former, place) =>
      former === -1 ? (users[place] as FairUser).name : (book.keys[former] as string),
    );
    if (from.includes(-1)) {
      const left = new Set(book.keys.keys());
      for (const former of from) left.delete(former);
      const places = new Map(Array.from(left, (place) => [book.keys[place] as string, place]));
      for (const [place, former] of from.entries())
        if (former === -1) from[place] = places.get(keys[place] as string) ?? -1;
    }
    book.arrange(keys, from);
  }

  #claim(book: ShareBook, look: ShareLook): void {
    const { users, members, demands, promises, weights, maximums } = this.#columns;
    const { held, waitingSince } = look.members;
    book.demands.set(demands);
    book.weights.set(weights);
    book.maximums.set(maximums);
    book.had.set(book.shares);
    this.#several.length = 0;
    for (let place = 0; place < users.length; place++) {
      const demand = demands[place] as number;
      const member = members[place] as number;
      // A promise covers only what is needed.
      const minimum = Math.min(promises[place] as number, demand);
      book.minimums[place] = minimum;
      book.isActive[place] = demand > 0 ? 1 : 0;
      let [has, since] = [false, Number.NaN];
      if (member === several) {
        const user = users[place] as FairUser;
        this.#several.push(user);
        has = user.held > 0;
        since = user.waitingSince ?? Number.NaN;
      } else {
        has = (held[member] as number) > 0;
        since = waitingSince[member] as number;
      }
      // A user with leases keeps its turn. The one slot that rotates in spite of all promises is for users without a
      // promise.
      if (minimum > 0 || (!has && Number.isNaN(since))) since = Number.POSITIVE_INFINITY;
      else if (has) since = Number.NEGATIVE_INFINITY;
      book.waitingSince[place] = since;
    }
  }

  /** Members can use no more of larger budgets than their parts of this one. */
  #tellMembers({ members: ofAll }: ShareLook): void {
    const { users, members, demands } = this.#columns;
    // A single user can have its share without the allocator.
    const shares = users.length > 1 ? this.#allocator?.book.shares : undefined;
    for (let place = 0; place < users.length; place++) {
      const member = members[place] as number;
      const demand = demands[place] as number;
      if (member !== several && shares !== undefined) ofAll.give(member, shares[place] as number, demand);
      else
        for (const seat of (users[place] as FairUser).seats)
          ofAll.give(seat.member.place, seat.share, demand);
    }
  }
}

/** Returns the need of the user. */
function followPools(user: FairUser, capacity: number, { shares, demands }: MemberColumns): number {
  let [share, demand] = [0, 0];
  for (const seat of user.seats) {
    seat.share = shares[seat.member.place] as number;
    share += seat.share;
    demand += demands[seat.member.place] as number;
  }
  user.share = Math.min(share, capacity);
  user.demand = demand;
  return demand;
}

/** Alone, and it has all that it may have. */
function isContent({ share, demand, terms, seats }: FairUser, capacity: number): boolean {
  const due = demand > 0 ? Math.min(capacity, terms.maximum) : 0;
  if (share !== due || seats.length > 1) return false;
  for (const seat of seats) if (seat.share !== share) return false;
  return true;
}

/** Sets the share of the user and of its only pool. Several pools get their parts later. */
function giveShare(user: FairUser, share: number): void {
  user.share = share;
  for (const seat of user.seats) seat.share = share;
}

/** Their ranks may be others. */
function markPools({ seats, waiting }: FairUser): void {
  if (waiting > 0) for (const { member } of seats) member.isMarked = true;
}

/** Splits the share of the user between its pools by their current need. */
function split(user: FairUser): void {
  user.splitter ??= new FairShareAllocator({ shrinkAfter: 1 });
  const { shares } = user.splitter.allocate({ capacity: user.share, users: user.seats.map(poolOf) });
  for (const seat of user.seats) seat.share = shares.get(seat.member.key) ?? 0;
}

function poolOf({ member }: Seat): ShareUser {
  const { key, demand, waitingSince, held, isWaiting } = member;
  const since = isWaiting && held === 0 ? waitingSince : undefined;
  return { key, demand, weight: 1, isActive: demand > 0, waitingSince: since };
}
