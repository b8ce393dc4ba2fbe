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
import { tell } from '../tell.js';
import type { FairHolder, Tenant } from './fair-holder.js';
import { FairMember, FairUser, type MemberEvents } from './fair-members.js';
import type { FairPolicy, UserTerms } from './fair-policy.js';
import { type RebalanceReason, type ShareChange, Shares } from './shares.js';

export interface FairLeasesParts {
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

/** A claim comes before a wish, and who has nothing before who has something. */
const Rank = { nothing: 0, belowShare: 1, wish: 2 } as const;

export class FairLeases implements MemberEvents {
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  readonly #listener: FairListener | undefined;
  readonly #shares: Shares;
  #policy: FairPolicy;
  readonly #users = new Map<string, FairUser>();
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<FairMember>();
  /** Those that hold at least one. */
  readonly #holding = new Set<FairMember>();
  #held = 0;
  #recalls = 0;
  #rebalances = 0;
  /** Whose turn it is to take what is free, while that goes round. */
  #turn: FairMember | undefined;
  #isGoingRound = false;
  #alarmAt = Number.POSITIVE_INFINITY;
  #nextRoundAt: number;
  #lastRebalanceAt = Number.NEGATIVE_INFINITY;
  /** Why the shares are to be looked at before the next round. */
  #pressing: RebalanceReason | undefined;

  constructor({ policy, clock, alarm, listener }: FairLeasesParts) {
    this.#policy = policy;
    this.#clock = clock;
    this.#listener = listener;
    this.#shares = new Shares(policy);
    this.#alarm = alarm(() => this.#rang());
    this.#turn = undefined;
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

  /** Pools that wait for one. */
  get waiting(): number {
    return this.#waiting.size;
  }

  // ---- who shares -------------------------------------------------------------------------------------------------

  /** A pool of this user is there. */
  join(tenant: Tenant): FairMember {
    const now = this.#clock.now();
    const user = this.#users.get(tenant.user) ?? this.#welcome(tenant.user, now);
    return new FairMember(user, tenant, this);
  }

  #welcome(name: string, now: number): FairUser {
    const user = new FairUser(name, now);
    this.#shares.welcome(user);
    this.#users.set(name, user);
    return user;
  }

  left(member: FairMember): void {
    this.#waiting.delete(member);
    member.waitingSince = Number.NaN;
    member.hasLeft = true;
    if (member.held === 0) this.#forget(member);
  }

  #forget(member: FairMember): void {
    const { user } = member;
    user.members.delete(member);
    if (user.members.size === 0) this.#users.delete(user.name);
  }

  /** Other rules from now on. What is above a lowered capacity is asked back from those above their share. */
  change(policy: FairPolicy): void {
    this.#policy = policy;
    this.#shares.change(policy, this.#users.values());
    this.#rebalance('configuration', this.#clock.now());
    this.#settle(undefined);
  }

  resize(capacity: number): void {
    if (!(Number.isSafeInteger(capacity) || capacity === Number.POSITIVE_INFINITY) || capacity < 0)
      throw new RangeError(`A capacity is a whole number of at least 0, not ${capacity}.`);
    if (capacity === this.capacity) return;
    this.#policy = { ...this.#policy, capacity };
    this.#shares.change(this.#policy, this.#users.values());
    this.#rebalance('capacity', this.#clock.now());
    this.#settle(undefined);
  }

  // ---- what members do --------------------------------------------------------------------------------------------

  mayAcquire(member: FairMember, count: number): boolean {
    if (count > this.#free) return false;
    return this.#turn === member || (this.#waiting.size === 0 && !this.#isGoingRound);
  }

  acquire(member: FairMember, count: number, holder: FairHolder): LeaseAnswer {
    if (this.mayAcquire(member, count)) {
      const now = this.#clock.now();
      if (member.user.share === 0) this.#press('newcomer');
      member.grant(count, holder, now);
      member.user.activeAt = now;
      this.#held += count;
      this.#waiting.delete(member);
      this.#holding.add(member);
      this.#lookBy(this.#nextRoundAt);
      return 'granted';
    }
    this.#wait(member);
    return 'asking';
  }

  #wait(member: FairMember): void {
    if (!member.isWaiting) {
      member.waitingSince = this.#clock.now();
      member.user.activeAt = member.waitingSince;
      this.#waiting.add(member);
      if (member.held >= member.share) this.#press(member.user.held === 0 ? 'newcomer' : 'wait');
    }
    // Not from inside the call of the one who asks.
    this.#lookBy(this.#clock.now());
  }

