/**
 * The pools that wait for a lease of a budget, and which of them is next: a claim comes before a wish, who has nothing before
 * who has something, and otherwise who came first. Whoever comes to another rank stands behind those who are there: the wait
 * of someone with nothing begins when it has nothing.
 */
import { LinkedList } from '../../kernel/linked-list.js';
import { type FairMember, type FairUser, Rank } from './fair-members.js';

export class WaitingLine {
  readonly #lines = [
    new LinkedList<FairMember>(),
    new LinkedList<FairMember>(),
    new LinkedList<FairMember>(),
  ] as const;

  get size(): number {
    return this.#lines[0].size + this.#lines[1].size + this.#lines[2].size;
  }

  /** Someone waits for what is its due. */
  get hasClaims(): boolean {
    return this.of(Rank.nothing).size > 0 || this.of(Rank.belowShare).size > 0;
  }

  of(rank: Rank): LinkedList<FairMember> {
    return this.#lines[rank];
  }

  /** Who waits already keeps its place. */
  add(member: FairMember, count: number, now: number): void {
    const isNew = !member.isWaiting;
    member.wanted = count;
    if (!isNew) return;
    member.waitingSince = now;
    member.user.waiting++;
    this.#stand(member, rankOf(member.user));
  }

  /** Does nothing when it does not wait. */
  remove(member: FairMember): void {
    if (!member.isWaiting) return;
    this.#lines[member.rank].remove(member);
    member.wanted = 0;
    member.waitingSince = Number.NaN;
    member.user.waiting--;
  }

  /** What a user has, or its share, is another than before. */
  rerank(user: FairUser): void {
    if (user.waiting === 0) return;
    const rank = rankOf(user);
    const moved: FairMember[] = [];
    for (const member of user.members) if (member.isWaiting && member.rank !== rank) moved.push(member);
    // Otherwise one of its pools could come before another for ever.
    if (moved.length > 1) moved.sort((a, b) => a.waitingSince - b.waitingSince);
    for (const member of moved) {
      this.#lines[member.rank].remove(member);
      this.#stand(member, rank);
    }
  }

  /** Who may have what is free; never `except`. */
  next(free: number, except: FairMember | undefined): FairMember | undefined {
    if (free <= 0) return undefined;
    for (const line of this.#lines)
      for (let member = line.head; member !== undefined; member = member.next)
        if (member !== except && member.wanted <= free) return member;
    return undefined;
  }

  #stand(member: FairMember, rank: Rank): void {
    member.rank = rank;
    this.#lines[rank].pushTail(member);
  }
}

function rankOf(user: FairUser): Rank {
  if (user.held === 0) return Rank.nothing;
  return user.held < user.share ? Rank.belowShare : Rank.wish;
}
