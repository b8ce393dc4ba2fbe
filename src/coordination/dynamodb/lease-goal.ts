/** How many slots an instance is to have: what it has use for, some ahead of need, and for a while what it had use for before. */

/** What the instance has use for. */
export interface LeaseGoal {
  /** How many slots it is to have. */
  readonly slots: number;
  /** How many have connections. */
  readonly used: number;
  /** How many it would use if it had them. */
  readonly wanted: number;
  /** Others wait too, and what it wants matters to them up to so many; undefined while there is enough. */
  readonly matters?: number | undefined;
}

/** What the goal goes by. */
export interface LeaseNeeds {
  /** Slots that it has. */
  readonly slots: number;
  readonly held: number;
  readonly wanted: number;
  /** The most that it used lately. */
  readonly usedLately: number;
  /** How many to hold ahead of need, and how many at most. */
  readonly block: number;
  readonly largestBlock: number;
  readonly limit: number;
  /** No instance is to have more while others wait; Infinity while none does. */
  readonly level: number;
  /** It was refused more just now. */
  readonly isDenied: boolean;
  /** There is little left for others. */
  readonly isCrowded: boolean;
  /** The lease is written anyway, so that to give slots back costs little. */
  readonly isRenewing: boolean;
}

/** Asked with every acquire and release. */
export function leaseGoal(needs: LeaseNeeds): LeaseGoal {
  const { held, wanted, level } = needs;
  const isScarce = needs.isDenied || level !== Number.POSITIVE_INFINITY;
  // Above the level, what is wanted changes nothing for anybody.
  const matters = isScarce ? level + 1 : undefined;
  return { slots: slotsFor(needs, isScarce), used: held, wanted, matters };
}

function slotsFor(needs: LeaseNeeds, isScarce: boolean): number {
  const { slots, held, wanted, limit, level, isCrowded } = needs;
  const ahead = isScarce ? 0 : isCrowded ? 1 : needs.block;
  const need = Math.max(held, wanted);
  const most = Math.max(held, Math.min(need + ahead, level, limit));
  // With half of what is to be ahead in hand, there is no hurry to fetch more.
  if (slots < most) return slots >= need + Math.ceil(ahead / 2) ? slots : most;
  if (isScarce) return most;
  // What others have no use for may be needed here again, and then it costs nothing.
  const kept = isCrowded ? most : Math.max(most, Math.min(slots, needs.usedLately + ahead));
  const spare = slots - kept;
  const isWorthIt = needs.isRenewing && (isCrowded || spare >= needs.largestBlock / 2);
  const isUrgent = isCrowded && spare > needs.largestBlock;
  return isWorthIt || isUrgent ? kept : slots;
}
