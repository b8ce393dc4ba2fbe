/** One budget: its leases, the number held, and the users that hold them. */

import type { BudgetTerms, UserTerms } from './fair-policy.js';
import { type Budget, FairUser, type Member } from './fair-seats.js';
import { type RebalanceReason, type ShareChange, Shares } from './shares.js';
import { TurnPace } from './turn-pace.js';

/** Calls come after the fact. */
export interface FairListener {
  /** A member waits and no lease is free, or a lease was released. For code that decides the capacity. */
  balanceChanged?(): void;
  /** Called only if at least one share has changed. */
  rebalanced?(rebalance: Rebalance): void;
}

export interface Rebalance {
  readonly reason: RebalanceReason;
  readonly capacity: number;
  readonly changes: readonly ShareChange[];
}

/** The current state of one user. */
export interface FairUserStats extends UserTerms {
  readonly user: string;
  readonly demand: number;
  readonly share: number;
  readonly held: number;
  /** Number of held leases that are recalled and not back yet. */
  readonly recalled: number;
  /** The longest wait among its pools; 0 if none waits. */
  readonly waitedMs: number;
}

export interface FairStats {
  readonly capacity: number;
  /** Never above the capacity, except while a lowered capacity is being reached. */
  readonly held: number;
  /** The most that were ever held at once. */
  readonly peak: number;
  /** Leases that were granted beyond the capacity; above 0 there is a mistake in Headgate. */
  readonly exceeded: number;
  readonly waiting: number;
  readonly recalls: number;
  readonly rebalances: number;
  readonly users: readonly FairUserStats[];
  /** Users that are not listed, and their shares together. */
  readonly unlisted: { readonly count: number; readonly share: number };
}

/** Calls of a budget to the queue that it belongs to. */
export interface BudgetEvents {
  /** A number that changes when members join or leave, or capacities change. */
  readonly layout: number;
  layoutChanged(): void;
  /** The budget has got a limit, or lost it. */
  limitsChanged(): void;
  /** Number of members that wait only for this budget. */
  waitingFor(budget: Budget): number;
  changed(reason: RebalanceReason): void;
  rebalanceNow(): void;
  now(): number;
}

export interface BudgetParts extends BudgetTerms {
  /** Name in messages. */
  readonly name: string;
  /** Budgets of a smaller size are shared out first; one that contains others has a larger size. Default 0. */
  readonly size?: number | undefined;
  readonly listener?: FairListener | undefined;
}

let lastNumber = 0;

export class FairBudget implements Budget {
  readonly number = ++lastNumber;
  readonly name: string;
  readonly size: number;
  readonly listener: FairListener | undefined;
  readonly users = new Map<string, FairUser>();
  /** Members that hold at least one. */
  readonly holding = new Set<Member>();
  readonly members = new Set<Member>();
  /** For each other budget, the number of members with a seat in both. */
  readonly #alsoIn = new Map<Budget, number>();
  readonly pace = new TurnPace();
  held = 0;
  /** The most that ever were. */
  mostHeld = 0;
  /** Leases granted beyond the capacity. The invariant: always 0. */
  exceeded = 0;
  recalls = 0;
  rebalances = 0;
  /** Leases released since the shares were last computed. */
  givenBack = 0;
  /** While recalls are planned: leases free or on their way, and not assigned yet. */
  available = 0;
  usersHolding = 0;
  /** Members that wait, whatever they lack. */
  queued = 0;
  /** While free leases are assigned: leases kept for another member. */
  reserved = 0;
  #terms: BudgetTerms;
  #heldPeak = 0;
  #isIdle = false;
  #wasIdle = true;
  /** The layout of all budgets for which that was found. */
  #idleIn = -1;
  #shares: Shares | undefined;
  #userList: readonly FairUser[] | undefined;
  #touched = new Set<FairUser>();
  readonly #events: BudgetEvents;

  constructor({ name, size = 0, listener, capacity, termsOf }: BudgetParts, events: BudgetEvents) {
    this.name = name;
    this.size = size;
    this.listener = listener;
    this.#terms = { capacity, termsOf };
    this.#events = events;
  }

  get shares(): Shares {
    this.#shares ??= new Shares();
    return this.#shares;
  }

  get capacity(): number {
    return this.#terms.capacity;
  }

  get isLimited(): boolean {
    return this.#terms.capacity !== Number.POSITIVE_INFINITY;
  }

  /** Below 0 while a lowered capacity is being reached. */
  get free(): number {
    return this.capacity - this.held;
  }

  /** Members that wait for a lease of this budget, and lack no other. */
  get waiting(): number {
    return this.#events.waitingFor(this);
  }

  /** The most that were held at one moment, since this was last asked. */
  takeHeldPeak(): number {
    const peak = this.#heldPeak;
    this.#heldPeak = this.held;
    return peak;
  }

  /** Can never be the one that is short: another, which has all members of this one, has no more than this. */
  get isIdle(): boolean {
    if (!this.isLimited) return true;
    const { layout } = this.#events;
    if (this.#idleIn !== layout) {
      this.#idleIn = layout;
      this.#isIdle = this.#findIdle();
    }
    return this.#isIdle;
  }

