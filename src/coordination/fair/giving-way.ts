/**
 * Who is asked for a connection when there is none for someone who waits: those above their share first, those with idle
 * connections before those without; then, for those who have nothing, those who have had their turn, which is short as long as
 * there is someone who has had none; and for anyone what nobody has used for a while. No more is asked back than there are
 * claims to it.
 */
import { Heap, type HeapItem } from '../../kernel/heap.js';
import { smallest } from '../../kernel/smallest.js';
import { tell } from '../tell.js';
import { type FairMember, type FairUser, Rank } from './fair-members.js';
import type { FairPolicy } from './fair-policy.js';
import type { TurnPace } from './turn-pace.js';
import type { WaitingLine } from './waiting-line.js';

/** How things are when room is to be made. */
export interface Shortage {
  /** Those that hold at least one. */
  readonly holding: ReadonlySet<FairMember>;
  readonly line: WaitingLine;
  readonly held: number;
  /** Leases that are held above the capacity. */
  readonly excess: number;
  readonly policy: FairPolicy;
  readonly pace: TurnPace;
  readonly now: number;
}

/** Turns end no faster than so many times what would be needed if usual ones were spread evenly. */
const fastestPace = 2;

/** Turns are shorter if someone would wait for more than so many of them. */
const longestRotation = 2;

let looks = 0;

export interface RoomMade {
  /** Of so many holders it was asked. */
  readonly recalls: number;
  /** Pools that are short of their part of what their user has. */
  readonly poolsInNeed: number;
}

/** Asks connections back. */
export function makeRoom(shortage: Shortage): RoomMade {
  return new Room(shortage).make();
}

class Room {
  readonly #shortage: Shortage;
  /** Asked back, and expected soon. */
  #coming = 0;
  #usersHolding = 0;
  #recalls = 0;
  #poolsInNeed = 0;

  constructor(shortage: Shortage) {
    this.#shortage = shortage;
    this.#lookAround();
  }

  make(): RoomMade {
    const { excess, line, policy } = this.#shortage;
    const claims = excess + this.#claims();
    this.#recallForPools();
    if (claims === 0) this.#forgetOldRecalls();
    this.#recallAboveShare(claims);
    if (line.of(Rank.nothing).size > 0) {
      this.#recallByTurns(this.#newcomers(), policy.shortestTurn);
      this.#recallByTurns(claims, this.#turnMs());
    }
    if (excess > 0) this.#recallByTurns(excess, 0);
    const { idleGrace, shortIdleGrace } = policy;
    this.#recallIdle(line.of(Rank.nothing).size, shortIdleGrace);
    this.#recallIdle(line.size, idleGrace);
    return { recalls: this.#recalls, poolsInNeed: this.#poolsInNeed };
  }

  #lookAround(): void {
    const { holding, policy, now } = this.#shortage;
    const look = ++looks;
    for (const member of holding) {
      if (now - member.recalledAt < policy.patience) this.#coming += member.recalled;
      if (now - member.user.turnBeganAt < 2 * policy.turn && member.isOpening) member.user.openSince = now;
      if (member.user.seenIn === look) continue;
      member.user.seenIn = look;
      this.#usersHolding++;
    }
  }

