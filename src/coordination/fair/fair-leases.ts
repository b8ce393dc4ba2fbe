/**
 * One budget of connections, shared fairly between users: who may hold one more, and who has to give one back for it.
 *
 * Shares are targets, leases are the truth: nothing is granted beyond the capacity, whatever the shares say. What is free
 * goes to whoever asks. Only when nothing is free do the shares decide: whoever has less than its share has a claim, and
 * whoever has more is asked to close connections, idle ones at once and others when they come back. A lease moves when the
 * connection is gone, and not before.
 *
 * With more users than leases each has its turn: who has nothing comes before all others, the longest wait first, and who
 * has had its turn gives way. A turn is long enough to be worth a new connection.
 */
import type { LeaseAnswer } from '../../core/leases.js';
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';
import { isCount } from '../lease-book.js';
import { tell } from '../tell.js';
import type { FairHolder, Tenant } from './fair-holder.js';
import { FairMember, FairUser, type MemberEvents } from './fair-members.js';
import type { FairPolicy, UserTerms } from './fair-policy.js';
import { makeRoom } from './giving-way.js';
import { type RebalanceReason, type ShareChange, Shares } from './shares.js';
import { TurnPace } from './turn-pace.js';
import { WaitingLine } from './waiting-line.js';

export interface FairLeasesParts {
  /** For messages. */
  readonly name?: string | undefined;
  readonly policy: FairPolicy;
  readonly clock: Clock;
  readonly alarm: AlarmFactory;
  readonly listener?: FairListener | undefined;
}

/** Told after the fact. */
export interface FairListener {
  /** Someone waits for whom nothing is free, or something was given back: for whoever decides about the capacity. */
  balanceChanged?(): void;
  /** Only where at least one share is another than before. */
  rebalanced(rebalance: Rebalance): void;
}

export interface Rebalance {
  readonly reason: RebalanceReason;
  readonly capacity: number;
  readonly changes: readonly ShareChange[];
}

/** One user, as it is now. */
export interface FairUserStats extends UserTerms {
  readonly user: string;
  readonly demand: number;
  readonly share: number;
  readonly held: number;
  /** Of those held: asked back, and not back yet. */
  readonly recalled: number;
  /** How long its pool waits that has waited longest; 0 where none does. */
  readonly waitedMs: number;
}

export interface FairStats {
  readonly capacity: number;
  /** Never above the capacity, but while one that was lowered is being reached. */
  readonly held: number;
  readonly waiting: number;
  readonly recalls: number;
  readonly rebalances: number;
  readonly users: readonly FairUserStats[];
}

/** What took long is not done again at once: no more than one part in so many of the time goes into it. */
const restAfterWork = 10;

export class FairLeases implements MemberEvents {
  readonly name: string;
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  readonly #listener: FairListener | undefined;
  readonly #shares: Shares;
  #policy: FairPolicy;
  readonly #users = new Map<string, FairUser>();
  readonly #line = new WaitingLine();
  readonly #pace = new TurnPace();
  /** Those that hold at least one. */
  readonly #holding = new Set<FairMember>();
  /** Those that asked although they had left: for callers that they had yet, who may have given up since. */
  readonly #leaving = new Set<FairMember>();
  #held = 0;
  /** The most that were held since it was last asked for. */
  #heldPeak = 0;
  #recalls = 0;
  #rebalances = 0;
  /** There may be leases that were asked back and have not come. */
  #mayHaveRecalled = false;
  /** A user has its share, and one of its pools has less than its part of it. */
  #arePoolsInNeed = false;
  /** Whose turn it is to take one that is free, while that goes round. */
  #turn: FairMember | undefined;
  #isGoingRound = false;
  /** The one inside whose call this is, who can't be told anything now. */
  #caller: FairMember | undefined;
  #alarmAt = Number.POSITIVE_INFINITY;
  #nextRoundAt: number;
  #mayLookAt = Number.NEGATIVE_INFINITY;
  #mayRebalanceAt = Number.NEGATIVE_INFINITY;
  /** Why the shares are to be looked at before the next round. */
  #pressing: RebalanceReason | undefined;
  /** Since the shares were looked at. */
  #givenBack = 0;

  constructor({ name = 'budget', policy, clock, alarm, listener }: FairLeasesParts) {
    this.name = name;
    this.#policy = policy;
    this.#clock = clock;
    this.#listener = listener;
    this.#shares = new Shares(policy);
    this.#alarm = alarm(() => this.#rang());
    this.#turn = undefined;
    this.#caller = undefined;
    this.#pressing = undefined;
    this.#nextRoundAt = clock.now() + policy.rebalanceInterval;
  }

