/** Sums the readings of several pools into those of one. */
import type { Sample, SampleHead } from '../../observe/metric-family.js';
import type { SampleGroup } from '../../observe/metric-text.js';
import { type PoolerFamily, sampleKey } from './family-readers.js';

interface Sum {
  readonly head: SampleHead;
  value: number;
}

export class FamilySums<Reading> {
  readonly #family: PoolerFamily<Reading>;
  readonly #isGreatest: boolean;
  /** By the place of the head. */
  readonly #fixed: number[];
  /** Sums of a family whose heads come up while the pooler runs: by everything that distinguishes its samples. */
  readonly #free = new Map<string, Sum>();
  readonly #bases = new Set<readonly Sample[]>();
  /** The last reading, in an array that is used again. */
  readonly #values: number[];

  /** `isGreatest`: the greatest value counts, not the sum. Values are never below 0. */
  constructor(family: PoolerFamily<Reading>, isGreatest: boolean) {
    this.#family = family;
    this.#isGreatest = isGreatest;
    this.#fixed = (family.heads ?? []).map(() => 0);
    this.#values = [...this.#fixed];
  }

  add(reading: Reading): void {
    this.#add(reading, 1);
  }

  addAll(readings: readonly Reading[]): void {
    const family = this.#family;
    if (family.heads !== undefined && !this.#isGreatest) family.addTo(this.#fixed, readings);
    else for (const reading of readings) this.#add(reading, 1);
  }

  subtract(reading: Reading): void {
    this.#add(reading, -1);
  }

  addSums({ fixed, free }: ReturnType<FamilySums<Reading>['copy']>): void {
    this.#addFixed(fixed, 1);
    for (const [key, { head, value }] of free) this.#addFree(key, head, value);
  }

  /** Counts that do not change with later sums. */
  copy(): { readonly fixed: readonly number[]; readonly free: readonly (readonly [string, Sum])[] } {
    return {
      fixed: [...this.#fixed],
      free: Array.from(this.#free, ([key, sum]) => [key, { ...sum }] as const),
    };
  }

  group(labels: Sample['labels']): SampleGroup {
    const { heads } = this.#family;
    if (heads !== undefined) return { rows: [labels], heads, values: [...this.#fixed] };
    const sums = [...this.#free.values()];
    return { rows: [labels], heads: sums.map(({ head }) => head), values: sums.map(({ value }) => value) };
  }

  #add(reading: Reading, sign: 1 | -1): void {
    const family = this.#family;
    if (family.heads !== undefined) {
      family.fill(this.#values, reading, 0);
      this.#addFixed(this.#values, sign);
      return;
    }
    const base = family.base(reading);
    if (!this.#bases.has(base)) {
      this.#bases.add(base);
      for (const zero of base) this.#addFree(sampleKey(zero), zero, 0);
    }
    for (const one of family.read(reading)) this.#addFree(sampleKey(one), one, sign * one.value);
  }

  #addFixed(values: readonly number[], sign: 1 | -1): void {
    const sums = this.#fixed;
    for (let i = 0; i < sums.length; i++) {
      const value = values[i] as number;
      // Most numbers of most pools are 0.
      if (value !== 0) sums[i] = this.#join(sums[i] as number, sign * value);
    }
  }

  #addFree(key: string, { suffix, labels }: SampleHead, value: number): void {
    const sum = this.#free.get(key);
    if (sum === undefined) this.#free.set(key, { head: { suffix, labels }, value });
    else sum.value = this.#join(sum.value, value);
  }

  #join(one: number, other: number): number {
    return this.#isGreatest ? Math.max(one, other) : one + other;
  }
}
