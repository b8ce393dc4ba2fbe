/** The needs of pools lately: each of their numbers at its highest of the last half minute. */
import type { LeaseHolder } from '../../core/leases.js';
import type { Needs } from './fair-level.js';
import { RecentPeak } from './recent-peak.js';

const windowMs = 30_000;
const parts = 6;

interface Peaks {
  readonly callers: RecentPeak;
  readonly total: RecentPeak;
  readonly claimants: RecentPeak;
}

/** Leases that a holder has, and leases that it waits for. */
export interface Holding {
  readonly held: number;
  readonly wish: number;
}

export class DemandWindow {
  readonly #peaks = new WeakMap<LeaseHolder, Peaks>();

  /**
   * The needs of a holder. A holder without a `demand` needs what it holds and what it waits for; a waiter asks for one
   * at a time, however many it needs. Call often: only observed values count.
   */
  of(holder: LeaseHolder, { held, wish }: Holding, now: number): Needs {
    const { demand, readyDemand = 0 } = holder;
    const peaks = this.#peaksOf(holder);
    const claimants = peaks.claimants.of(weightOf(holder), now);
    if (demand === undefined) return { callers: held + wish, total: held + wish, claimants };
    const { limit = Number.POSITIVE_INFINITY } = holder as { readonly limit?: number };
    // However many callers wait: a pool has use for no more than it may have.
    const present = Math.min(demand, limit);
    // Callers that waited are no longer a need once they are served; callers with connections may come again.
    const callers = Math.max(present, peaks.callers.of(Math.min(present, held), now));
    const total = peaks.total.of(Math.min(demand + readyDemand, limit), now);
    return { callers, total: Math.max(callers, total, wish > 0 ? held + wish : 0), claimants };
  }

  #peaksOf(holder: LeaseHolder): Peaks {
    const known = this.#peaks.get(holder);
    if (known !== undefined) return known;
    const peaks = { callers: newPeak(), total: newPeak(), claimants: newPeak() };
    this.#peaks.set(holder, peaks);
    return peaks;
  }
}

function newPeak(): RecentPeak {
  return new RecentPeak(windowMs, parts);
}

/** A missing number of claimants counts as one. */
function weightOf({ claimants }: LeaseHolder): number {
  return claimants !== undefined && claimants > 0 && Number.isFinite(claimants) ? claimants : 1;
}