  get capacity(): number {
    return this.#policy.capacity;
  }

  /** Leases that are held. */
  get held(): number {
    return this.#held;
  }

  /** The most that were held at one moment, since this was last asked. */
  takeHeldPeak(): number {
    const peak = this.#heldPeak;
    this.#heldPeak = this.#held;
    return peak;
  }

  /** Pools that wait for one. */
  get waiting(): number {
    return this.#line.size;
  }

  // ---- who shares -------------------------------------------------------------------------------------------------

  /** A pool of this user is there. */
  join(tenant: Tenant): FairMember {
    return new FairMember(this.#userNamed(tenant.user), tenant, this);
  }

  #userNamed(name: string): FairUser {
    const known = this.#users.get(name);
    if (known !== undefined) return known;
    const user = new FairUser(name);
    this.#shares.welcome(user);
    this.#users.set(name, user);
    return user;
  }

  left(member: FairMember): void {
    this.#line.remove(member);
    member.hasLeft = true;
    this.#forgetIfOver(member);
  }

  /** A pool that is no more never says that it needs nothing any more. */
  #forgetLeaving(): void {
    for (const member of this.#leaving) {
      if (member.isWaiting && member.demand > 0) continue;
      this.#leaving.delete(member);
      this.#line.remove(member);
      this.#forgetIfOver(member);
    }
  }

  #forgetIfOver(member: FairMember): void {
    if (!member.hasLeft || member.held > 0 || member.isWaiting) return;
    const { user } = member;
    user.members.delete(member);
    if (user.members.size === 0 && this.#users.get(user.name) === user) this.#users.delete(user.name);
  }

  /** Other rules from now on. What is above a lowered capacity is asked back from those above their share. */
  change(policy: FairPolicy): void {
    this.#policy = policy;
    this.#shares.change(policy, this.#users.values());
    this.#rebalance('configuration', this.#clock.now());
    this.#settle();
  }

  resize(capacity: number): void {
    if (!(Number.isSafeInteger(capacity) || capacity === Number.POSITIVE_INFINITY) || capacity < 0)
      throw new RangeError(`A capacity is a whole number of at least 0, not ${capacity}.`);
    if (capacity === this.capacity) return;
    this.#policy = { ...this.#policy, capacity };
    this.#shares.change(this.#policy, []);
    this.#press('capacity');
    this.#settle();
  }

  // ---- what members do --------------------------------------------------------------------------------------------

  mayAcquire(member: FairMember, count: number): boolean {
    if (count > this.#free) return false;
    return this.#turn === member || (this.#line.size === 0 && !this.#isGoingRound);
  }

  acquire(member: FairMember, count: number, holder: FairHolder): LeaseAnswer {
    if (!isCount(count)) return new RangeError(`One can't ask for ${count} leases.`);
    if (!member.user.members.has(member)) this.#welcomeBack(member);
    if (this.mayAcquire(member, count)) {
      this.#grant(member, count, holder);
      return 'granted';
    }
    this.#wait(member, count);
    return 'asking';
  }

  /** It had left and was forgotten, and has something to do yet. */
  #welcomeBack(member: FairMember): void {
    member.user = this.#userNamed(member.tenant.user);
    member.user.members.add(member);
  }

  #grant(member: FairMember, count: number, holder: FairHolder): void {
    const { user } = member;
    if (user.share === 0) this.#press('newcomer');
    this.#line.remove(member);
    member.grant(count, holder, this.#clock.now());
    this.#held += count;
    this.#heldPeak = Math.max(this.#heldPeak, this.#held);
    this.#holding.add(member);
    this.#line.rerank(user);
    // One for each, while others wait.
    if (this.#turn === member && this.#line.size > 0) this.#turn = undefined;
    this.#lookBy(this.#nextRoundAt);
  }

  #wait(member: FairMember, count: number): void {
    const { user } = member;
    if (!member.isWaiting && (user.held >= user.share || member.held >= member.share))
      this.#press(user.held === 0 ? 'newcomer' : 'wait');
    if (member.hasLeft) this.#leaving.add(member);
    // Not from inside the call of the one who asks. For one that waits already it is looked anyway.
    if (!member.isWaiting) this.#lookSoon();
    this.#line.add(member, count, this.#clock.now());
  }

  released(member: FairMember, count: number): void {
    const callerBefore = this.#caller;
    this.#caller = member;
    this.#held -= count;
    if (member.held === 0) this.#holding.delete(member);
    this.#forgetIfOver(member);
    this.#line.rerank(member.user);
    this.#givenBack += count;
    if (this.#givenBack >= this.capacity * this.#policy.largeRelease) this.#press('release');
    this.#settle();
    this.#listener?.balanceChanged?.();
    this.#caller = callerBefore;
  }

  /** Below 0 while a lowered capacity is being reached. */
  get #free(): number {
    return this.capacity - this.#held;
  }

  // ---- who is next ------------------------------------------------------------------------------------------------

  /** Has what is free go round. */
  #settle(): void {
    if (this.#isGoingRound) return;
    this.#isGoingRound = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#turn = next;
      this.#line.remove(next);
      const { latestHolder } = next;
      tell(() => latestHolder?.leasesAvailable());
      this.#turn = undefined;
      this.#forgetIfOver(next);
    }
    this.#isGoingRound = false;
    // Either the caller waits, who will be told when its call is over, or there is more to do than to tell.
    if (this.#line.size > 0 && this.#free > 0) this.#lookSoon();
    else if (this.#isShort()) this.#lookBy(this.#clock.now() + this.#lookInterval);
  }

  #next(): FairMember | undefined {
    return this.#line.next(this.#free, this.#caller);
  }

  /** Someone waits, or has to give back what it has. */
  #isShort(): boolean {
    return this.#line.size > 0 || this.#free < 0 || this.#mayHaveRecalled;
  }

  /** Who has its share and wishes for more can have no more than what others leave idle for a while. */
  get #lookInterval(): number {
    const areClaims = this.#line.hasClaims || this.#arePoolsInNeed || this.#free < 0;
    return areClaims ? this.#policy.lookInterval : this.#policy.wishInterval;
  }

  #makeRoom(now: number): void {
    const { size } = this.#line;
    const { recalls, poolsInNeed } = makeRoom({
      holding: this.#holding,
      line: this.#line,
      held: this.#held,
      excess: Math.max(0, -this.#free),
      policy: this.#policy,
      pace: this.#pace,
      now,
    });
    this.#recalls += recalls;
    this.#arePoolsInNeed = poolsInNeed > 0;
    this.#mayHaveRecalled = size > 0 || this.#free < 0;
    this.#mayLookAt = this.#restingUntil(now);
  }

  // ---- shares -----------------------------------------------------------------------------------------------------

  /** The shares are looked at soon. */
  #press(reason: RebalanceReason): void {
    this.#pressing ??= reason;
    this.#lookBy(Math.max(this.#clock.now(), this.#mayRebalanceAt));
  }

  /** Looks at the shares now. */
  rebalance(): void {
    this.#rebalance('asked', this.#clock.now());
    this.#settle();
  }

  #rebalance(reason: RebalanceReason, now: number): void {
    this.#pressing = undefined;
    this.#givenBack = 0;
    this.#mayRebalanceAt = now + this.#policy.debounce;
    if (this.capacity === Number.POSITIVE_INFINITY) return;
    this.#rebalances++;
    const users = [...this.#users.values()];
    const changes = this.#shares.allocate(users, now, reason === 'interval');
    for (const user of users) this.#line.rerank(user);
    this.#mayRebalanceAt = Math.max(this.#mayRebalanceAt, this.#restingUntil(now));
    if (changes.length > 0) this.#listener?.rebalanced({ reason, capacity: this.capacity, changes });
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
    this.#settle();
    if (this.#line.size > 0) this.#listener?.balanceChanged?.();
    if (this.#isShort()) this.#makeRoom(this.#clock.now());
    this.#planNextLook();
  }

  /** The earliest of all that is to be looked at. What could be seen just now is no reason to look again at once. */
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

  /** Nothing is looked at any more; leases are granted and taken back as before. */
  stop(): void {
    this.#alarm.clear();
    this.#alarmAt = Number.NEGATIVE_INFINITY;
  }

  // ---- what can be seen -------------------------------------------------------------------------------------------

  stats(): FairStats {
    const now = this.#clock.now();
    return {
      capacity: this.capacity,
      held: this.#held,
      waiting: this.#line.size,
      recalls: this.#recalls,
      rebalances: this.#rebalances,
      users: Array.from(this.#users.values(), (user) => userStats(user, now)),
    };
  }
}

function userStats(user: FairUser, now: number): FairUserStats {
  const { name, terms, demand, share, held, recalled } = user;
  const waitedMs = now - (user.waitingSince ?? now);
  return { user: name, ...terms, demand, share, held, recalled, waitedMs };
}
