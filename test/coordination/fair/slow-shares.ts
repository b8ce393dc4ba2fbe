// The shares of budgets the slow way: every user and pool is visited for each budget, and nothing is kept in columns. Runs beside the real
// ones, on the same inputs, and compares.
import { expect, vi } from 'vitest';
import type { FairBudget } from '../../../src/coordination/fair/fair-budget.js';
import { FairMember } from '../../../src/coordination/fair/fair-member.js';
import type { FairUser, Member, Seat } from '../../../src/coordination/fair/fair-seats.js';
import { MemberColumns } from '../../../src/coordination/fair/member-columns.js';
import { rankOf } from '../../../src/coordination/fair/ranking.js';
import { type ShareChange, Shares } from '../../../src/coordination/fair/shares.js';
import type { ShareLook } from '../../../src/coordination/fair/user-columns.js';
import { WaitingQueue } from '../../../src/coordination/fair/waiting-queue.js';
import { DemandTracker } from '../../../src/core/demand-tracker.js';
import type { ShareUser } from '../../../src/core/fair-share.js';
import { Forecaster } from '../../../src/core/forecaster.js';
import { SlowAllocator } from '../../core/slow-allocator.js';

/** Of one look: what a pool needed, and could use if budgets had no end. */
interface Noted {
  peak: number;
  most: number;
}

interface Outcome {
  readonly demand: number;
  readonly share: number;
  readonly parts: readonly number[];
}

class SlowShares {
  readonly #allocator = new SlowAllocator();
  readonly #forecaster = new Forecaster();
  readonly #trackers = new Map<FairUser, DemandTracker>();
  readonly #desertedSince = new Map<FairUser, number>();
  readonly #splitters = new Map<FairUser, SlowAllocator>();

