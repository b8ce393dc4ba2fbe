// Fair shares the slow way: every slot that anyone could have is put into one long line, and the first ones are given.
import type { ShareUser } from '../../src/core/fair-share.js';

/** One slot of one user. The smaller comes first, number by number. */
interface Slot {
  readonly key: string;
  readonly place: readonly number[];
}

const never = Number.POSITIVE_INFINITY;

export interface SlowRequest {
  readonly capacity: number;
  readonly headroom: number;
  /** Active users, beginning with the one whose turn it is. */
  readonly users: readonly ShareUser[];
  /** How much each user may keep. */
  readonly keeps: ReadonlyMap<string, number>;
}

export function slowShares(request: SlowRequest): Map<string, number> {
  const { capacity, users } = request;
  const whoseTurn = users.find(({ demand }) => demand > 0) ?? users[0];
  const slots: Slot[] = Array.from({ length: request.headroom }, () => ({ key: '', place: [5] }));
  users.forEach((user, turn) => {
    const { key, demand, weight, maximum = never } = user;
    const minimum = Math.min(user.minimum ?? 0, maximum);
    const due = Math.max(1, minimum, Math.min(demand, maximum));
    for (let k = 1; k <= Math.min(maximum, capacity); k++) {
      const byWeight = (k - 0.5) / weight;
      const beyondNeed = (k - due - 0.5) / weight;
      const place = (): number[] => {
        if (k === 1 && user === whoseTurn) return [0];
        if (k === 1 && minimum > 0) return [1, 0, turn];
        if (k <= minimum) return [1, 1, byWeight];
        if (k === 1) return [2, demand > 0 ? 0 : 1, turn];
        if (k <= demand) return [3, byWeight];
        return k <= (request.keeps.get(key) ?? 0) ? [4, beyondNeed] : [6, beyondNeed];
      };
      slots.push({ key, place: place() });
    }
  });
  slots.sort(byPlace);
  const shares = new Map(users.map(({ key }) => [key, 0]));
  for (const { key } of slots.slice(0, capacity)) {
    if (key !== '') shares.set(key, (shares.get(key) ?? 0) + 1);
  }
  return shares;
}

function byPlace(a: Slot, b: Slot): number {
  for (let n = 0; n < Math.max(a.place.length, b.place.length); n++) {
    const difference = (a.place[n] ?? 0) - (b.place[n] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.key < b.key ? -1 : 1;
}
