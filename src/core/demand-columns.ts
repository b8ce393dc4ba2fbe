/** The demand trackers of many users whose intervals end together, stored as columns with one place per user. See `demand-tracker.ts`. */

export class DemandColumns {
  /** The highest demand in the window. */
  peaks = new Float64Array(0);
  readonly #intervals: number;
  /** The peaks of one interval after the other, with capacity for `#room` users each. */
  #kept = new Float64Array(0);
  #room = 0;
  #present = 0;

  /** `intervals`: how many are remembered, the present one included. */
  constructor(intervals: number) {
    this.#intervals = intervals;
  }

  /** Users have other places. `from`: for each place the one before; -1 for a newcomer. */
  move(from: Int32Array): void {
    const { peaks } = this;
    const kept = this.#kept;
    const room = from.length <= this.#room ? this.#room : Math.max(from.length, 2 * this.#room);
    const larger = new Float64Array(room * this.#intervals);
    this.peaks = new Float64Array(room);
    for (let place = 0; place < from.length; place++) {
      const former = from[place] as number;
      if (former === -1 || peaks[former] === 0) continue;
      this.peaks[place] = peaks[former] as number;
      for (let n = 0; n < this.#intervals; n++)
        larger[n * room + place] = kept[n * this.#room + former] as number;
    }
    this.#kept = larger;
    this.#room = room;
  }

  /** The highest demand in the present interval. */
  presentOf(place: number): number {
    return this.#kept[this.#present * this.#room + place] as number;
  }

  /** Records a peak of the current interval without ending it. */
  note(place: number, peak: number): void {
    if (!(peak >= 0)) throw new RangeError(`A peak of demand is a number of at least 0, not ${peak}.`);
    const at = this.#present * this.#room + place;
    if (peak <= (this.#kept[at] as number)) return;
    this.#kept[at] = peak;
    if (peak > (this.peaks[place] as number)) this.peaks[place] = peak;
  }

  /** Forgets all peaks of a user. */
  reset(place: number): void {
    if (this.peaks[place] === 0) return;
    this.peaks[place] = 0;
    for (let n = 0; n < this.#intervals; n++) this.#kept[n * this.#room + place] = 0;
  }

  endInterval(): void {
    this.#present = (this.#present + 1) % this.#intervals;
    const room = this.#room;
    const kept = this.#kept;
    kept.fill(0, this.#present * room, (this.#present + 1) * room);
    this.peaks.set(kept.subarray(0, room));
    for (let n = 1; n < this.#intervals; n++)
      for (let place = 0; place < room; place++) {
        const peak = kept[n * room + place] as number;
        if (peak > (this.peaks[place] as number)) this.peaks[place] = peak;
      }
  }
}
