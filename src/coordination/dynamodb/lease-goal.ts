/** The number of slots an instance aims for: its use, some ahead of need, and for a while its earlier use. */
import { type Claim, callersShare, type FairLevels, type Needs, readyShare } from './fair-level.js';

/** The slots that the instance has use for. */
export interface LeaseGoal {
  /** Number of slots to aim for. */
  readonly slots: number;
  /** Number of slots with connections. */
  readonly used: number;
  readonly needs: Needs;
  /** Slots that it has without a turn; 0 while there are no turns. */
  readonly whole: number;
  /** The levels from which shares follow when there is not enough for all; undefined while there is enough. */
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
  /** Number of slots to hold ahead of need, and its maximum. */
  readonly block: number;
  readonly largestBlock: number;
  readonly limit: number;
  /** Undefined while there is enough for all. */
  readonly levels: FairLevels | undefined;
  /** The most the instance may have; Infinity while there is enough for all. */
  readonly share: number;
  /** Free slots, as last seen. */
  readonly free: number;
  readonly instances: number;
  /** Other instances have fewer slots than their callers should have: free slots are for them. */
  readonly areCallersShort: boolean;
  /** Little is left for other instances. */
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

/** With half of the slots ahead of need still unused, fetching more is not urgent. */
function hasEnoughInHand(situation: LeaseSituation, need: number, ahead: number): boolean {
  const { slots, held, needs, block, free, instances } = situation;
  // No slot is fetched ahead of need that would leave other instances without one.
  if (slots >= need && (slots >= need + Math.ceil(ahead / 2) || free < instances)) return true;
  if (slots < needs.callers) return false;
  return situation.areCallersShort || slots >= held + Math.ceil(block / 2);
}

/** Ready connections are opened one after the other. Slots reserved for them here may be needed by another instance now. */
function reach({ slots, held, needs, block, areCallersShort }: LeaseSituation, most: number): number {
  const wanted = areCallersShort ? needs.callers : Math.max(needs.callers, held) + block;
  return Math.max(slots, Math.min(most, wanted));
}

/**
 * True if other instances may get another share because the needs of this one differ from those it published. A need
 * above the share changes nothing, nor do callers' needs below what is there for ready connections.
 */
export function isNews(told: Needs, claim: Claim, levels: FairLevels): boolean {
  if (told.claimants !== claim.claimants) return true;
  const ready = readyShare(claim, levels);
  const most = callersShare({ ...claim, callers: Number.MAX_SAFE_INTEGER }, levels);
  const callersOf = ({ callers }: Needs): number => Math.max(Math.min(callers, most + 1), ready);
  const totalOf = ({ total }: Needs): number => Math.min(total, ready + 1);
  return callersOf(told) !== callersOf(claim) || totalOf(told) !== totalOf(claim);
}
