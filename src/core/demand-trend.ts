/**
 * The trend of a user's demand: the median of the slopes between all pairs of its latest values (Theil and Sen),
 * extrapolated into the near future. A single outlier changes nothing.
 */

/** With fewer values, one outlier could pass for a trend. */
const fewest = 4;

export class DemandTrend {
  readonly #times: Float64Array;
  readonly #values: Float64Array;
  #count = 0;
  #next = 0;

  constructor(size: number) {
    this.#times = new Float64Array(size);
    this.#values = new Float64Array(size);
  }

  /** Records a demand. A value that is not later than the last one is ignored. */
  record(time: number, demand: number): void {
    const size = this.#times.length;
    const last = this.#times[(this.#next + size - 1) % size] as number;
    if (this.#count > 0 && !(time > last)) return;
    this.#times[this.#next] = time;
    this.#values[this.#next] = demand;
    this.#next = (this.#next + 1) % size;
    this.#count = Math.min(size, this.#count + 1);
  }

  /** The demand at a future time if it goes on rising; 0 if it does not rise. */
  at(time: number): number {
    if (this.#count < fewest) return 0;
    const slope = this.#slope();
    if (!(slope > 0)) return 0;
    const drawn = new Float64Array(this.#count);
    for (let n = 0; n < this.#count; n++) {
      drawn[n] = (this.#values[n] as number) + slope * (time - (this.#times[n] as number));
    }
    return median(drawn);
  }

  #slope(): number {
    const slopes = new Float64Array((this.#count * (this.#count - 1)) / 2);
    let filled = 0;
    for (let n = 1; n < this.#count; n++) {
      for (let m = 0; m < n; m++) {
        const rise = (this.#values[n] as number) - (this.#values[m] as number);
        slopes[filled++] = rise / ((this.#times[n] as number) - (this.#times[m] as number));
      }
    }
    return median(slopes);
  }
}

/** Puts the numbers in order. */
function median(numbers: Float64Array): number {
  numbers.sort();
  const middle = numbers.length >> 1;
  const upper = numbers[middle] as number;
  return numbers.length % 2 === 1 ? upper : ((numbers[middle - 1] as number) + upper) / 2;
}