  allocate(
    { users: named, capacity }: FairBudget,
    look: ShareLook,
    noted: ReadonlyMap<Member, Noted>,
  ): { readonly changes: ShareChange[]; readonly outcomes: Map<FairUser, Outcome> } {
    const users = [...named.values()];
    const demands = new Map(users.map((user) => [user, this.#demandOf(user, look, noted)]));
    const { shares, changes } = this.#isSettled(users, capacity, demands)
      ? { shares: new Map(users.map(({ name, share }) => [name, share])), changes: [] }
      : this.#allocator.allocate({
          capacity,
          isRound: look.isRound,
          users: users.map((user) => shareUserOf(user, demands.get(user) as number)),
        });
    const outcomes = new Map<FairUser, Outcome>();
    for (const user of users) {
      const share = shares.get(user.name) as number;
      outcomes.set(user, { demand: demands.get(user) as number, share, parts: this.#split(user, share) });
    }
    const told = changes.map(({ key, ...change }) => ({
      user: key,
      ...change,
      demand: demands.get(named.get(key) as FairUser) as number,
    }));
    return { changes: told, outcomes };
  }

  forgetDemand(): void {
    this.#trackers.clear();
  }

  #isSettled(users: readonly FairUser[], capacity: number, demands: ReadonlyMap<FairUser, number>): boolean {
    const [only] = users;
    if (only === undefined || users.length > 1 || only.seats.length > 1) return false;
    const due = (demands.get(only) as number) > 0 ? Math.min(capacity, only.terms.maximum) : 0;
    return only.share === due && only.seats.every(({ share }) => share === due);
  }

  #demandOf(user: FairUser, look: ShareLook, noted: ReadonlyMap<Member, Noted>): number {
    const { policy, now, isRound } = look;
    const peak = sum(user.seats, ({ member }) => noted.get(member)?.peak ?? 0);
    const most = sum(user.seats, (seat) => usableBy(seat, noted.get(seat.member)?.most ?? 0));
    const options = { window: policy.demandWindow, interval: policy.rebalanceInterval };
    const tracker = this.#trackers.get(user) ?? new DemandTracker(options);
    this.#trackers.set(user, tracker);
    const since = user.hasClients ? undefined : (this.#desertedSince.get(user) ?? now);
    if (since === undefined) this.#desertedSince.delete(user);
    else this.#desertedSince.set(user, since);
    const isDeserted = peak === 0 && since !== undefined && now - since >= policy.clientGrace;
    if (isDeserted) this.#trackers.set(user, new DemandTracker(options));
    else tracker.note(peak);
    const measured = Math.min(isDeserted ? 0 : tracker.peak, most);
    if (isRound && policy.foresees) this.#forecaster.record(user.name, tracker.present, now);
    if (isRound) tracker.endInterval(0);
    if (!policy.foresees) return measured;
    return Math.min(this.#forecaster.estimate(user.name, measured, now, user.terms.maximum).demand, most);
  }

  #split(user: FairUser, share: number): number[] {
    if (user.seats.length === 1) return [share];
    const splitter = this.#splitters.get(user) ?? new SlowAllocator(0, 1);
    this.#splitters.set(user, splitter);
    const { shares } = splitter.allocate({ capacity: share, users: user.seats.map(poolOf) });
    return user.seats.map(({ member }) => shares.get(member.key) as number);
  }
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** No more than its other budgets give it, of those that are shared out before this one. */
function usableBy({ budget, member }: Seat, most: number): number {
  const before = member.seats.slice(
    0,
    member.seats.findIndex((seat) => seat.budget === budget),
  );
  const shares = before
    .filter((seat) => !seat.budget.isIdle)
    .map(({ share }) => Math.max(share, member.held));
  return Math.min(most, ...shares);
}

function shareUserOf(user: FairUser, demand: number): ShareUser {
  const { weight, maximum } = user.terms;
  const minimum = Math.min(user.terms.minimum, demand);
  const since = user.held > 0 ? Number.NEGATIVE_INFINITY : user.waitingSince;
  const waitingSince = minimum > 0 ? undefined : since;
  return { key: user.name, demand, weight, minimum, maximum, isActive: demand > 0, waitingSince };
}

function poolOf({ member }: Seat): ShareUser {
  const { key, demand, waitingSince, held, isWaiting } = member;
  const since = isWaiting && held === 0 ? waitingSince : undefined;
  return { key, demand, weight: 1, isActive: demand > 0, waitingSince: since };
}

/** Of a budget that can't be the one that is short. */
function followed(user: FairUser, capacity: number): Outcome {
  const decidingOf = ({ member }: Seat): Seat[] => member.seats.filter(({ budget }) => !budget.isIdle);
  const parts = user.seats.map((seat) => Math.min(...decidingOf(seat).map(({ share }) => share)));
  const demand = sum(user.seats, (seat) => Math.min(...decidingOf(seat).map((other) => other.user.demand)));
  return {
    demand,
    share: Math.min(
      capacity,
      sum(parts, (part) => part),
    ),
    parts,
  };
}

function outcomeOf({ demand, share, seats }: FairUser): Outcome {
  return { demand, share, parts: seats.map((seat) => seat.share) };
}

/** From now on, every look at shares is taken twice. Says how many were. */
export function compareWithSlowShares(): { readonly looks: number } {
  const seen = { looks: 0 };
  const slow = new WeakMap<Shares, SlowShares>();
  const slowOf = (shares: Shares): SlowShares => {
    const known = slow.get(shares) ?? new SlowShares();
    slow.set(shares, known);
    return known;
  };
  const noted = new Map<FairMember, Noted>();
  const { takePeak } = FairMember.prototype;
  vi.spyOn(FairMember.prototype, 'takePeak').mockImplementation(function (this: FairMember) {
    const peak = takePeak.call(this);
    noted.set(this, { peak, most: Number.POSITIVE_INFINITY });
    return peak;
  });
  const { note } = MemberColumns.prototype;
  vi.spyOn(MemberColumns.prototype, 'note').mockImplementation(function (this: MemberColumns, silent) {
    noted.clear();
    note.call(this, silent);
    if (silent.size > 0) for (const [member, one] of noted) one.most = silent.mostOf(member);
  });
  const { allocate, follow, forgetDemand } = Shares.prototype;
  vi.spyOn(Shares.prototype, 'allocate').mockImplementation(function (this: Shares, budget, look) {
    seen.looks++;
    const expected = slowOf(this).allocate(budget as FairBudget, look, noted);
    const changes = allocate.call(this, budget, look);
    for (const [user, outcome] of expected.outcomes)
      expect({ user: user.name, ...outcomeOf(user) }).toEqual({ user: user.name, ...outcome });
    expect(changes).toEqual(expected.changes);
    return changes;
  });
  vi.spyOn(Shares.prototype, 'follow').mockImplementation(function (this: Shares, budget, look) {
    follow.call(this, budget, look);
    for (const user of (budget as FairBudget).users.values())
      expect(outcomeOf(user)).toEqual(followed(user, budget.capacity));
  });
  vi.spyOn(Shares.prototype, 'forgetDemand').mockImplementation(function (this: Shares) {
    slowOf(this).forgetDemand();
    forgetDemand.call(this);
  });
  const { rerankMarked } = WaitingQueue.prototype;
  vi.spyOn(WaitingQueue.prototype, 'rerankMarked').mockImplementation(function (this: WaitingQueue, isAll) {
    rerankMarked.call(this, isAll);
    for (const member of this) expect(member.rank).toBe(rankOf(member));
  });
  return seen;
}
