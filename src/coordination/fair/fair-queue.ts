/**
 * One queue for all budgets of connections that are shared fairly between users: decides who may hold one more
 * connection, and who must release one for it.
 *
 * A connection takes a lease of every budget that its pool has a seat in, all of them at once or none. Shares are
 * targets, leases are the truth: nothing is granted beyond a capacity, whatever the shares say. A free lease goes to the
 * first waiter for whom every budget has one; a waiter that lacks another lease is passed over, and keeps its place.
 * Only when nothing is free do the shares decide: a user below its share has a claim, and a user above its share is
 * asked to close connections. A lease moves only when its connection is closed; and a lease recalled for a waiter goes
 * to that waiter.
 *
 * With more users than leases, users take slot turns: a user with nothing comes before all others except those with a
 * larger promise, the longest wait first, and a user that has had its turn yields. A turn is long enough to be worth a
 * new connection.
 */
import type { LeaseAnswer } from '../../core/leases.js';
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';
import { isCount } from '../lease-book.js';
import { tell } from '../tell.js';
import { type BudgetEvents, type BudgetParts, FairBudget } from './fair-budget.js';
import type { FairHolder, Tenant } from './fair-holder.js';
import { FairMember, type MemberEvents, type SeatWish } from './fair-member.js';
import type { FairPolicy } from './fair-policy.js';
import type { Budget, Member, Recall } from './fair-seats.js';
import { MemberColumns } from './member-columns.js';
import { planRecalls } from './recall-planner.js';
import type { RebalanceReason } from './shares.js';
import { SilentServers } from './silent-servers.js';
import type { ShareLook } from './user-columns.js';
import { WaitingQueue } from './waiting-queue.js';

export interface FairQueueParts {
  readonly policy: FairPolicy;
  readonly clock: Clock;
  readonly alarm: AlarmFactory;
}

/** Limits the load of long work: at most one part in this many of the time goes into it. */
const restAfterWork = 10;
/** Number of turns for which leases are kept for a waiter that lacks another one. */
const keptForTurns = 2;

export class FairQueue implements MemberEvents, BudgetEvents {
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  #policy: FairPolicy;
  readonly #budgets = new Set<FairBudget>();
  /** Budgets with a limit, small ones before those that contain them; undefined until computed. */
  #limitedOnes: readonly FairBudget[] | undefined;
  readonly #columns = new MemberColumns();
  layout = 0;
  readonly #line = new WaitingQueue();
  readonly #silent = new SilentServers();
  /** Members that hold at least one lease. */
  readonly #holding = new Set<Member>();
  /** Members that asked for leases after they left, for callers they still had, which may have given up since. */
  readonly #leaving = new Set<Member>();
  /** There may be recalled leases that have not come back. */
  #mayHaveRecalled = false;
  #isGoingRound = false;
  #alarmAt = Number.POSITIVE_INFINITY;
  #nextRoundAt: number;
  #mayLookAt = Number.NEGATIVE_INFINITY;
  #mayRebalanceAt = Number.NEGATIVE_INFINITY;
  /** The reason to compute the shares before the next round. */
  #pressing: RebalanceReason | undefined;

  constructor({ policy, clock, alarm }: FairQueueParts) {
    this.#policy = policy;
    this.#clock = clock;
    this.#alarm = alarm(() => this.#rang());
    this.#nextRoundAt = clock.now() + policy.rebalanceInterval;
  }

  now(): number {
    return this.#clock.now();
  }

  layoutChanged(): void {
    this.layout++;
  }

  limitsChanged(): void {
    this.#limitedOnes = undefined;
    this.#columns.forgetLimits();
  }

  entered(member: Member): void {
    this.#columns.add(member);
  }

  exited(member: Member): void {
    this.#columns.remove(member);
  }

  // ---- budgets and members ----------------------------------------------------------------------------------------

  addBudget(parts: BudgetParts): FairBudget {
    const budget = new FairBudget(parts, this);
    this.#budgets.add(budget);
    this.#limitedOnes = undefined;
    return budget;
  }

