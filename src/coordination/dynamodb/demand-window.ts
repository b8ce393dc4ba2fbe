/** How many connections pools have had use for lately: lent ones and callers that wait, at the highest of the last half minute. */
import type { LeaseHolder } from '../../core/leases.js';
import { RecentPeak } from './recent-peak.js';

const windowMs = 30_000;
const parts = 6;

export class DemandWindow {
  readonly #peaks = new WeakMap<LeaseHolder, RecentPeak>();

  /** Undefined where a holder does not tell what it has use for. Call often: only what is seen counts. */
  of(holder: LeaseHolder, now: number): number | undefined {
    const { demand: asked, limit } = holder as { readonly demand?: unknown; readonly limit?: unknown };
    if (typeof asked !== 'number') return undefined;
    const peak = this.#peaks.get(holder) ?? new RecentPeak(windowMs, parts);
    this.#peaks.set(holder, peak);
    // However many callers wait: a pool has use for no more than it may have.
    return peak.of(typeof limit === 'number' ? Math.min(asked, limit) : asked, now);
  }
}
