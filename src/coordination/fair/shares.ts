/** From what users needed of late to their shares, and from those to the shares of their pools. */
import { DemandTracker } from '../../core/demand-tracker.js';
import { FairShareAllocator, type ShareUser } from '../../core/fair-share.js';
import { Forecaster } from '../../core/forecaster.js';
import type { ShareReason } from '../../core/share-reasons.js';
import type { FairMember, FairUser } from './fair-members.js';
import type { FairPolicy } from './fair-policy.js';

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

export class Shares {
  #policy: FairPolicy;
  readonly #allocator = new FairShareAllocator();
  /** Remembers what users needed, while it is asked. */
  readonly #forecaster = new Forecaster();

  constructor(policy: FairPolicy) {
    this.#policy = policy;
  }

  /** Other rules. A window of another length begins anew. */
  change(policy: FairPolicy, users: Iterable<FairUser>): void {
    const { demandWindow, rebalanceInterval } = this.#policy;
    const isOther = policy.demandWindow !== demandWindow || policy.rebalanceInterval !== rebalanceInterval;
    this.#policy = policy;
    for (const user of users) {
      user.terms = policy.termsOf(user.name);
      if (isOther) user.tracker = this.#newTracker();
    }
  }

  welcome(user: FairUser): void {
    user.terms = this.#policy.termsOf(user.name);
    user.tracker = this.#newTracker();
  }

  #newTracker(): DemandTracker {
    const { demandWindow: window, rebalanceInterval: interval } = this.#policy;
    return new DemandTracker({ window, interval });
  }

  /** `isRound`: an interval is over. Otherwise it is a look in between. */
  allocate(users: readonly FairUser[], now: number, isRound: boolean): ShareChange[] {
    for (const user of users) this.#lookAtDemand(user, now, isRound);
    const { changes } = this.#allocator.allocate({
      capacity: this.#policy.capacity,
      isRound,
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

  #lookAtDemand(user: FairUser, now: number, isRound: boolean): void {
    const tracker = user.tracker as DemandTracker;
    let peak = 0;
    for (const member of user.members) peak += member.takeDemandPeak();
    tracker.note(peak);
    user.demand = tracker.peak;
    const { foresees } = this.#policy;
    if (isRound) {
      if (foresees) this.#forecaster.record(user.name, tracker.present, now);
      tracker.endInterval(0);
    }
    if (foresees) {
      const { demand } = this.#forecaster.estimate(user.name, user.demand, now, user.terms.maximum);
      user.demand = demand;
    }
  }
}

function shareUserOf(user: FairUser): ShareUser {
  const { name: key, demand, held } = user;
  const { weight, minimum, maximum } = user.terms;
  const waitingSince = held > 0 ? Number.NEGATIVE_INFINITY : user.waitingSince;
  return { key, demand, weight, minimum, maximum, isActive: demand > 0, waitingSince };
}

/** Each pool of the user has a part of its share, by what it needs now. */
function split(user: FairUser): void {
  if (user.members.size === 1) {
    for (const only of user.members) only.share = user.share;
    return;
  }
  user.splitter ??= new FairShareAllocator({ shrinkAfter: 1 });
  const { shares } = user.splitter.allocate({
    capacity: user.share,
    users: Array.from(user.members, poolOf),
  });
  for (const member of user.members) member.share = shares.get(member.key) ?? 0;
}

function poolOf({ key, demand, waitingSince, held, isWaiting }: FairMember): ShareUser {
  const since = isWaiting && held === 0 ? waitingSince : undefined;
  return { key, demand, weight: 1, isActive: demand > 0, waitingSince: since };
}
