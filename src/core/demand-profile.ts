/**
 * The usual need of a user at this time of the day. A day is cut into slots; each remembers the highest demand in it,
 * averaged over the days so that yesterday counts more than last week.
 */

const unknown = -1;

export class DemandProfile {
  readonly #slots: Float32Array;
  /** The part of the average that the latest day makes up. */
  readonly #latestPart: number;
  /** The current slot, counted from the origin of the clock, and its peak so far. */
  #present = Number.NaN;
  #peak = 0;

  constructor(slots: number, latestPart: number) {
    this.#slots = new Float32Array(slots).fill(unknown);
    this.#latestPart = latestPart;
  }

  /** Records a demand in a slot. A clock that goes back counts as one that stands still. */
  record(slot: number, demand: number): void {
    if (Number.isNaN(this.#present)) this.#present = slot;
    if (slot > this.#present) {
      this.#learn(this.#present, this.#peak);
      this.#learnSilence(this.#present + 1, slot);
      this.#present = slot;
      this.#peak = 0;
    }
    if (demand > this.#peak) this.#peak = demand;
  }

  /** The usual peak in a slot; 0 where none is known. */
  usual(slot: number): number {
    return Math.max(0, this.#slots[slot % this.#slots.length] as number);
  }

  #learn(slot: number, peak: number): void {
    const place = slot % this.#slots.length;
    const usual = this.#slots[place] as number;
    this.#slots[place] = usual === unknown ? peak : usual + (peak - usual) * this.#latestPart;
  }

  /** Records zero demand for the slots in which nothing was recorded. */
  #learnSilence(from: number, until: number): void {
    const days = Math.floor((until - from) / this.#slots.length);
    if (days > 0) {
      const left = (1 - this.#latestPart) ** days;
      for (const [place, usual] of this.#slots.entries()) this.#slots[place] = Math.max(0, usual) * left;
    }
    for (let slot = from + days * this.#slots.length; slot < until; slot++) this.#learn(slot, 0);
  }
}
