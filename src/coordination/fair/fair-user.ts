/** Someone who has a share of a budget, whatever the number of its pools. They are counted here and nowhere else. */
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
  /** The most that was needed of late, or is expected; and the share that fairness gives. */
  demand = 0;
  share = 0;
  held = 0;
  /** Of those held: asked back, and not back yet. */
  recalled = 0;
  /** Pools of it that wait. */
  waiting = 0;
  /** Since when it has held any, or did last; and since when one of them could be used, NaN where that is not known. */
  turnBeganAt = Number.NEGATIVE_INFINITY;
  openSince = Number.NaN;
  /** One of its pools gives way to another: that is still the same turn. */
  isHandingOver = false;
  /** Since when it has held none. */
  emptySince = Number.NEGATIVE_INFINITY;
  /** For several pools: gives each its part. */
  splitter: FairShareAllocator | undefined;
  /** The look in which it was seen last, so that nobody is counted twice; and what it may claim yet in that look. */
  seenIn = 0;
  claimLeft = 0;

  constructor(name: string, budget: FairBudget) {
    this.name = name;
    this.budget = budget;
    this.splitter = undefined;
  }

  /** Since when it waits, of all its pools; undefined where none does. */
  get waitingSince(): number | undefined {
    if (this.waiting === 0) return undefined;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { member } of this.seats) if (member.waitingSince < earliest) earliest = member.waitingSince;
    return earliest;
  }

  /** Connections that it will have left when what was recalled is back. */
  get kept(): number {
    return this.held - this.recalled;
  }

  /** The promised minimum, as far as it can be kept. */
  get promise(): number {
    return Math.min(this.terms.minimum, this.share);
  }

  /** Whether someone is there who could use what it has. */
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
