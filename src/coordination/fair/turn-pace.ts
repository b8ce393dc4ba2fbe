/**
 * Turns that began together end one after the other. To close and open many connections at the same moment takes each of them
 * longer, and nobody is served meanwhile.
 */
export class TurnPace {
  #nextAt = Number.NEGATIVE_INFINITY;

  /** Whether one more may end now. `lateMs`: what could not end for want of a look, for so long, may end with it. */
  mayEnd(now: number, apartMs: number, lateMs: number): boolean {
    const dueAt = Math.max(this.#nextAt, now - lateMs);
    if (dueAt > now) return false;
    this.#nextAt = dueAt + apartMs;
    return true;
  }
}
