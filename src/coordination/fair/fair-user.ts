/** A user with a share of a budget, whatever the number of its pools. Users are counted only here. */
import type { FairShareAllocator } from '../../core/fair-share.js';
import type { FairBudget } from './fair-budget.js';
import type { FairMember } from './fair-member.js';
import { usualTerms } from './fair-policy.js';

/** The part of one pool in one budget. */
export class Seat {
  readonly budget: FairBudget;
  readonly member: FairMember;
  user: FairUser;
  /** Its part of the user's share. */
  share = 0;

  constructor(budget: FairBudget, member: FairMember, user: FairUser) {
    this.budget = budget;
    this.member = member;
    this.user = user;
  }
}

export class FairUser {
  readonly name: string;
  readonly budget: FairBudget;
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

  constructor(name: string, budget: FairBudget) {
    this.name = name;
    this.budget = budget;
    this.splitter = undefined;
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

  /** Whether there are clients that could use its connections. */
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