  /** True if the budget became idle, or stopped being idle, since the last call. */
  noteIdle(): boolean {
    const wasIdle = this.#wasIdle;
    this.#wasIdle = this.isIdle;
    return wasIdle !== this.#wasIdle;
  }

  #findIdle(): boolean {
    const { capacity, number } = this;
    const { size } = this.members;
    for (const { seats } of this.members) {
      for (const { budget: other } of seats) {
        if (other.capacity > capacity || this.#alsoIn.get(other) !== size) continue;
        // With equal capacities the budget with more members decides, and then the older one.
        if (other.capacity < capacity || other.members.size > size || other.number < number) return true;
      }
      // A budget with all of these members has this one, too.
      break;
    }
    return false;
  }

  tellBalance(): void {
    this.listener?.balanceChanged?.();
  }

  // ---- rules ------------------------------------------------------------------------------------------------------

  /** Changes the rules. Leases above a lowered capacity are recalled from users above their share. */
  change(terms: BudgetTerms): void {
    this.#setTerms(terms);
    this.#shares?.forgetTerms();
    for (const user of this.users.values()) user.terms = terms.termsOf(user.name);
    this.#events.changed('configuration');
  }

  resize(capacity: number): void {
    if (!(Number.isSafeInteger(capacity) || capacity === Number.POSITIVE_INFINITY) || capacity < 0)
      throw new RangeError(`A capacity is a whole number of at least 0, not ${capacity}.`);
    if (capacity === this.capacity) return;
    this.#setTerms({ ...this.#terms, capacity });
    this.#events.changed('capacity');
  }

  #setTerms(terms: BudgetTerms): void {
    const { isLimited } = this;
    this.#terms = terms;
    this.#events.layoutChanged();
    if (this.isLimited !== isLimited) this.#events.limitsChanged();
  }

  /** Computes the shares now. */
  rebalance(): void {
    this.#events.rebalanceNow();
  }

  // ---- seats ------------------------------------------------------------------------------------------------------

  /** In the order in which users came. A new list whenever a user joins or leaves. */
  get userList(): readonly FairUser[] {
    this.#userList ??= [...this.users.values()];
    return this.#userList;
  }

  userNamed(name: string): FairUser {
    const known = this.users.get(name);
    if (known !== undefined) return known;
    const user = new FairUser(name, this);
    user.terms = this.#terms.termsOf(name);
    this.users.set(name, user);
    this.#userList = undefined;
    return user;
  }

  /** Forgets a user without pools. */
  forgetIfGone(user: FairUser): void {
    if (user.seats.length > 0 || this.users.get(user.name) !== user) return;
    this.users.delete(user.name);
    this.#userList = undefined;
  }

  /** The pools of a user are others than before. */
  touch(user: FairUser): void {
    this.#touched.add(user);
  }

  takeTouched(): ReadonlySet<FairUser> {
    const touched = this.#touched;
    if (touched.size > 0) this.#touched = new Set();
    return touched;
  }

  memberCame(member: Member): void {
    this.#events.layoutChanged();
    this.members.add(member);
    this.#countBoth(member, 1);
  }

  memberLeft(member: Member): void {
    this.#events.layoutChanged();
    this.members.delete(member);
    this.#countBoth(member, -1);
  }

  #countBoth({ seats }: Member, change: 1 | -1): void {
    for (const { budget: other } of seats) {
      const both = (this.#alsoIn.get(other) ?? 0) + change;
      if (both === 0) this.#alsoIn.delete(other);
      else this.#alsoIn.set(other, both);
    }
  }

  count(change: number): void {
    this.held += change;
    if (change > 0 && this.held > this.#terms.capacity) this.exceeded += 1;
    if (this.held <= this.#heldPeak) return;
    this.#heldPeak = this.held;
    this.mostHeld = Math.max(this.mostHeld, this.held);
  }

  // ---- statistics -------------------------------------------------------------------------------------------------

  /** `mostUsers`: those who came first, of thousands. */
  stats(mostUsers = Number.POSITIVE_INFINITY): FairStats {
    return this.#statsOf((_, listed) => listed < mostUsers);
  }

  /** Lists every user that holds, needs or waits for a connection; of the others no more than make `mostQuiet` users together. */
  busyStats(mostQuiet: number): FairStats {
    return this.#statsOf((user, listed) => listed < mostQuiet || user.isBusy);
  }

  #statsOf(isListed: (user: FairUser, listed: number) => boolean): FairStats {
    const now = this.#events.now();
    const users: FairUserStats[] = [];
    let share = 0;
    for (const user of this.users.values()) {
      if (isListed(user, users.length)) users.push(userStats(user, now));
      else share += user.share;
    }
    const { capacity, held, exceeded, recalls, rebalances, queued: waiting } = this;
    const unlisted = { count: this.users.size - users.length, share };
    return { capacity, held, peak: this.mostHeld, exceeded, waiting, recalls, rebalances, users, unlisted };
  }
}

function userStats(user: FairUser, now: number): FairUserStats {
  const { name, terms, demand, share, held, recalled } = user;
  const waitedMs = now - (user.waitingSince ?? now);
  return { user: name, ...terms, demand, share, held, recalled, waitedMs };
}