  released(member: FairMember): void {
    this.#recount(member);
    this.#settle(member);
    this.#listener?.balanceChanged?.();
  }

  #recount(member: FairMember): void {
    if (member.held === 0) {
      this.#holding.delete(member);
      if (member.hasLeft) this.#forget(member);
    }
    let held = 0;
    for (const { held: ofOne } of this.#holding) held += ofOne;
    const given = this.#held - held;
    this.#held = held;
    if (given >= this.capacity * this.#policy.largeRelease) this.#press('release');
  }

  /** Below 0 while a lowered capacity is being reached. */
  get #free(): number {
    return this.capacity - this.#held;
  }

  // ---- who is next ------------------------------------------------------------------------------------------------

  /** Has what is free go round, and asks back what is missing. `caller` can't be told anything now. */
  #settle(caller: FairMember | undefined): void {
    if (this.#isGoingRound) return;
    this.#isGoingRound = true;
    for (let next = this.#next(caller); next !== undefined; next = this.#next(caller)) {
      this.#turn = next;
      this.#waiting.delete(next);
      next.waitingSince = Number.NaN;
      const { latestHolder } = next;
      tell(() => latestHolder?.leasesAvailable());
      this.#turn = undefined;
    }
    this.#isGoingRound = false;
    if (this.#waiting.size > 0 || this.#free < 0) this.#lookBy(this.#clock.now());
  }

  #next(caller: FairMember | undefined): FairMember | undefined {
    if (this.#free <= 0) return undefined;
    let best: FairMember | undefined;
    let bestRank: number = Rank.wish + 1;
    for (const member of this.#waiting) {
      const rank = rankOf(member);
      if (rank >= bestRank || member === caller) continue;
      best = member;
      bestRank = rank;
      if (rank === Rank.nothing) break;
    }
    return best;
  }

  // ---- who has to give way ----------------------------------------------------------------------------------------

  #makeRoom(now: number): void {
    const { patience } = this.#policy;
    let coming = 0;
    for (const member of this.#holding) if (now - member.recalledAt < patience) coming += member.recalled;
    let claims = Math.max(0, -this.#free);
    let haveNothing = 0;
    for (const member of this.#waiting) {
      const rank = rankOf(member);
      if (rank !== Rank.wish) claims++;
      if (rank === Rank.nothing) haveNothing++;
    }
    if (claims === 0) for (const member of this.#holding) member.forgetRecalls();
    for (; coming < claims; coming++) {
      const victim =
        this.#aboveShare() ?? (haveNothing > 0 ? this.#pastItsTurn(now, haveNothing) : undefined);
      if (victim === undefined) break;
      this.#recall(victim, now);
    }
    for (; coming < this.#waiting.size; coming++) {
      const victim = this.#idleForLong(now, haveNothing > 0);
      if (victim === undefined) break;
      this.#recall(victim, now);
    }
    this.#lookBy(now + this.#policy.lookInterval);
  }

  #recall(member: FairMember, now: number): void {
    this.#recalls++;
    tell(() => member.recallOne(now));
  }

  /** The one that is furthest above its share. One connection is left to everyone: that ends with the turn. */
  #aboveShare(): FairMember | undefined {
    let worst: FairMember | undefined;
    let most = 0;
    for (const member of this.#holding) {
      const { user } = member;
      if (user.kept <= Math.max(1, user.share)) continue;
      const excess = (member.held - member.recalled - member.share) / user.terms.weight;
      if (excess <= most || member.held === member.recalled) continue;
      worst = member;
      most = excess;
    }
    return worst;
  }

  /** Of those who have had their turn, the one with the most connections, and among equals the one whose turn began first. */
  #pastItsTurn(now: number, haveNothing: number): FairMember | undefined {
    const turn = this.#turnMs(haveNothing);
    let chosen: FairMember | undefined;
    for (const member of this.#holding) {
      const { user } = member;
      if (member.held === member.recalled || user.turnBeganAt + turn > now) continue;
      if (chosen !== undefined && !givesWayBefore(user, chosen.user)) continue;
      chosen = member;
    }
    return chosen;
  }

