/**
 * Chooses which members must release a connection when none is free for a waiter. For each budget that lacks a lease,
 * and only if that helps: first users above their share and connections that are idle for a while; then dials that hang;
 * then, for users with nothing, users that have had their slot turn, which is short while there are users without a
 * turn. Idle connections go before busy ones, and those of users that have left before all others. No more is recalled
 * than there are claims to.
 */
import type { FairPolicy } from './fair-policy.js';
import type { Budget, FairUser, Member, Recall, Seat } from './fair-seats.js';
import { Rank } from './rank.js';
import { rankIn } from './ranking.js';
import type { SilentServers } from './silent-servers.js';
import { Victims } from './victims.js';
import type { WaitingQueue } from './waiting-queue.js';

/** The state in which recalls are planned. */
export interface Shortage {
  /** Budgets that can be short. */
  readonly budgets: readonly Budget[];
  readonly line: WaitingQueue;
  /** Members that hold at least one lease. */
  readonly holding: ReadonlySet<Member>;
  readonly silent: SilentServers;
  readonly policy: FairPolicy;
  readonly now: number;
}

let looks = 0;

/** Asks connections back. */
export function planRecalls(shortage: Shortage): void {
  new RecallPlanner(shortage).make();
}

class RecallPlanner {
  readonly #shortage: Shortage;
  readonly #victims = new Map<Budget, Victims>();
  /** Leases on their way to each member, by budget. */
  readonly #expected = new Map<Member, Map<Budget, number>>();
  /** Claims that were met in this round, as far as possible. */
  readonly #served = new Map<Member, number>();
  readonly #look = ++looks;

  constructor(shortage: Shortage) {
    this.#shortage = shortage;
    for (const budget of shortage.budgets) this.#lookAround(budget);
  }

  make(): void {
    const { budgets, line } = this.#shortage;
    this.#countComing();
    for (const budget of budgets) this.#recallExcess(budget);
    for (const member of line) {
      if (!isInNeed(member)) continue;
      if (member.rank === Rank.wish) this.#fulfil(member);
      else this.#serve(member);
    }
    this.#forgetOldRecalls();
  }

  #lookAround(budget: Budget): void {
    const { now } = this.#shortage;
    budget.available = budget.free;
    budget.usersHolding = 0;
    for (const member of budget.holding)
      for (const { user, budget: of } of member.seats) {
        if (of !== budget) continue;
        if (Number.isNaN(user.openSince) && member.pending < member.held) user.openSince = now;
        if (user.seenIn === this.#look) continue;
        user.seenIn = this.#look;
        budget.usersHolding++;
      }
  }

  *#recalls(): Iterable<Recall> {
    for (const { recalls } of this.#shortage.holding) yield* recalls;
  }

  /** Leases that were asked for a moment ago are on their way. */
  #countComing(): void {
    const { policy, now, silent } = this.#shortage;
    for (const recall of [...this.#recalls()]) {
      const { for: whom } = recall;
      if (whom !== undefined && !(whom.isWaiting && isInNeed(whom) && silent.mayDial(whom)))
        recall.for = undefined;
      // A hanging dial can be given up for another member, and would not end otherwise.
      if (recall.for === undefined && silent.isInVain(recall.of) && !isExceeded(recall)) {
        recall.of.forget(recall);
        continue;
      }
      if (now - recall.at < policy.patience) this.#count(recall);
    }
  }

