/** How many slots an instance is to have: what it has use for, some ahead of need, and for a while what it had use for before. */
import { type Claim, callersShare, type FairLevels, type Needs, readyShare } from './fair-level.js';

/** The slots that the instance has use for. */
export interface LeaseGoal {
  /** How many slots it is to have. */
  readonly slots: number;
  /** How many have connections. */
  readonly used: number;
  readonly needs: Needs;
  /** Slots that it has without a turn; 0 while there are no turns. */
  readonly whole: number;
  /** There is not enough for all, and by these the shares are found; undefined while there is enough. */
  readonly levels?: FairLevels | undefined;
}

/** The facts that the goal follows from. */
export interface LeaseSituation {
  /** Slots that it has. */
  readonly slots: number;
  readonly held: number;
  readonly needs: Needs;
  /** Slots that it has without a turn; 0 while there are no turns. */
  readonly whole: number;
  /** The most that it used lately. */
  readonly usedLately: number;
  /** How many to hold ahead of need, and how many at most. */
  readonly block: number;
  readonly largestBlock: number;
  readonly limit: number;
  /** Undefined while there is enough for all. */
  readonly levels: FairLevels | undefined;
  /** The instance is to have no more; Infinity while there is enough for all. */
  readonly share: number;
  /** Slots that nobody has, as last seen. */
  readonly free: number;
  readonly instances: number;
  /** Others have fewer slots than their callers are to have: free ones are for them. */
  readonly areCallersShort: boolean;
  /** There is little left for others. */
  readonly isCrowded: boolean;
  /** The lease is written anyway, so that to give slots back costs little. */
  readonly isRenewing: boolean;
}

/** Asked with every acquire and release. */
export function leaseGoal(situation: LeaseSituation): LeaseGoal {
  const { held, needs, whole, levels } = situation;
  return { slots: slotsFor(situation), used: held, needs, whole, levels };
}

function slotsFor(situation: LeaseSituation): number {
  const { held, needs, limit, share, levels, isCrowded } = situation;
  const isScarce = levels !== undefined;
  const ahead = isScarce ? 0 : isCrowded ? 1 : situation.block;
  const need = Math.max(held, needs.total);
  const most = Math.max(held, Math.min(need + ahead, share, limit));
  const { slots } = situation;
  if (slots < most) return hasEnoughInHand(situation, need, ahead) ? slots : reach(situation, most);
  if (isScarce) return Math.max(held, Math.min(most, needs.total));
  // Slots that others have no use for may be needed here again, and cost nothing.
  const kept = isCrowded ? most : Math.max(most, Math.min(slots, situation.usedLately + ahead));
  const spare = slots - kept;
  const isWorthIt = situation.isRenewing && (isCrowded || spare >= situation.largestBlock / 2);
  const isUrgent = isCrowded && spare > situation.largestBlock;
  return isWorthIt || isUrgent ? kept : slots;
}

/** With half of what is to be ahead in hand, there is no hurry to fetch more. */
function hasEnoughInHand(situation: LeaseSituation, need: number, ahead: number): boolean {
  const { slots, held, needs, block, free, instances } = situation;
  // Nothing is fetched ahead of need that would leave others without.
  if (slots >= need && (slots >= need + Math.ceil(ahead / 2) || free < instances)) return true;
  if (slots < needs.callers) return false;
  return situation.areCallersShort || slots >= held + Math.ceil(block / 2);
}

/** Ready connections are opened one after the other. What one instance has in hand for them, another may need now. */
function reach({ slots, held, needs, block, areCallersShort }: LeaseSituation, most: number): number {
  const wanted = areCallersShort ? needs.callers : Math.max(needs.callers, held) + block;
  return Math.max(slots, Math.min(most, wanted));
}

/**
 * Whether others may get another share because an instance needs something else than it told. What is needed above
 * the share changes nothing, nor do callers' needs below what is there for ready connections.
 */
export function isNews(told: Needs, claim: Claim, levels: FairLevels): boolean {
  if (told.claimants !== claim.claimants) return true;
  const ready = readyShare(claim, levels);
  const most = callersShare({ ...claim, callers: Number.MAX_SAFE_INTEGER }, levels);
  const callersOf = ({ callers }: Needs): number => Math.max(Math.min(callers, most + 1), ready);
  const totalOf = ({ total }: Needs): number => Math.min(total, ready + 1);
  return callersOf(told) !== callersOf(claim) || totalOf(told) !== totalOf(claim);
}
