/** Chooses which holder of a budget's leases must release one first. Made anew for each round. */
import { Heap, type HeapItem } from '../../kernel/heap.js';
import type { FairPolicy } from './fair-policy.js';
import type { Budget, FairUser, Member, Seat } from './fair-seats.js';
import { Rank } from './rank.js';
import type { SilentServers } from './silent-servers.js';
import type { WaitingQueue } from './waiting-queue.js';

export interface VictimsLook {
  readonly policy: FairPolicy;
  readonly now: number;
  readonly line: WaitingQueue;
  readonly silent: SilentServers;
}

/** Turns end at most this many times faster than evenly spread turns of usual length would need. */
const fastestPace = 2;
/** Turns are shorter if a user would wait for more than this many turns. */
const longestRotation = 2;

/** Counts of users that have leases or wait. */
interface Crowd {
  readonly usersWithNothing: number;
  /** On average. */
  readonly poolsOfUser: number;
}

export class Victims {
  readonly #budget: Budget;
  readonly #look: VictimsLook;
  readonly #seats: readonly Seat[];
  #above: Heap<Candidate> | undefined;
  #turns: Heap<UserInTurn> | undefined;
  #crowd: Crowd | undefined;

  constructor(budget: Budget, look: VictimsLook) {
    this.#budget = budget;
    this.#look = look;
    this.#seats = Array.from(budget.holding, (member) => seatIn(member, budget));
  }