  /** As long as is usual, unless those who have nothing would wait for too long. */
  #turnMs(haveNothing: number): number {
    const { turn, longestRotation } = this.#policy;
    const holding = new Set(Array.from(this.#holding, ({ user }) => user)).size;
    const others = haveNothing / Math.max(1, holding);
    return Math.min(turn, longestRotation / Math.max(others, 1e-9));
  }

  /** Whoever has a connection that nobody has used for longest, and for long enough. */
  #idleForLong(now: number, someHaveNothing: boolean): FairMember | undefined {
    const { idleGrace, shortIdleGrace } = this.#policy;
    let chosen: FairMember | undefined;
    let longest = Number.POSITIVE_INFINITY;
    for (const member of this.#holding) {
      if (member.recalled > 0 || member.isWaiting) continue;
      const since = member.longestIdleSince;
      if (since === undefined || since >= longest) continue;
      const isAbove = member.user.kept > Math.max(1, member.user.share);
      const grace = isAbove ? 0 : someHaveNothing ? shortIdleGrace : idleGrace;
      if (now - since < grace) continue;
      chosen = member;
      longest = since;
    }
    return chosen;
  }

  // ---- shares -----------------------------------------------------------------------------------------------------

  /** The shares are looked at soon. */
  #press(reason: RebalanceReason): void {
    this.#pressing ??= reason;
    this.#lookBy(Math.max(this.#clock.now(), this.#lastRebalanceAt + this.#policy.debounce));
  }

  /** Looks at the shares now. */
  rebalance(): void {
    this.#rebalance('asked', this.#clock.now());
    this.#settle(undefined);
  }

  #rebalance(reason: RebalanceReason, now: number): void {
    this.#lastRebalanceAt = now;
    this.#pressing = undefined;
    if (this.capacity === Number.POSITIVE_INFINITY) return;
    this.#rebalances++;
    const changes = this.#shares.allocate([...this.#users.values()], now, reason === 'interval');
    if (changes.length > 0) this.#listener?.rebalanced({ reason, capacity: this.capacity, changes });
  }

  // ---- time -------------------------------------------------------------------------------------------------------

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
    } else if (this.#pressing !== undefined) {
      if (now >= this.#lastRebalanceAt + this.#policy.debounce) this.#rebalance(this.#pressing, now);
      else this.#lookBy(this.#lastRebalanceAt + this.#policy.debounce);
    }
    this.#settle(undefined);
    if (this.#waiting.size > 0) this.#listener?.balanceChanged?.();
    if (this.#waiting.size > 0 || this.#free < 0) {
      this.#alarmAt = Number.POSITIVE_INFINITY;
      this.#makeRoom(now);
    }
    if (this.#holding.size > 0) this.#lookBy(this.#nextRoundAt);
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
      waiting: this.#waiting.size,
      recalls: this.#recalls,
      rebalances: this.#rebalances,
      users: Array.from(this.#users.values(), (user) => userStats(user, now)),
    };
  }
}

function rankOf(member: FairMember): number {
  if (member.user.held === 0) return Rank.nothing;
  return member.held < member.share ? Rank.belowShare : Rank.wish;
}

function givesWayBefore(user: FairUser, other: FairUser): boolean {
  const more = user.kept / user.terms.weight - other.kept / other.terms.weight;
  return more === 0 ? user.turnBeganAt < other.turnBeganAt : more > 0;
}

function userStats(user: FairUser, now: number): FairUserStats {
  const { name, terms, demand, share, held, recalled } = user;
  const waitedMs = now - (user.waitingSince ?? now);
  return { user: name, ...terms, demand, share, held, recalled, waitedMs };
}