  /** Connections that those have a claim to who wait. More than are held can't be asked back. */
  #claims(): number {
    const { line, held } = this.#shortage;
    const look = ++looks;
    let claims = 0;
    for (const rank of [Rank.nothing, Rank.belowShare]) {
      let member = line.of(rank).head;
      for (; member !== undefined && claims < held; member = member.next) {
        if (member.user.seenIn === look) continue;
        member.user.seenIn = look;
        claims += claimOf(member.user);
      }
    }
    return claims;
  }

  /** Of those who have nothing: whoever has had no turn of late. More than are held can't be served. */
  #newcomers(): number {
    const { line, held, policy, now } = this.#shortage;
    const since = now - 2 * (longestRotation + 1) * policy.turn;
    const look = ++looks;
    let newcomers = 0;
    let member = line.of(Rank.nothing).head;
    for (; member !== undefined && newcomers < held; member = member.next) {
      const { user } = member;
      if (user.seenIn === look) continue;
      user.seenIn = look;
      if (user.turnBeganAt < since) newcomers++;
    }
    return newcomers;
  }

  #recall(member: FairMember): void {
    this.#coming++;
    this.#recalls++;
    tell(() => member.recallOne(this.#shortage.now));
  }

  /** What nobody has a claim to any more. What was asked for a moment ago is on its way. */
  #forgetOldRecalls(): void {
    const { holding, line, policy, now } = this.#shortage;
    const keptMs = line.size === 0 ? 0 : policy.patience;
    const isOld = (member: FairMember): boolean => member.recalled > 0 && now - member.recalledAt >= keptMs;
    for (const member of [...holding].filter(isOld)) tell(() => member.forgetRecalls());
  }

  /** From those that are furthest above their share. One connection is left to everyone: that ends with the turn. */
  #recallAboveShare(claims: number): void {
    if (this.#coming >= claims) return;
    const above = new Heap<Candidate>();
    for (const member of this.#shortage.holding) {
      const key = keyAboveShare(member);
      if (key !== undefined) above.push(new Candidate(member, key));
    }
    while (this.#coming < claims) {
      const candidate = above.peek();
      if (candidate === undefined) return;
      above.remove(candidate);
      const { member } = candidate;
      // What was asked back before may have changed how this one stands.
      const key = keyAboveShare(member);
      if (key === undefined) continue;
      if (key <= candidate.heapKey) this.#recall(member);
      const next = keyAboveShare(member);
      if (next !== undefined) above.push(new Candidate(member, next));
    }
  }

  /** From those who have had their turn: the most connections first, and among equals the turn that began first. */
  #recallByTurns(claims: number, turnMs: number): void {
    if (this.#coming >= claims) return;
    const { holding, policy, now } = this.#shortage;
    const shortestMs = Math.min(turnMs, policy.shortestTurn);
    const users = new Heap<UserInTurn>();
    const look = ++looks;
    for (const { user } of holding) {
      if (user.seenIn === look) continue;
      user.seenIn = look;
      if (user.kept > 0 && hasHadTurn(user, turnMs, shortestMs, now)) users.push(new UserInTurn(user, now));
    }
    while (this.#coming < claims) {
      const first = users.peek();
      if (first === undefined || !this.#mayEndTurn(turnMs)) return;
      users.remove(first);
      const { user } = first;
      const member = mostKept(user);
      if (member === undefined) continue;
      this.#recall(member);
      if (user.kept > 0) users.push(new UserInTurn(user, now));
    }
  }

  /** What is above the capacity has no turn. */
  #mayEndTurn(turnMs: number): boolean {
    if (turnMs === 0) return true;
    const { pace, policy, now } = this.#shortage;
    const apartMs = this.#turnMs() / (fastestPace * Math.max(1, this.#usersHolding));
    return pace.mayEnd(now, apartMs, 2 * policy.lookInterval);
  }

  /** As long as is usual, unless those who have nothing would wait for too long. */
  #turnMs(): number {
    const { line, policy } = this.#shortage;
    const { turn, shortestTurn } = policy;
    const others = line.of(Rank.nothing).size / Math.max(1, this.#usersHolding);
    return Math.min(turn, Math.max(shortestTurn, (longestRotation * turn) / Math.max(others, 1e-9)));
  }

  /** Between the pools of one user, who has its share: from one that has more than its part to one that has less. */
  #recallForPools(): void {
    const { line, policy, now } = this.#shortage;
    const look = ++looks;
    let member = line.of(Rank.wish).head;
    for (; member !== undefined; member = member.next) {
      const { user } = member;
      if (user.members.size === 1 || user.seenIn === look) continue;
      user.seenIn = look;
      const needs = [...user.members].filter(isPoolInNeed);
      this.#poolsInNeed += needs.length;
      const hasNothing = needs.some(({ held }) => held === 0);
      for (let missing = needs.length - user.recalled; missing > 0; missing--) {
        const victim =
          poolAbovePart(user) ?? (hasNothing ? poolPastTurn(user, now - policy.turn) : undefined);
        if (victim === undefined) break;
        this.#recall(victim);
      }
    }
  }

  /** What nobody has used for long enough, the longest first, until so many are coming. */
  #recallIdle(wanted: number, graceMs: number): void {
    const missing = wanted - this.#coming;
    if (missing <= 0) return;
    const { holding, now } = this.#shortage;
    const idle: { readonly member: FairMember; readonly since: number }[] = [];
    for (const member of holding) {
      // One that waits, too, if it has one idle: it has helped itself since.
      if (member.recalled > 0) continue;
      const since = member.longestIdleSince;
      if (since !== undefined && now - since >= this.#graceOf(member.user, graceMs))
        idle.push({ member, since });
    }
    smallest(
      idle,
      missing,
      (a, b) => a.since < b.since || (a.since === b.since && a.member.key < b.member.key),
    );
    for (const { member } of idle.slice(0, missing)) if (member.kept > 0) this.#recall(member);
  }

  /** How long a connection may be idle while others wait: less, the less claim its user has to it. */
  #graceOf(user: FairUser, graceMs: number): number {
    if (isAboveShare(user)) return 0;
    return user.kept > user.share ? Math.min(graceMs, this.#shortage.policy.shortIdleGrace) : graceMs;
  }
}

