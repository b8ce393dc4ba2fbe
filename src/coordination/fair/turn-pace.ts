/**
 * Spreads the ends of turns that began together. Closing and opening many connections at the same moment slows each of
 * them, and serves no caller meanwhile.
 */
export class TurnPace {
  #nextAt = Number.NEGATIVE_INFINITY;

  /** True if one more turn may end now. `lateMs`: turns that a late round has delayed by this much may end together. */
  mayEnd(now: number, apartMs: number, lateMs: number): boolean {
    const dueAt = Math.max(this.#nextAt, now - lateMs);
    if (dueAt > now) return false;
    this.#nextAt = dueAt + apartMs;
    return true;
  }
}
