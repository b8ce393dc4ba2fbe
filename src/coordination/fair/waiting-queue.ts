/**
 * The waiting pools of all budgets in order: by rank, and within a rank by arrival. The wait of a user with nothing
 * begins when it has nothing. A pool that can't be served because it lacks another lease is passed over, and keeps its
 * place.
 */
import { LinkedList } from '../../kernel/linked-list.js';
import type { FairUser, Member } from './fair-seats.js';
import { Rank, ranks } from './rank.js';
import { rankOf } from './ranking.js';

export class WaitingQueue {
  readonly #lines = ranks.map(() => new LinkedList<Member>());

  get size(): number {
    let size = 0;
    for (const line of this.#lines) size += line.size;
    return size;
  }

  /** A member waits for a lease that it has a claim to. */
  get hasClaims(): boolean {
    return this.#lines.some((line, rank) => rank < Rank.wish && line.size > 0);
  }

  of(rank: Rank): LinkedList<Member> {
    return this.#lines[rank] as LinkedList<Member>;
  }

  /** In order. The current one may be removed during iteration. */
  *[Symbol.iterator](): IterableIterator<Member> {
    for (const line of this.#lines) yield* line;
  }

  /** A member that waits already keeps its place. */
  add(member: Member, count: number, now: number): void {
    const isNew = !member.isWaiting;
    member.wanted = count;
    if (!isNew) return;
    member.waitingSince = now;
    for (const { user, budget } of member.seats) {
      user.waiting++;
      budget.queued++;
    }
    this.#stand(member, rankOf(member));
  }

  /** Does nothing for a member that does not wait. */
  remove(member: Member): void {
    if (!member.isWaiting) return;
    this.of(member.rank).remove(member);
    member.wanted = 0;
    member.waitingSince = Number.NaN;
    member.isDue = false;
    for (const { user, budget } of member.seats) {
      user.waiting--;
      budget.queued--;
    }
  }

  /** A lease that was asked back for it has come. */
  becomesDue(member: Member, now: number): void {
    if (!member.isWaiting || member.isDue) return;
    member.isDue = true;
    member.dueSince = now;
    this.rerank(member);
  }

  rerank(member: Member): void {
    if (!member.isWaiting) return;
    const rank = rankOf(member);
    if (rank === member.rank && lineKeyOf(member) === member.lineKey) return;
    this.of(member.rank).remove(member);
    this.#stand(member, rank);
  }

  /** Ranks marked members anew, since their shares have changed. `isAll`: perhaps of all. */
  rerankMarked(isAll: boolean): void {
    for (const line of this.#lines) {
      let next: Member | undefined;
      // A member that moves back is seen again, and keeps waiting.
      for (let member = line.head; member !== undefined; member = next) {
        next = member.next;
        if (!isAll && !member.isMarked) continue;
        member.isMarked = false;
        this.rerank(member);
      }
    }
  }

  /** The leases of a user, or its share, are others than before. */
  rerankUser(user: FairUser): void {
    if (user.waiting > 0) for (const { member } of user.seats) this.rerank(member);
  }

  #stand(member: Member, rank: Rank): void {
    member.rank = rank;
    member.lineKey = lineKeyOf(member);
    const line = this.of(rank);
    let behind: Member | undefined;
    let before = line.tail;
    // Most come last.
    while (before !== undefined && isBehind(before, member)) {
      behind = before;
      before = before.previous;
    }
    line.insertBefore(behind, member);
  }
}

function isBehind(one: Member, other: Member): boolean {
  return one.lineKey === other.lineKey ? ownPlaceOf(one) > ownPlaceOf(other) : one.lineKey > other.lineKey;
}

/** A member that has just had its turn does not come before members without one, though it may have waited for more throughout. */
function lineKeyOf(member: Member): number {
  let place = ownPlaceOf(member);
  for (const { user, budget } of member.seats)
    if (user.held === 0 && !budget.isIdle) place = Math.max(place, user.emptySince);
  return place;
}

function ownPlaceOf({ held, waitingSince, emptySince }: Member): number {
  return held === 0 ? Math.max(waitingSince, emptySince) : waitingSince;
}
