/** Jain's index of fairness: 1 where all are served alike, 1/n where one has everything. */
import type { ShareRecord } from './observation.js';

/** Over users that hold something or wait for it, of what each has by what it is entitled to. Undefined where there is none. */
export function jainOf(users: readonly ShareRecord[]): number | undefined {
  let count = 0;
  let sum = 0;
  let squares = 0;
  for (const { held, demand, share, waitedMs } of users) {
    const isWaiting = waitedMs > 0;
    const entitled = Math.min(demand, share);
    if (held === 0 && (!isWaiting || entitled <= 0)) continue;
    // A user without waiters has what it wants; more than the entitlement is what others do not need.
    const part = isWaiting && entitled > 0 ? Math.min(1, held / entitled) : 1;
    count++;
    sum += part;
    squares += part * part;
  }
  if (count === 0) return undefined;
  return squares === 0 ? 1 : (sum * sum) / (count * squares);
}