  /** A victim for a user with a claim to more. */
  forClaim(seat: Seat, rank: Rank): Member | undefined {
    const { policy } = this.#look;
    const isBadlyOff = rank === Rank.nothing || rank === Rank.promised;
    return (
      this.#idle(seat, isBadlyOff ? policy.shortIdleGrace : policy.idleGrace) ??
      this.#hanging(seat) ??
      this.#aboveShare(seat) ??
      (isBadlyOff ? this.#pastTurn(seat, this.#turnMsFor(seat.user)) : undefined)
    );
  }

  /** A victim for a user that has its share, and would like more. */
  forWish(seat: Seat): Member | undefined {
    return this.#idle(seat, this.#look.policy.idleGrace) ?? this.#hanging(seat);
  }

  /** A victim when the capacity is below what is held. */
  forExcess(): Member | undefined {
    return this.#idle(undefined, 0) ?? this.#aboveShare(undefined) ?? this.#pastTurn(undefined, 0);
  }

  /** A victim among the pools of the same user, which has its share: a pool above its part, or past its turn. */
  ofSameUser({ user, member }: Seat): Member | undefined {
    if (user.recalled > 0) return undefined;
    const { policy, now } = this.#look;
    const above = poolAbovePart(user);
    if (above !== undefined || member.held > 0) return above;
    // The next pool uses a slot longer if it begins with the user's next turn.
    if (this.#crowdNow.usersWithNothing > 0 && user.turnBeganAt + this.#turnMs <= now) return undefined;
    let using = 0;
    for (const { member: one } of user.seats) if (one.held > 0 || one.isWaiting) using++;
    // All pools should have their turn within one turn of the user.
    const rounds = Math.ceil(using / Math.max(1, user.held));
    const turnMs = Math.max(policy.shortestTurn, this.#turnMs / rounds);
    return poolPastTurn(user, now - turnMs);
  }

  // ---- idle -------------------------------------------------------------------------------------------------------

  /** Connections that are idle for long enough: first those without clients, then those above their share, then the longest idle. */
  #idle(seat: Seat | undefined, graceMs: number): Member | undefined {
    const { now } = this.#look;
    let best: Seat | undefined;
    let bestKey: readonly number[] = [];
    for (const one of this.#seats) {
      const { member, user } = one;
      // Only one idle time is known per member: the next is asked for when this one is back.
      if (member === seat?.member || member.kept === 0 || member.recalled > 0) continue;
      const since = member.longestIdleSince;
      if (since === undefined) continue;
      const isAbove = isAboveShare(user);
      const isDeserted = !member.hasClients;
      if (now - since < (isAbove || isDeserted ? 0 : graceOf(user, graceMs, this.#look.policy))) continue;
      // A pool may wait although it has one idle: it has helped itself since.
      const key = [isDeserted ? 0 : 1, isAbove ? 0 : 1, since, Number(member.key)];
      if (best === undefined || isLess(key, bestKey)) {
        best = one;
        bestKey = key;
      }
    }
    return best?.member;
  }

  // ---- hanging ----------------------------------------------------------------------------------------------------

  #hanging(seat: Seat): Member | undefined {
    const { silent, now, policy } = this.#look;
    if (silent.size === 0) return undefined;
    for (const { member } of this.#seats) {
      if (member.kept === 0 || member.recalled > 0) continue;
      // The server may still have a process for that dial, and must not get another one in its place.
      if (seat.member.tenant.server === member.tenant.server) continue;
      const since = member.dialingSince;
      if (since !== undefined && now - since >= policy.hangsAfter && silent.isInVain(member)) return member;
    }
    return undefined;
  }

  // ---- above their share ------------------------------------------------------------------------------------------

  /** The one that is furthest above its share. One connection is left to everyone: that ends with the turn. */
  #aboveShare(seat: Seat | undefined): Member | undefined {
    this.#above ??= this.#gatherAbove();
    for (let first = this.#above.peek(); first !== undefined; first = this.#above.peek()) {
      this.#above.remove(first);
      // Recalls may have changed its key.
      const key = keyAboveShare(first.seat);
      if (key === undefined) continue;
      this.#above.push(new Candidate(first.seat, key));
      if (key > first.heapKey) continue;
      return first.seat.member === seat?.member ? undefined : first.seat.member;
    }
    return undefined;
  }

  #gatherAbove(): Heap<Candidate> {
    const above = new Heap<Candidate>();
    for (const seat of this.#seats) {
      const key = keyAboveShare(seat);
      if (key !== undefined) above.push(new Candidate(seat, key));
    }
    return above;
  }

  // ---- turns ------------------------------------------------------------------------------------------------------

  /** Users past their turn: the most connections first, and among equals the earliest turn. */
  #pastTurn(seat: Seat | undefined, turnMs: number): Member | undefined {
    this.#turns ??= this.#gatherTurns();
    const { policy, now } = this.#look;
    const shortestMs = Math.min(turnMs, policy.shortestTurn);
    const passedOver: UserInTurn[] = [];
    let victim: Member | undefined;
    for (let first = this.#turns.peek(); first !== undefined; first = this.#turns.peek()) {
      this.#turns.remove(first);
      const { user } = first;
      if (user.kept <= user.promise && turnMs > 0) continue;
      if (user.kept === 0) continue;
      const hasHadTurn = user.turnBeganAt + turnMs <= now && this.#hasBeenOpen(user, shortestMs);
      passedOver.push(new UserInTurn(user, now));
      if (!hasHadTurn || user === seat?.user) continue;
      // One of its pools may have only just begun.
      const pool = mostKept(user, now - shortestMs);
      if (pool === undefined) continue;
      if (this.#mayEndTurn(turnMs)) victim = pool;
      break;
    }
    for (const one of passedOver) this.#turns.push(one);
    return victim;
  }

  /** The time for opening is part of a turn, but not of its minimum, unless opening takes very long. */
  #hasBeenOpen({ openSince, turnBeganAt }: FairUser, shortestMs: number): boolean {
    const { policy, now } = this.#look;
    return Number.isNaN(openSince) ? turnBeganAt + 2 * policy.turn <= now : openSince + shortestMs <= now;
  }

  #gatherTurns(): Heap<UserInTurn> {
    const turns = new Heap<UserInTurn>();
    const users = new Set<FairUser>();
    for (const { user } of this.#seats) users.add(user);
    for (const user of users) if (user.kept > 0) turns.push(new UserInTurn(user, this.#look.now));
    return turns;
  }

  /** Leases above the capacity have no turn. */
  #mayEndTurn(turnMs: number): boolean {
    if (turnMs === 0) return true;
    const { policy, now } = this.#look;
    const apartMs = this.#turnMs / (fastestPace * Math.max(1, this.#budget.usersHolding));
    return this.#budget.pace.mayEnd(now, apartMs, 2 * policy.lookInterval);
  }

  /** Among users with nothing, one without a recent turn has its first one soon. */
  #turnMsFor(user: FairUser): number {
    const { policy, now } = this.#look;
    const isNewcomer = user.turnBeganAt < now - 2 * (longestRotation + 1) * policy.turn;
    return isNewcomer ? policy.shortestTurn : this.#turnMs;
  }

  /**
   * The usual time, unless users with nothing would wait for too long. Where users have several pools, which share their
   * turns, each pool also waits for the others of its own user: turns are then shorter by up to a third.
   */
  get #turnMs(): number {
    const { usersWithNothing, poolsOfUser } = this.#crowdNow;
    const { shortestTurn } = this.#look.policy;
    const turn = this.#look.policy.turn / (1.5 - 0.5 / poolsOfUser);
    const others = usersWithNothing / Math.max(1, this.#budget.usersHolding);
    return Math.min(turn, Math.max(shortestTurn, (longestRotation * turn) / Math.max(others, 1e-9)));
  }

  get #crowdNow(): Crowd {
    this.#crowd ??= this.#countCrowd();
    return this.#crowd;
  }