class Candidate implements HeapItem {
  readonly member: FairMember;
  readonly heapKey: number;
  heapIndex = -1;

  constructor(member: FairMember, key: number) {
    this.member = member;
    this.heapKey = key;
  }
}

/** The time that opening takes is part of a turn, but not of what it is at least. */
function hasHadTurn(user: FairUser, turnMs: number, shortestMs: number, now: number): boolean {
  return user.turnBeganAt + turnMs <= now && user.openSince + shortestMs <= now;
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

/** More than any number of connections above a share. */
const idleFirst = 1e12;

/** The smallest is to give way first; undefined where it has nothing to give. */
function keyAboveShare(member: FairMember): number | undefined {
  const { user, kept } = member;
  if (kept === 0 || !isAboveShare(user)) return undefined;
  const excess = (kept - member.share) / user.terms.weight;
  if (excess <= 0) return undefined;
  return -excess - (member.longestIdleSince === undefined ? 0 : idleFirst);
}

function isAboveShare({ kept, share }: FairUser): boolean {
  return kept > Math.max(1, share);
}

/** As many as its share has room for and its pools can use; at least one for someone who has nothing. */
function claimOf(user: FairUser): number {
  const short = Math.max(user.share - user.held, user.held === 0 ? 1 : 0);
  if (short <= 1) return short;
  let wanted = 0;
  for (const member of user.members)
    if (member.isWaiting) wanted += Math.max(member.wanted, member.demand - member.held);
  return Math.min(short, wanted);
}

function mostKept(user: FairUser): FairMember | undefined {
  let most: FairMember | undefined;
  for (const member of user.members) if (member.kept > (most?.kept ?? 0)) most = member;
  return most;
}

function isPoolInNeed(member: FairMember): boolean {
  return member.isWaiting && (member.held === 0 || member.held < member.share);
}

/** One connection is left to every pool. */
function poolAbovePart(user: FairUser): FairMember | undefined {
  let worst: FairMember | undefined;
  let most = 0;
  for (const member of user.members) {
    const excess = member.kept - Math.max(1, member.share);
    if (excess <= most) continue;
    worst = member;
    most = excess;
  }
  return worst;
}

/** The one whose turn began first, and before this time. */
function poolPastTurn(user: FairUser, before: number): FairMember | undefined {
  let first: FairMember | undefined;
  for (const member of user.members)
    if (member.kept > 0 && member.turnBeganAt <= Math.min(before, first?.turnBeganAt ?? before))
      first = member;
  return first;
}
