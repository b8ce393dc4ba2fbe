/** The mean of a delay. */
import type { Delay } from './scenario.js';

/** Milliseconds. */
export function meanOf(delay: Delay): number {
  switch (delay.kind) {
    case 'fixed':
      return delay.ms;
    case 'uniform':
      return (delay.fromMs + delay.toMs) / 2;
    case 'exponential':
      return delay.meanMs;
    case 'lognormal': {
      // 2.326 standard deviations above the median lies what one in a hundred exceeds.
      const sigma = Math.log(delay.p99Ms / delay.medianMs) / 2.326;
      return delay.medianMs * Math.exp((sigma * sigma) / 2);
    }
    case 'percentiles':
      return delay.points.reduce((sum, { part, ms }, index) => {
        const before = delay.points[index - 1] ?? { part: 0, ms };
        return sum + ((part - before.part) * (before.ms + ms)) / 2;
      }, 0);
    case 'counted': {
      const total = delay.lengths.reduce((sum, { weight }) => sum + weight, 0);
      return delay.lengths.reduce((sum, { ms, weight }) => sum + ms * weight, 0) / total;
    }
  }
}