  #countCrowd(): Crowd {
    let [usersWithNothing, users, pools] = [0, 0, 0];
    for (const { held, waiting, seats } of this.#budget.users.values()) {
      if (held === 0 && waiting === 0) continue;
      users++;
      if (held === 0) usersWithNothing++;
      for (const { member } of seats) if (member.held > 0 || member.isWaiting) pools++;
    }
    return { usersWithNothing, poolsOfUser: Math.max(1, pools / Math.max(1, users)) };
  }
}

function seatIn(member: Member, budget: Budget): Seat {
  return member.seats.find((seat) => seat.budget === budget) as Seat;
}

class Candidate implements HeapItem {
  readonly seat: Seat;
  readonly heapKey: number;
  heapIndex = -1;

  constructor(seat: Seat, key: number) {
    this.seat = seat;
    this.heapKey = key;
  }
}

class UserInTurn implements HeapItem {
  readonly user: FairUser;
  readonly heapKey: number;
  heapIndex = -1;

  constructor(user: FairUser, now: number) {
    this.user = user;
    const age = now - user.turnBeganAt;
    // The age decides between equals and is too little to make a difference otherwise.
    this.heapKey = -(user.kept / user.terms.weight) * (1 + (1e-6 * age) / (age + 1_000));
  }
}

/** Smallest key yields first; undefined if it has nothing to release. */
function keyAboveShare({ member, user, share }: Seat): number | undefined {
  if (member.kept === 0 || !isAboveShare(user)) return undefined;
  const excess = (member.kept - share) / user.terms.weight;
  return excess > 0 ? -excess : undefined;
}

/** Every user with clients keeps one connection. */
function isAboveShare(user: FairUser): boolean {
  return user.kept > (user.hasClients ? Math.max(1, user.share) : user.share);
}

/** How long a connection may be idle while others wait: the smaller its user's claim, the shorter. */
function graceOf(user: FairUser, graceMs: number, { shortIdleGrace }: FairPolicy): number {
  return user.kept > user.share ? Math.min(graceMs, shortIdleGrace) : graceMs;
}

function isLess(one: readonly number[], other: readonly number[]): boolean {
  for (const [at, value] of one.entries()) if (value !== other[at]) return value < (other[at] as number);
  return false;
}

/** Among pools that have held leases since before this time. */
function mostKept(user: FairUser, before: number): Member | undefined {
  let most: Member | undefined;
  for (const { member } of user.seats)
    if (member.turnBeganAt <= before && member.kept > (most?.kept ?? 0)) most = member;
  return most;
}

/** Every pool keeps one connection. */
function poolAbovePart(user: FairUser): Member | undefined {
  let worst: Member | undefined;
  let most = 0;
  for (const { member, share } of user.seats) {
    const excess = member.kept - Math.max(1, share);
    if (excess <= most) continue;
    worst = member;
    most = excess;
  }
  return worst;
}

/** The pool with the earliest turn that began before this time. */
function poolPastTurn(user: FairUser, before: number): Member | undefined {
  let first: Member | undefined;
  for (const { member } of user.seats)
    if (member.kept > 0 && member.turnBeganAt <= Math.min(before, first?.turnBeganAt ?? before))
      first = member;
  return first;
}
