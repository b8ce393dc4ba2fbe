/** Finds the claims of pools to one more lease. */
import type { Member, Seat } from './fair-seats.js';
import { Rank } from './rank.js';

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
export function rankOf(member: Member): Rank {
  if (member.isDue) return Rank.due;
  let worst: Rank = Rank.promised;
  for (const seat of member.seats) {
    if (seat.budget.isIdle) continue;
    const rank = rankIn(seat);
    if (rank > worst) worst = rank;
  }
  return worst;
}
