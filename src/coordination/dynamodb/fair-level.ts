/**
 * The share of each claim when there is not enough for all.
 *
 * All wanted slots stand in one order, and the first `limit` of them are given. Callers' slots come before slots for
 * ready connections. Within each of the two rounds the order is that of Webster's method: the k-th slot of a claim comes
 * at (k - 1/2) / claimants, and with equal keys the lower rank comes first. A claim with callers has its first slot
 * before any has its second. Ready connections count on from the slots that callers have, so that the sums are level.
 *
 * The place of the first slot that is not given is all that must be known: each instance computes its own share from it.
 * A larger limit is a longer part of the same order, so that no share falls when the limit rises.
 */

/** The needs of an instance. */
export interface Needs {
  /** Connections in use, and waiting callers. */
  readonly callers: number;
  /** Including the connections that are to be ready besides. */
  readonly total: number;
  /** Users behind it, by weight. Above 0. */
  readonly claimants: number;
}

export interface Claim extends Needs {
  /** Decides between equals. */
  readonly rank: number;
}

/** The first slot that is not given; Infinity where a round has enough for all. */
export interface FairLevels {
  readonly callersLevel: number;
  readonly level: number;
  /** Rank of that first slot. */
  readonly rank: number;
}

const never = Number.POSITIVE_INFINITY;

export const enoughForAll: FairLevels = { callersLevel: never, level: never, rank: 0 };

/** One claim in one round: it has `from` slots already, and wants `to`. */
interface Wish {
  readonly from: number;
  readonly to: number;
  readonly claimants: number;
  readonly rank: number;
}

export function fairLevels(claims: readonly Claim[], limit: number): FairLevels {
  const callers = sum(claims.map((claim) => claim.callers));
  if (callers > limit) return callersLevels(claims, limit);
  const missing = sum(claims.map(({ total }) => total)) - limit;
  if (missing <= 0) return enoughForAll;
  const wishes = claims.map((claim) => ({ ...claim, from: claim.callers, to: claim.total }));
  return { callersLevel: never, ...firstNotGiven(wishes, limit - callers) };
}

/** The levels when no slot is left for ready connections. */
function callersLevels(claims: readonly Claim[], limit: number): FairLevels {
  const wishes = claims
    .filter((claim) => claim.callers > 0)
    .map((claim) => ({ ...claim, from: 1, to: claim.callers }));
  if (wishes.length > limit) {
    const ranks = wishes.map(({ rank }) => rank).sort((one, other) => one - other);
    return { callersLevel: 0, level: 0, rank: ranks[limit] as number };
  }
  const { level: callersLevel, rank } = firstNotGiven(wishes, limit - wishes.length);
  return { callersLevel, level: 0, rank };
}

/** The share of a claim. Never more than its total. */
export function shareOf(claim: Claim, levels: FairLevels): number {
  return Math.max(callersShare(claim, levels), Math.min(claim.total, readyShare(claim, levels)));
}

/** The share of a claim's callers. */
export function callersShare({ callers, claimants, rank }: Claim, levels: FairLevels): number {
  const { callersLevel } = levels;
  if (callersLevel === never) return callers;
  if (callersLevel === 0) return rank < levels.rank ? Math.min(1, callers) : 0;
  return Math.min(callers, Math.max(1, slotsBelow(callersLevel, claimants, rank, levels.rank)));
}

/** The share of a claim for callers and ready connections together; more only for callers. */
export function readyShare({ claimants, rank }: Claim, { level, rank: levelRank }: FairLevels): number {
  return level === never ? never : slotsBelow(level, claimants, rank, levelRank);
}

/** A rank for a lease that every instance computes alike and that does not depend on its age: FNV-1a. */
export function rankOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let n = 0; n < key.length; n++) hash = Math.imul(hash ^ key.charCodeAt(n), 0x01000193) >>> 0;
  return hash;
}

function keyOf(slot: number, claimants: number): number {
  return (slot - 0.5) / claimants;
}

/** Slots whose keys are not above the level; for a key exactly at the level, the rank decides. */
function slotsBelow(level: number, claimants: number, rank: number, levelRank: number): number {
  const slots = slotsUpTo(level, claimants);
  const isAt = slots > 0 && keyOf(slots, claimants) === level;
  return isAt && rank >= levelRank ? slots - 1 : slots;
}

function slotsUpTo(level: number, claimants: number): number {
  let slots = Math.floor(level * claimants + 0.5);
  // The division may round to the other side of a key.
  while (slots > 0 && keyOf(slots, claimants) > level) slots--;
  while (keyOf(slots + 1, claimants) <= level) slots++;
  return slots;
}

/** `left` slots are given, which is less than is wished for. */
function firstNotGiven(wishes: readonly Wish[], left: number): { level: number; rank: number } {
  let low = 0;
  let high = wishes.reduce((most, { to, claimants }) => Math.max(most, keyOf(to, claimants)), 0);
  for (let n = 0; n < 40; n++) {
    const middle = (low + high) / 2;
    if (given(wishes, middle) <= left) low = middle;
    else high = middle;
  }
  const next = wishes
    .flatMap((wish) => keysBetween(wish, low, high))
    .sort((one, other) => one.level - other.level || one.rank - other.rank);
  return next[left - given(wishes, low)] as { level: number; rank: number };
}

function given(wishes: readonly Wish[], level: number): number {
  return sum(wishes.map((wish) => slotsAt(wish, level) - wish.from));
}

function slotsAt({ from, to, claimants }: Wish, level: number): number {
  return Math.max(from, Math.min(to, slotsUpTo(level, claimants)));
}

function keysBetween(wish: Wish, low: number, high: number): { level: number; rank: number }[] {
  const { claimants, rank } = wish;
  const first = slotsAt(wish, low) + 1;
  const count = Math.max(0, slotsAt(wish, high) - first + 1);
  return Array.from({ length: count }, (_, n) => ({ level: keyOf(first + n, claimants), rank }));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