  removeBudget(budget: FairBudget): void {
    this.#budgets.delete(budget);
    this.#limitedOnes = undefined;
  }

  get #limited(): readonly FairBudget[] {
    this.#limitedOnes ??= [...this.#budgets]
      .filter(({ isLimited }) => isLimited)
      .sort((one, other) => one.size - other.size);
    return this.#limitedOnes;
  }

  /** Adds a pool of this user. Its seats: small budgets first. */
  join(tenant: Tenant, seats: readonly SeatWish[]): FairMember {
    return new FairMember(tenant, seats, this);
  }

  left(member: Member): void {
    this.#line.remove(member);
    member.hasLeft = true;
    this.#forgetIfOver(member);
    // Leases that were kept for it are for others.
    this.#settle(member);
  }

  /** Forgets members that left: a pool that has ended never withdraws its request. */
  #forgetLeaving(): void {
    for (const member of this.#leaving) {
      if (member.isWaiting && member.demand > 0) continue;
      this.#leaving.delete(member);
      this.#line.remove(member);
      this.#forgetIfOver(member);
    }
  }

  #forgetIfOver(member: Member): void {
    if (member.hasLeft && member.held === 0 && !member.isWaiting && !member.isForgotten) member.exit();
  }

  /** Changes the rules. A window of another length begins anew. */
  change(policy: FairPolicy): void {
    const { demandWindow, rebalanceInterval } = this.#policy;
    this.#policy = policy;
    if (policy.demandWindow !== demandWindow || policy.rebalanceInterval !== rebalanceInterval)
      for (const { shares } of this.#budgets) shares.forgetDemand();
    this.#rebalance('configuration', this.#clock.now());
    this.#settle(undefined);
  }

  /** The rules of a budget are others than before. */
  changed(reason: RebalanceReason): void {
    if (reason === 'configuration') this.#rebalance(reason, this.#clock.now());
    else this.#press(reason);
    this.#settle(undefined);
  }

  rebalanceNow(): void {
    this.#rebalance('asked', this.#clock.now());
    this.#settle(undefined);
  }

  // ---- calls from members -----------------------------------------------------------------------------------------

  mayAcquire(member: Member, count: number): boolean {
    return !this.#isGoingRound && this.#line.size === 0 && this.#hasRoom(member, count);
  }

  acquire(member: Member, count: number, holder: FairHolder): LeaseAnswer {
    if (!isCount(count)) return new RangeError(`One can't ask for ${count} leases.`);
    if (member.isForgotten) member.enter();
    if (this.mayAcquire(member, count)) {
      this.#grant(member, count, holder);
      return 'granted';
    }
    this.#wait(member, count);
    if (this.#isGoingRound || this.#next(undefined) !== member) return 'asking';
    this.#grant(member, count, holder);
    return 'granted';
  }

  #grant(member: Member, count: number, holder: FairHolder): void {
    for (const { user, budget } of member.seats)
      if (user.share === 0 && budget.isLimited) this.#press('newcomer');
    this.#line.remove(member);
    member.grant(count, holder);
    this.#silent.granted(member);
    this.#holding.add(member);
    this.#rerank(member);
    this.#lookBy(this.#nextRoundAt);
  }

  #rerank(member: Member): void {
    if (this.#line.size > 0) for (const { user } of member.seats) this.#line.rerankUser(user);
  }

  #wait(member: Member, count: number): void {
    if (!member.isWaiting) {
      for (const { user, share, budget } of member.seats)
        if (budget.isLimited && (user.held >= user.share || member.held >= share))
          this.#press(user.held === 0 ? 'newcomer' : 'wait');
      // Not from inside the call of the member that asks. A member that waits already has a check planned.
      this.#lookSoon();
    }
    if (member.hasLeft) this.#leaving.add(member);
    this.#line.add(member, count, this.#clock.now());
  }

  released(member: Member, count: number, arrived: readonly Recall[]): void {
    const now = this.#clock.now();
    if (member.held === 0) this.#holding.delete(member);
    this.#silent.released(member);
    this.#forgetIfOver(member);
    for (const recall of arrived) {
      const whom = recall.for;
      recall.for = undefined;
      if (whom === undefined) continue;
      this.#line.becomesDue(whom, now);
      for (const { user } of member.seats)
        user.isHandingOver = user.held === 0 && whom.seats.some((seat) => seat.user === user);
    }
    this.#rerank(member);
    for (const { budget } of member.seats) {
      budget.givenBack += count;
      if (budget.givenBack >= budget.capacity * this.#policy.largeRelease) this.#press('release');
    }
    this.#settle(member);
    for (const { budget } of member.seats) budget.tellBalance();
  }

  // ---- assignment -------------------------------------------------------------------------------------------------

  /** Grants free leases. `caller`: the member inside whose call this runs, which can't be called back now. */
  #settle(caller: Member | undefined): void {
    if (this.#isGoingRound) return;
    this.#isGoingRound = true;
    for (let next = this.#next(caller); next !== undefined; next = this.#next(caller)) this.#handOut(next);
    this.#isGoingRound = false;
    // Either the caller is next, and is told after its call, or there is more to do than to grant.
    if (caller?.isWaiting === true && this.#next(undefined) !== undefined) this.#lookSoon();
    else if (this.#isShort()) this.#lookBy(this.#clock.now() + this.#lookInterval);
  }

  #handOut(member: Member): void {
    const holder = member.latestHolder as FairHolder;
    const count = member.wanted;
    this.#grant(member, count, holder);
    let taken = 0;
    tell(() => {
      taken = holder.leasesGranted(count);
    });
    if (taken >= count) return;
    member.ungrant(count - taken, holder);
    this.#silent.released(member);
    if (member.held === 0) this.#holding.delete(member);
    this.#rerank(member);
    this.#forgetIfOver(member);
  }

  /** The first waiter for whom every budget has a lease. For a waiter with a claim that lacks another lease, the free ones are kept. */
  #next(caller: Member | undefined): Member | undefined {
    const { size } = this.#line;
    let isLackedByAll = size === 0;
    for (const budget of this.#limited) {
      budget.reserved = 0;
      if (budget.queued === size && budget.free <= 0) isLackedByAll = true;
    }
    if (isLackedByAll) return undefined;
    const keptSince = this.#clock.now() - keptForTurns * this.#policy.turn;
    let inVain: Member | undefined;
    let doOthersWait = false;
    for (const member of this.#line) {
      const hasRoom = this.#hasRoom(member, member.wanted);
      if (!this.#silent.mayDial(member)) {
        if (hasRoom && member !== caller) inVain ??= member;
        continue;
      }
      doOthersWait = true;
      if (hasRoom && member !== caller) return member;
      const isOwed = member.isDue && member.dueSince >= keptSince && member.demand > member.held;
      const isKept = member === caller ? hasRoom : isOwed;
      if (isKept) for (const { budget } of member.seats) budget.reserved += member.wanted;
    }
    return doOthersWait ? undefined : inVain;
  }

  #hasRoom(member: Member, count: number): boolean {
    for (const { budget } of member.seats) if (budget.free - budget.reserved < count) return false;
    return true;
  }

  /** A member waits, or has to release leases. */
  #isShort(): boolean {
    return this.#line.size > 0 || this.#mayHaveRecalled || this.#isAboveCapacity();
  }

  #isAboveCapacity(): boolean {
    return this.#limited.some(({ free }) => free < 0);
  }

  /** The recall interval. A user that has its share and wants more can only get what others leave idle for a while. */
  get #lookInterval(): number {
    const areClaims = this.#line.hasClaims || this.#isAboveCapacity();
    return areClaims ? this.#policy.lookInterval : this.#policy.wishInterval;
  }

  #makeRoom(now: number): void {
    planRecalls({
      budgets: this.#limited.filter(({ isIdle }) => !isIdle),
      holding: this.#holding,
      line: this.#line,
      silent: this.#silent,
      policy: this.#policy,
      now,
    });
    this.#mayHaveRecalled = this.#line.size > 0 || this.#isAboveCapacity();
    this.#mayLookAt = this.#restingUntil(now);
  }

  waitingFor(budget: Budget): number {
    let waiting = 0;
    for (const member of this.#line) {
      const lacksOther = member.seats.some(
        (seat) => seat.budget !== budget && seat.budget.free < member.wanted,
      );
      if (!lacksOther && member.seats.some((seat) => seat.budget === budget)) waiting++;
    }
    return waiting;
  }

  // ---- shares -----------------------------------------------------------------------------------------------------

  /** Computes the shares soon. */
  #press(reason: RebalanceReason): void {
    this.#pressing ??= reason;
    this.#lookBy(Math.max(this.#clock.now(), this.#mayRebalanceAt));
  }

  #rebalance(reason: RebalanceReason, now: number): void {
    this.#pressing = undefined;
    this.#mayRebalanceAt = now + this.#policy.debounce;
    this.#columns.note(this.#silent);
    const look = { policy: this.#policy, now, isRound: reason === 'interval', members: this.#columns };
    const idle: FairBudget[] = [];
    let isAll = reason === 'configuration';
    for (const budget of this.#limited) {
      budget.givenBack = 0;
      if (budget.noteIdle()) isAll = true;
      if (budget.isIdle) idle.push(budget);
      else this.#shareOut(budget, reason, look);
    }
    for (const budget of idle) budget.shares.follow(budget, look);
    this.#line.rerankMarked(isAll);
    this.#mayRebalanceAt = Math.max(this.#mayRebalanceAt, this.#restingUntil(now));
  }

  #shareOut(budget: FairBudget, reason: RebalanceReason, look: ShareLook): void {
    const { capacity } = budget;
    budget.rebalances++;
    const changes = budget.shares.allocate(budget, look);
    if (changes.length > 0) budget.listener?.rebalanced?.({ reason, capacity, changes });
  }

  // ---- time -------------------------------------------------------------------------------------------------------

  #lookSoon(): void {
    this.#lookBy(Math.max(this.#clock.now(), this.#mayLookAt));
  }

  #lookBy(at: number): void {
    if (at >= this.#alarmAt) return;
    this.#alarmAt = at;
    this.#alarm.set(at, false);
  }

  #rang(): void {
    this.#alarmAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    if (now + this.#alarm.granularityMs >= this.#nextRoundAt) {
      this.#nextRoundAt = now + this.#policy.rebalanceInterval;
      this.#rebalance('interval', now);
    } else if (this.#pressing !== undefined && now >= this.#mayRebalanceAt)
      this.#rebalance(this.#pressing, now);
    this.#forgetLeaving();
    this.#silent.look(this.#holding, this.#line, now, this.#policy.hangsAfter);
    this.#settle(undefined);
    if (this.#line.size > 0) for (const budget of [...this.#budgets]) budget.tellBalance();
    if (this.#isShort()) this.#makeRoom(this.#clock.now());
    this.#planNextLook();
  }

  /** Plans the earliest of all checks that are due. What this check has just seen is no reason for another at once. */
  #planNextLook(): void {
    let at = Number.POSITIVE_INFINITY;
    if (this.#pressing !== undefined) at = this.#mayRebalanceAt;
    if (this.#isShort()) at = Math.min(at, Math.max(this.#clock.now() + this.#lookInterval, this.#mayLookAt));
    if (this.#holding.size > 0) at = Math.min(at, this.#nextRoundAt);
    this.#alarmAt = Number.POSITIVE_INFINITY;
    this.#lookBy(at);
  }

  /** After work that has begun at this time. */
  #restingUntil(began: number): number {
    const now = this.#clock.now();
    return now + (now - began) * restAfterWork;
  }

  /** Stops computing shares and recalls; leases are granted and released as before. */
  stop(): void {
    this.#alarm.clear();
    this.#alarmAt = Number.NEGATIVE_INFINITY;
  }
}
