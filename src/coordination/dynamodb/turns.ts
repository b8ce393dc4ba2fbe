/**
 * Who has its turn when there are more instances than slots, so that each can have one for a while only.
 *
 * Two moments say it for all, and so fit into the counter: who has had its slot since before the one gives it back, and who
 * has been waiting since before the other may take one. Those who hold longest give first, those who wait longest take
 * first, and all others stay where they are.
 */
import type { Lease } from './lease-items.js';

/** By the server's clock. */
export interface Turns {
  readonly giveBeforeMs: number;
  readonly takeBeforeMs: number;
}

export interface TurnTerms {
  readonly limit: number;
  /** Who has its slot keeps it for so long at least. */
  readonly turnMs: number;
  readonly nowMs: number;
  /** The moment that the last look found for taking. It never goes back. */
  readonly takeBeforeMs: number;
}

/** Who has not given back after so many turns can't, as with a long transaction, or is gone. Others are asked instead. */
const stuckTurns = 3;

/** Undefined when all whose callers want something can have something. */
export function turnsOf(leases: readonly Lease[], terms: TurnTerms): Turns | undefined {
  const { limit, nowMs, turnMs } = terms;
  const wanting = leases.filter(({ needs }) => needs.callers > 0);
  if (wanting.length <= limit) return undefined;
  const bySince = wanting.sort((one, other) => one.sinceMs - other.sinceMs);
  const waiting = bySince.filter(({ slots }) => slots === 0);
  const givers = giving(
    bySince.filter(({ slots, sinceMs }) => slots > 0 && sinceMs <= nowMs - turnMs),
    waiting.length,
    nowMs - stuckTurns * turnMs,
  );
  const free = Math.max(0, limit - leases.reduce((sum, { slots }) => sum + slots, 0));
  return {
    giveBeforeMs: givers.at(-1)?.sinceMs ?? 0,
    takeBeforeMs: takingUntil(waiting, free, givers.length, terms.takeBeforeMs),
  };
}

/** As many as wait. Those who seem to be stuck are asked too, and not counted on. */
function giving(holding: readonly Lease[], waiting: number, stuckBeforeMs: number): readonly Lease[] {
  const stuck = holding.filter(({ sinceMs }) => sinceMs <= stuckBeforeMs).length;
  return holding.slice(0, stuck + waiting);
}

/** As many as there will be slots for. Those who could have had a free one already, and did not take it, do not count. */
function takingUntil(waiting: readonly Lease[], free: number, coming: number, takeBeforeMs: number): number {
  const counted = free > 0 ? waiting.filter(({ sinceMs }) => sinceMs > takeBeforeMs) : waiting;
  const last = counted[Math.min(free + coming, counted.length) - 1];
  return Math.max(takeBeforeMs, last?.sinceMs ?? 0);
}

/** Whether it is the turn of one that has had a slot, or has been waiting for one, since `sinceMs`. */
export function hasTurn({ giveBeforeMs, takeBeforeMs }: Turns, isHolding: boolean, sinceMs: number): boolean {
  return isHolding ? sinceMs > giveBeforeMs : sinceMs <= takeBeforeMs;
}
