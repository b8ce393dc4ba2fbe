/** From what users needed of late to their shares, and from those to the shares of their pools. */
import { DemandTracker } from '../../core/demand-tracker.js';
import { FairShareAllocator } from '../../core/fair-share.js';
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
  readonly #trackers = new WeakMap<FairUser, DemandTracker>();
  /** Remembers what users needed, whether or not it is asked. */
  readonly #forecaster = new Forecaster();
  /** For users with several pools. */
  readonly #splitters = new WeakMap<FairUser, FairShareAllocator>();

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
      if (isOther) this.#trackers.set(user, this.#newTracker());
    }
  }

  welcome(user: FairUser): void {
    user.terms = this.#policy.termsOf(user.name);
    this.#trackers.set(user, this.#newTracker());
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
      users: users.map((user) => ({
        key: user.name,
        demand: user.demand,
        ...user.terms,
        isActive: user.demand > 0,
        waitingSince: user.held > 0 ? Number.NEGATIVE_INFINITY : user.waitingSince,
      })),
    });
    const byName = new Map(changes.map((change) => [change.key, change]));
    const told: ShareChange[] = [];
    for (const user of users) {
      const change = byName.get(user.name);
      if (change !== undefined) {
        const { from, to, reason } = change;
        user.share = to;
        told.push({ user: user.name, from, to, demand: user.demand, reason });
      }
      this.#split(user);
    }
    return told;
  }

  #lookAtDemand(user: FairUser, now: number, isRound: boolean): void {
    const tracker = this.#trackers.get(user) as DemandTracker;
    let peak = 0;
    for (const member of user.members) peak += member.takeDemandPeak();
    tracker.note(peak);
    user.demand = tracker.peak;
    if (isRound) {
      this.#forecaster.record(user.name, tracker.present, now);
      tracker.endInterval(0);
    }
    if (this.#policy.foresees) {
      const { demand } = this.#forecaster.estimate(user.name, user.demand, now, user.terms.maximum);
      user.demand = demand;
    }
  }

  /** Each pool of the user has a part of its share, by what it needs now. */
  #split(user: FairUser): void {
    const [only] = user.members;
    if (only !== undefined && user.members.size === 1) {
      only.share = user.share;
      return;
    }
    let splitter = this.#splitters.get(user);
    if (splitter === undefined) {
      splitter = new FairShareAllocator({ shrinkAfter: 1 });
      this.#splitters.set(user, splitter);
    }
    const { shares } = splitter.allocate({
      capacity: user.share,
      users: Array.from(user.members, shareUserOf),
    });
    for (const member of user.members) member.share = shares.get(member.key) ?? 0;
  }
}

function shareUserOf(member: FairMember): Parameters<FairShareAllocator['allocate']>[0]['users'][number] {
  const { key, demand, waitingSince, held } = member;
  const isActive = demand > 0;
  return member.isWaiting && held === 0
    ? { key, demand, weight: 1, isActive, waitingSince }
    : { key, demand, weight: 1, isActive };
}
