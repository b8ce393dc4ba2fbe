/** Sums the samples of several pools into those of one. */
import type { Sample } from '../../observe/metric-family.js';

interface Sum {
  readonly sample: Sample;
  value: number;
}

export class SampleSums {
  readonly #labels: Readonly<Record<string, string>>;
  readonly #isGreatest: boolean;
  /** Sums by everything that distinguishes samples of a pool. */
  readonly #sums = new Map<string, Sum>();

  /** `labels`: labels of the sum. `isGreatest`: the greatest value counts, not the sum. */
  constructor(labels: Readonly<Record<string, string>>, isGreatest: boolean) {
    this.#labels = labels;
    this.#isGreatest = isGreatest;
  }

  add(samples: Iterable<Sample>): void {
    for (const sample of samples) {
      const key = `${sample.suffix} ${Object.values(sample.labels).join(' ')}`;
      const sum = this.#sums.get(key);
      if (sum === undefined) this.#sums.set(key, { sample, value: sample.value });
      else sum.value = this.#isGreatest ? Math.max(sum.value, sample.value) : sum.value + sample.value;
    }
  }

  /** In the order of their first occurrence; none where nothing was added. */
  samples(): Sample[] {
    return Array.from(this.#sums.values(), ({ sample, value }) => ({
      ...sample,
      labels: { ...this.#labels, ...sample.labels },
      value,
    }));
  }
}
