/** The pools whose series have the same labels, and are therefore added up. The counts of a pool remain when it leaves. */
import type { MetricFamily, PoolTimes, Sample } from './metric-family.js';
import type { ObservedPool } from './observed-pool.js';

export type Labels = Readonly<Record<string, string>>;

export interface ExposedPool {
  readonly pool: ObservedPool;
  readonly times: PoolTimes;
}

export class LabelGroup {
  readonly labels: Labels;
  readonly #members = new Set<ExposedPool>();
  /** Without it, a counter would fall when a pool leaves, and rates would take that for a new start from zero. */
  readonly #departed = new Map<MetricFamily, readonly Sample[]>();

  constructor(labels: Labels) {
    this.labels = labels;
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  join(member: ExposedPool): void {
    this.#members.add(member);
  }

  leave(member: ExposedPool, families: Iterable<MetricFamily>): void {
    this.#members.delete(member);
    if (this.isEmpty) return;
    for (const family of families) {
      if (family.type === 'gauge') continue;
      const sum = add(this.#departed.get(family) ?? [], readingOf(member, family));
      this.#departed.set(family, sum);
    }
  }

  read(family: MetricFamily): readonly Sample[] {
    let sum = this.#departed.get(family) ?? [];
    for (const member of this.#members) sum = add(sum, readingOf(member, family));
    return sum;
  }
}

function readingOf({ pool, times }: ExposedPool, family: MetricFamily): readonly Sample[] {
  return family.read(pool.stats(), times);
}

/** Most families have the same samples in the same order for every pool; those with an operation may not. */
function add(some: readonly Sample[], more: readonly Sample[]): readonly Sample[] {
  if (some.length === 0) return more;
  if (more.length === 0) return some;
  const sums = new Map(some.map((sample) => [keyOf(sample), sample]));
  for (const sample of more) {
    const key = keyOf(sample);
    const known = sums.get(key);
    sums.set(key, known === undefined ? sample : { ...known, value: known.value + sample.value });
  }
  return [...sums.values()];
}

function keyOf({ suffix, labels }: Sample): string {
  return JSON.stringify([suffix, Object.entries(labels)]);
}
