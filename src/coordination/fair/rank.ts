/** The kind of claim of a pool to one more lease of a budget, which determines its place in the queue. */
import type { FairMember } from './fair-member.js';
import type { Seat } from './fair-user.js';

/** The smaller comes first. */
export const Rank = {
  /** A lease that was asked back for it has come. */
  due: 0,
  /** The user has less than its promised minimum. */
  promised: 1,
  /** The user has nothing. */
  nothing: 2,
  belowShare: 3,
  /** The user has its share, but this pool less than its part of it. */
  belowPart: 4,
  wish: 5,
} as const;
export type Rank = (typeof Rank)[keyof typeof Rank];
export const ranks: readonly Rank[] = Object.values(Rank);

/** The rank in one budget. */
export function rankIn({ user, member, share }: Seat): Rank {
  const { held } = user;
  if (held < user.promise) return Rank.promised;
  if (held === 0) return Rank.nothing;
  if (held < user.share) return Rank.belowShare;
  const isPoolInNeed = user.seats.length > 1 && (member.held === 0 || member.held < share);
  return isPoolInNeed ? Rank.belowPart : Rank.wish;
}

/** The lowest of its ranks in all its budgets: a user that has its share of one budget has no claim there that others must yield to. */
export function rankOf(member: FairMember): Rank {
  if (member.isDue) return Rank.due;
  let worst: Rank = Rank.promised;
  for (const seat of member.seats) {
    if (seat.budget.isIdle) continue;
    const rank = rankIn(seat);
    if (rank > worst) worst = rank;
  }
  return worst;
}
