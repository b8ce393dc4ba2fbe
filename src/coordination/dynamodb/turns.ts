/**
 * Slot turns, for more users than slots: the part of an instance is then not a whole number of slots. It has the whole
 * slots of its part permanently, and one more for a fraction of the time.
 *
 * A part is as many slots as the users behind the instance, by weight, have a claim to. With one user behind one
 * instance, 19 behind another and 5 slots, the first has a slot for a quarter of the time, and the second 4 slots and
 * that one for the rest.
 *
 * Two moments determine all turns, and so fit into the counter: an instance whose turn ended before the one releases its
 * slot, and an instance whose wait ended before the other may take one. A turn takes the fraction of a rotation, and a
 * wait the rest of it.
 */
import type { Needs } from './fair-level.js';
import type { Lease } from './lease-items.js';
import type { Turns } from './turn-times.js';

export interface TurnTerms {
  readonly limit: number;
  /** Length of a turn where all have the same part. */
  readonly turnMs: number;
  readonly nowMs: number;
  /** The `takeBeforeMs` of the last sweep. It never goes back. */
  readonly takeBeforeMs: number;
}

/** An instance that has not released its slot after this many turns is stuck (a long transaction) or dead: others are asked instead. */
const stuckTurns = 3;
/** An instance with a smaller part than this has turns; a larger one is rounded to one slot. */
const smallestRounded = 0.75;
/** A rotation has at most this many turns, however small one part is. */
const longestRotation = 6;
/** Smaller fractions are rounding errors. */
const tiny = 1e-6;

interface Part {
  readonly whole: number;
  readonly fraction: number;
}

interface Rotating extends Part {
  readonly lease: Lease;
}

function partOf({ callers, claimants }: Needs, perClaimant: number): Part {
  const part = Math.min(callers, perClaimant * claimants);
  const whole = Math.floor(part + tiny);
  return { whole, fraction: part - whole < tiny ? 0 : part - whole };
}

/** Undefined if every instance with waiting callers can have at least about as much as its users have a claim to. */
export function turnsOf(leases: readonly Lease[], terms: TurnTerms): Turns | undefined {
  const { limit, turnMs, nowMs } = terms;
  const wanting = leases.filter(({ needs }) => needs.callers > 0);
  const perClaimant = fillLevel(wanting, limit);
  if (perClaimant === undefined) return undefined;
  const isEnough = wanting.every(({ needs }) => perClaimant * needs.claimants >= smallestRounded);
  if (wanting.length <= limit && isEnough) return undefined;
  const parts = wanting.map((lease) => ({ lease, ...partOf(lease.needs, perClaimant) }));
  const rotating = parts.filter(({ fraction }) => fraction > 0);
  const rotationMs = turnMs * turnsInRotation(rotating);
  const holding = byDue(rotating.filter(hasExtra), ({ fraction }) => fraction * rotationMs);
  const waiting = byDue(
    rotating.filter((one) => !hasExtra(one)),
    ({ fraction }) => (1 - fraction) * rotationMs,
  );
  const givers = giving(
    holding.filter((dueMs) => dueMs <= nowMs),
    waiting.length,
    nowMs - (stuckTurns - 1) * turnMs,
  );
  const slots = leases.reduce((sum, lease) => sum + lease.slots, 0);
  // Slots that instances lack of their whole ones are for them.
  const lacking = parts.reduce((sum, { lease, whole }) => sum + Math.max(0, whole - lease.slots), 0);
  const free = Math.max(0, limit - slots - lacking);
  return {
    giveBeforeMs: givers.at(-1) ?? 0,
    takeBeforeMs: takingUntil(waiting, free, givers.length, terms.takeBeforeMs),
    perClaimant,
    rotationMs,
  };
}

/** Slots per user if instances have no more than their callers need; undefined while there is enough for all. */
function fillLevel(wanting: readonly Lease[], limit: number): number | undefined {
  if (wanting.reduce((sum, { needs }) => sum + needs.callers, 0) <= limit) return undefined;
  const levelOf = ({ needs }: Lease): number => needs.callers / needs.claimants;
  let claimants = wanting.reduce((sum, { needs }) => sum + needs.claimants, 0);
  let left = limit;
  for (const lease of wanting.toSorted((one, other) => levelOf(one) - levelOf(other))) {
    if (levelOf(lease) > left / claimants) break;
    left -= lease.needs.callers;
    claimants -= lease.needs.claimants;
  }
  return left / claimants;
}

/** A turn of usual length for each where all have the same part; an instance with less has a turn that is not much shorter. */
function turnsInRotation(rotating: readonly Rotating[]): number {
  const slots = rotating.reduce((sum, { fraction }) => sum + fraction, 0);
  const least = Math.min(1, ...rotating.map(({ fraction }) => fraction));
  return slots === 0 ? 1 : Math.max(rotating.length / slots, Math.min(longestRotation, 1 / least));
}

function hasExtra({ lease, whole }: Rotating): boolean {
  return lease.slots > whole;
}

/** When the turns or waits of these instances are over, the earliest first. */
function byDue(rotating: readonly Rotating[], lengthOf: (one: Rotating) => number): number[] {
  return rotating.map((one) => one.lease.sinceMs + lengthOf(one)).sort((one, other) => one - other);
}

/** As many turns end as instances wait. Instances that seem stuck are asked too, but not counted on. */
function giving(due: readonly number[], waiting: number, stuckBeforeMs: number): readonly number[] {
  const stuck = due.filter((dueMs) => dueMs <= stuckBeforeMs).length;
  return due.slice(0, stuck + waiting);
}

/** As many may take as there will be slots. Instances that could have taken a free slot already, and did not, do not count. */
function takingUntil(due: readonly number[], free: number, coming: number, takeBeforeMs: number): number {
  const counted = free > 0 ? due.filter((dueMs) => dueMs > takeBeforeMs) : due;
  const last = counted[Math.min(free + coming, counted.length) - 1];
  return Math.max(takeBeforeMs, last ?? 0);
}

/** Slots that an instance has without a turn. */
export function wholeSlots(needs: Needs, { perClaimant }: Turns): number {
  return partOf(needs, perClaimant).whole;
}

/** Slots that an instance may have, given that since `sinceMs` it has had `slots`, or has waited for one more than the whole ones. */
export function slotsInTurn(needs: Needs, slots: number, sinceMs: number, turns: Turns): number {
  const { whole, fraction } = partOf(needs, turns.perClaimant);
  if (fraction === 0) return whole;
  const { giveBeforeMs, takeBeforeMs, rotationMs } = turns;
  const isTurn =
    slots > whole
      ? sinceMs + fraction * rotationMs > giveBeforeMs
      : sinceMs + (1 - fraction) * rotationMs <= takeBeforeMs;
  return isTurn ? whole + 1 : whole;
}
