/** From what users needed of late to their shares of a budget, and from those to the shares of their pools. */
import { DemandTracker } from '../../core/demand-tracker.js';
import { FairShareAllocator, type ShareUser } from '../../core/fair-share.js';
import { Forecaster } from '../../core/forecaster.js';
import type { ShareReason } from '../../core/share-reasons.js';
import type { FairPolicy } from './fair-policy.js';
import type { FairUser, Seat } from './fair-user.js';

/** Why the shares were looked at. */
export type RebalanceReason =
  | 'interval'
  | 'newcomer'
  | 'wait'
  | 'release'
  | 'capacity'
  | 'configuration'
  | 'asked';

/** One share that is another than before. */
export interface ShareChange {
  readonly user: string;
  readonly from: number;
  readonly to: number;
  readonly demand: number;
  readonly reason: ShareReason;
}

/** A look at the shares. */
export interface ShareLook {
  readonly policy: FairPolicy;
  readonly now: number;
  /** An interval is over. Otherwise it is a look in between. */
  readonly isRound: boolean;
}

/** The shares of one budget. */
export class Shares {
  readonly #allocator = new FairShareAllocator();
  /** Remembers what users needed, while it is asked. */
  readonly #forecaster = new Forecaster();

  /** Members have noted their peaks, and smaller budgets have given out their shares. */
  allocate(users: readonly FairUser[], capacity: number, look: ShareLook): ShareChange[] {
    for (const user of users) this.#lookAtDemand(user, look);
    const [only] = users;
    // Most users have no database but one: there is nothing to share out.
    if (only !== undefined && users.length === 1 && isContent(only, capacity)) return [];
    const { changes } = this.#allocator.allocate({
      capacity,
      isRound: look.isRound,
      users: users.map(shareUserOf),
    });
    const told: ShareChange[] = [];
    for (const user of users) {
      // Changes come in the order of the users.
      const change = changes[told.length];
      if (change?.key === user.name) {
        const { from, to, reason } = change;
        user.share = to;
        told.push({ user: user.name, from, to, demand: user.demand, reason });
      }
      split(user);
    }
    return told;
  }

  #lookAtDemand(user: FairUser, { policy, now, isRound }: ShareLook): void {
    let peak = 0;
    let most = 0;
    for (const seat of user.seats) {
      peak += seat.member.peak;
      most += usableBy(seat);
    }
    const tracker = trackerOf(user, policy);
    if (isDeserted(user, peak, now, policy.clientGrace)) user.tracker = newTracker(policy);
    else tracker.note(peak);
    user.demand = Math.min(user.tracker?.peak ?? 0, most);
    const { foresees } = policy;
    if (isRound) {
      if (foresees) this.#forecaster.record(user.name, tracker.present, now);
      tracker.endInterval(0);
    }
    if (foresees) {
      const { demand } = this.#forecaster.estimate(user.name, user.demand, now, user.terms.maximum);
      user.demand = Math.min(demand, most);
    }
  }
}

/** A budget that can't be the one that is short has the shares of those that decide. */
export function followShares(users: Iterable<FairUser>): void {
  for (const user of users) {
    user.share = user.demand = 0;
    for (const seat of user.seats) {
      const deciding = seat.member.seats.filter(({ budget }) => !budget.isIdle);
      seat.share = Math.min(...deciding.map(({ share }) => share));
      user.share += seat.share;
      user.demand += Math.min(...deciding.map((other) => other.user.demand));
    }
    user.share = Math.min(user.share, user.budget.capacity);
  }
}

/** Alone, and it has all that it may have. */
function isContent({ share, demand, terms, seats }: FairUser, capacity: number): boolean {
  const due = demand > 0 ? Math.min(capacity, terms.maximum) : 0;
  if (share !== due || seats.size > 1) return false;
  for (const seat of seats) if (seat.share !== share) return false;
  return true;
}

function trackerOf(user: FairUser, policy: FairPolicy): DemandTracker {
  user.tracker ??= newTracker(policy);
  return user.tracker;
}

function newTracker({ demandWindow: window, rebalanceInterval: interval }: FairPolicy): DemandTracker {
  return new DemandTracker({ window, interval });
}

/** A user without clients needs nothing, but for a moment: they may come back. */
function isDeserted(user: FairUser, peak: number, now: number, graceMs: number): boolean {
  if (user.hasClients) {
    user.desertedSince = Number.NaN;
    return false;
  }
  if (Number.isNaN(user.desertedSince)) user.desertedSince = now;
  return peak === 0 && now - user.desertedSince >= graceMs;
}

/** The most that a pool can use of a budget: no more than its other ones give it, of those that were shared out before this one. */
function usableBy({ budget, member }: Seat): number {
  let usable = member.most;
  for (const seat of member.seats) {
    if (seat.budget === budget) break;
    if (!seat.budget.isIdle) usable = Math.min(usable, Math.max(seat.share, member.held));
  }
  return usable;
}

function shareUserOf(user: FairUser): ShareUser {
  const { name: key, demand, held } = user;
  const { weight, maximum } = user.terms;
  // A promise is for what is needed.
  const minimum = Math.min(user.terms.minimum, demand);
  // A user that holds something keeps its turn. The slot that goes round whatever is promised is for those to whom nothing is.
  let waitingSince = held > 0 ? Number.NEGATIVE_INFINITY : user.waitingSince;
  if (minimum > 0) waitingSince = Number.POSITIVE_INFINITY;
  return { key, demand, weight, minimum, maximum, isActive: demand > 0, waitingSince };
}

/** Each pool of the user has a part of its share, by what it needs now. */
function split(user: FairUser): void {
  if (user.seats.size === 1) {
    for (const only of user.seats) only.share = user.share;
    return;
  }
  user.splitter ??= new FairShareAllocator({ shrinkAfter: 1 });
  const { shares } = user.splitter.allocate({
    capacity: user.share,
    users: Array.from(user.seats, poolOf),
  });
  for (const seat of user.seats) seat.share = shares.get(seat.member.key) ?? 0;
}

function poolOf({ member }: Seat): ShareUser {
  const { key, demand, waitingSince, held, isWaiting } = member;
  const since = isWaiting && held === 0 ? waitingSince : undefined;
  return { key, demand, weight: 1, isActive: demand > 0, waitingSince: since };
}