  /** A recall for one member is for no other. */
  #count({ of, for: whom }: Recall): void {
    if (whom === undefined) {
      for (const { budget } of of.seats) budget.available++;
      return;
    }
    const expected = this.#expected.get(whom) ?? new Map<Budget, number>();
    this.#expected.set(whom, expected);
    for (const { budget } of of.seats) {
      if (whom.seats.some((seat) => seat.budget === budget))
        expected.set(budget, (expected.get(budget) ?? 0) + 1);
      else budget.available++;
    }
  }

  /** Leases above the capacity have no turn. */
  #recallExcess(budget: Budget): void {
    while (budget.available < 0) {
      const victim = this.#victimsOf(budget).forExcess();
      if (victim === undefined || !this.#recall(victim, undefined)) return;
    }
  }

  /** Meets the claim of a member, as far as others must yield to it. */
  #serve(member: Member): void {
    while (this.#hasClaim(member) && this.#serveOne(member, (seat) => this.#victimFor(seat))) {
      for (const { user } of member.seats) user.claimLeft--;
      this.#served.set(member, this.#servedTo(member) + 1);
    }
  }

  #servedTo(member: Member): number {
    return this.#served.get(member) ?? 0;
  }

  /** Meets a wish beyond the share: only connections that are idle for long. */
  #fulfil(member: Member): void {
    if (this.#shortage.silent.mayDial(member))
      this.#serveOne(member, (seat) => this.#victimsOf(seat.budget).forWish(seat));
  }

  /** Recalls every lease that one more connection lacks, or none. */
  #serveOne(member: Member, victimFor: (seat: Seat) => Member | undefined): boolean {
    const expected = this.#expected.get(member);
    const victims: Member[] = [];
    const used: Budget[] = [];
    for (const seat of member.seats) {
      const { budget } = seat;
      if (budget.isIdle || (expected?.get(budget) ?? 0) > 0) continue;
      if (budget.available > 0) {
        used.push(budget);
        continue;
      }
      if (gained(victims, budget) > 0) continue;
      const victim = victimFor(seat);
      if (victim === undefined) return false;
      victims.push(victim);
    }
    for (const [budget, count] of expected ?? []) expected?.set(budget, count - 1);
    for (const budget of used) budget.available--;
    for (const victim of victims) this.#recall(victim, member);
    return true;
  }

  /**
   * True if the member has a claim to one more in this round: in each budget as many as its user is below its share; at
   * least one for a user with nothing, and one for a pool that has less than its part of its user's leases.
   */
  #hasClaim(member: Member): boolean {
    const served = this.#servedTo(member);
    if (served >= Math.max(member.wanted, member.demand - member.held)) return false;
    if (!this.#shortage.silent.mayDial(member)) return false;
    for (const { user, budget } of member.seats) {
      if (budget.isIdle) continue;
      this.#openClaim(user);
      const isAtShare = user.held > 0 && user.held >= user.share;
      if (isAtShare ? served > 0 : user.claimLeft <= 0) return false;
    }
    return true;
  }

  #openClaim(user: FairUser): void {
    const mark = -this.#look;
    if (user.seenIn === mark) return;
    user.seenIn = mark;
    user.claimLeft = Math.max(user.share - user.held, user.held === 0 ? 1 : 0);
  }

  #victimFor(seat: Seat): Member | undefined {
    const victims = this.#victimsOf(seat.budget);
    const rank = rankIn(seat);
    if (rank === Rank.belowPart) return victims.ofSameUser(seat);
    return rank === Rank.wish ? victims.forWish(seat) : victims.forClaim(seat, rank);
  }

  #victimsOf(budget: Budget): Victims {
    const known = this.#victims.get(budget);
    if (known !== undefined) return known;
    const { policy, now, line, silent } = this.#shortage;
    const victims = new Victims(budget, { policy, now, line, silent });
    this.#victims.set(budget, victims);
    return victims;
  }

  #recall(victim: Member, whom: Member | undefined): boolean {
    const recall = victim.recallOne(this.#shortage.now, whom);
    if (recall === undefined) return false;
    for (const { budget } of victim.seats) {
      budget.recalls++;
      // Leases of budgets in which the claimant has no seat are free for all.
      if (whom === undefined || !whom.seats.some((seat) => seat.budget === budget)) budget.available++;
    }
    return true;
  }

  /** Withdraws recalls without a claim, unless they were made a moment ago. */
  #forgetOldRecalls(): void {
    const { line, policy, now } = this.#shortage;
    const keptMs = line.size === 0 ? 0 : policy.patience;
    for (const recall of [...this.#recalls()]) {
      const isNeeded = recall.for !== undefined || isExceeded(recall);
      if (isNeeded || now - recall.at < keptMs) continue;
      recall.of.forget(recall);
    }
  }
}

/**
 * A pool never withdraws its request, although its callers may have been served by its own connections, or have left, since:
 * a lease recalled for it would close a connection in vain.
 */
function isInNeed({ need, held }: Member): boolean {
  return need > held;
}

/** The recall is due to a budget that has shrunk below the leases held. */
function isExceeded({ of }: Recall): boolean {
  return of.seats.some(({ budget }) => budget.free < 0);
}

/** Number of victims with a seat in this budget. */
function gained(victims: readonly Member[], budget: Budget): number {
  let gain = 0;
  for (const { seats } of victims) if (seats.some((seat) => seat.budget === budget)) gain++;
  return gain;
}
