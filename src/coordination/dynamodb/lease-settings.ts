/** Settings of an instance's leases: checked, complete, in milliseconds. */
import type { LeaseKeys } from './lease-items.js';

/**
 * Behaviour towards connections whose lease could not be renewed in time, because the table can't be reached.
 *
 * - `hold`: open connections stay open, and none is opened.
 * - `localShare`: as many as the instance was promised for that case stay, and may be opened and replaced.
 * - `shed`: all are closed, before other instances may use their slots.
 */
export type OnCoordinatorLoss = 'hold' | 'localShare' | 'shed';

export const lossPolicies: readonly OnCoordinatorLoss[] = ['hold', 'localShare', 'shed'];

export interface LeaseSettings {
  readonly keys: LeaseKeys;
  /** Unique to this instance, and never used before. */
  readonly leaseId: string;
  readonly instance: string;
  readonly service: string;
  readonly limit: number;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly graceMs: number;
  /** Interval between reads of the counter. */
  readonly lookMs: number;
  /** The most slots held ahead of need. */
  readonly block: number;
  readonly onCoordinatorLoss: OnCoordinatorLoss;
  readonly localShare: number;
}

/** Shortest interval between sweeps while instances wait for slots. */
const urgentSweepMs = 2_000;

/** Longer than an owner needs to renew once the table can be reached again: a call that fails, and a pause. */
const watchMs = 10_000;

/** The times that follow from the others. */
export function sweepTimes({ graceMs, lookMs }: LeaseSettings): {
  sweepMs: number;
  urgentMs: number;
  watchMs: number;
  turnMs: number;
} {
  // Often enough that an expired lease is seen before its grace is over, and can be reclaimed at the end of the grace.
  const sweepMs = graceMs / 2;
  return {
    sweepMs,
    urgentMs: Math.min(urgentSweepMs, sweepMs),
    watchMs: Math.min(watchMs, graceMs),
    // With a shorter turn, handing the slot over would take longer than the slot is in use.
    turnMs: lookMs,
  };
}
