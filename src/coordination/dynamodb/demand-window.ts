/** How many connections pools have had use for lately: lent ones and callers that wait, at the highest of the last half minute. */
import type { LeaseHolder } from '../../core/leases.js';

const windowMs = 30_000;
const parts = 6;

interface Peaks {
  /** The highest of each part of the window, the present one last. */
  readonly peaks: number[];
  partSince: number;
}

export class DemandWindow {
  readonly #peaks = new WeakMap<LeaseHolder, Peaks>();

  /** Undefined where a holder does not tell what it has use for. Call often: only what is seen counts. */
  of(holder: LeaseHolder, now: number): number | undefined {
    const { demand: asked, limit } = holder as { readonly demand?: unknown; readonly limit?: unknown };
    if (typeof asked !== 'number') return undefined;
    // However many callers wait: a pool has use for no more than it may have.
    const demand = typeof limit === 'number' ? Math.min(asked, limit) : asked;
    const known = this.#peaks.get(holder) ?? { peaks: [0], partSince: now };
    this.#peaks.set(holder, known);
    while (now - known.partSince >= windowMs / parts) {
      known.peaks.push(0);
      if (known.peaks.length > parts) known.peaks.shift();
      // After a long silence there is nothing to go through.
      known.partSince = Math.max(known.partSince + windowMs / parts, now - windowMs);
    }
    const last = known.peaks.length - 1;
    known.peaks[last] = Math.max(known.peaks[last] as number, demand);
    return Math.max(...known.peaks);
  }
}
