/** What users lay claim to when something is shared out, as columns: one place a user, the same place in each column. */

export interface Claim {
  readonly key: string;
  /** Connections it has a use for, at least 0. */
  readonly demand: number;
  /** Above 0. With twice the weight comes twice the share. */
  readonly weight: number;
  /** It is promised so many, whether or not it has a use for them. */
  readonly minimum?: number | undefined;
  /** It never gets more, and no more is promised to it. At least 1. */
  readonly maximum?: number | undefined;
}

/** The columns keep their room from one time to the next, so that nothing is allocated where nobody came. */
export class Claims {
  size = 0;
  readonly keys: string[] = [];
  weights = new Float64Array(0);
  minimums = new Float64Array(0);
  maximums = new Float64Array(0);
  /** Its demand, as far as its maximum lets it through. */
  needs = new Float64Array(0);
  /** It is left with so many if nobody needs them, even where sharing out anew would give it less. */
  keeps = new Float64Array(0);
  /** The outcome. */
  shares = new Float64Array(0);

  // Set by whoever fills, anew for each kind of claim.
  /** Slots up to this one are not counted where prices are made. */
  offsets = new Float64Array(0);
  /** So many at most, for now. */
  ceilings = new Float64Array(0);

  /** Makes it empty, with room for `size` users. */
  reset(size: number): void {
    this.size = 0;
    this.keys.length = 0;
    if (this.weights.length >= size) return;
    const room = Math.max(16, 2 * this.weights.length, size);
    this.weights = new Float64Array(room);
    this.minimums = new Float64Array(room);
    this.maximums = new Float64Array(room);
    this.needs = new Float64Array(room);
    this.keeps = new Float64Array(room);
    this.shares = new Float64Array(room);
    this.offsets = new Float64Array(room);
    this.ceilings = new Float64Array(room);
  }

  add(claim: Claim): void {
    const place = this.size++;
    const { demand, minimum = 0, maximum = Number.POSITIVE_INFINITY } = claim;
    this.keys.push(claim.key);
    this.weights[place] = claim.weight;
    this.minimums[place] = Math.min(minimum, maximum);
    this.maximums[place] = maximum;
    this.needs[place] = Math.min(demand, maximum);
    this.keeps[place] = 0;
    this.shares[place] = 0;
  }
}
