/**
 * Pools with series of their own, and the sum of all others. Counters of the sum never fall: a pool that is forgotten, or that gets
 * series of its own, leaves there what it has counted.
 */
import type { Sample } from '../../observe/metric-family.js';
import type { SampleGroup } from '../../observe/metric-text.js';
import { Pauses } from '../../runtime/pauses.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { emptyValues, type FamilyReading, headOnly, withBase } from './family-reading.js';
import { FamilySums } from './family-sums.js';
import { poolMetricTable } from './pool-metric-table.js';
import { type PoolReading, readPool } from './pool-reading.js';
import { poolFamilies } from './pooler-families.js';

/** Pools that are summed up between two looks at the clock. */
const atOnce = 16;
const otherPools = { database: '(others)', user: '(others)' };

type Family = (typeof poolFamilies)[number];

interface Division {
  readonly own: readonly BackendPool[];
  readonly others: readonly BackendPool[];
  /** Undefined where there are no others, and never were. */
  readonly sums: readonly FamilySums<PoolReading>[] | undefined;
}

export class PoolSeries {
  readonly #own = new Set<BackendPool>();
  /** Pools that were summed up at the last reading. */
  readonly #summed = new Set<BackendPool>();
  /** Counts of pools that are no longer summed up. */
  readonly #left = poolFamilies.map((family) => (family.type === 'gauge' ? undefined : sumsOf(family)));
  #hasSum = false;

  /** Pools beyond `most` are summed up in one series. Each is read once. Clients are served in between. */
  async read(
    pools: Iterable<BackendPool>,
    most: number,
    reading: (pool: BackendPool) => PoolReading = readPool,
    pauses = new Pauses(),
  ): Promise<FamilyReading[]> {
    // Divided at once: pools may come and go while they are read.
    const { own, others, sums } = this.#divide(pools, most);
    const rows = own.map(({ database, user }) => ({ database, user }));
    const groups = poolFamilies.map((family) => groupsFor(family, rows));
    for (const [row, pool] of own.entries()) {
      const of = reading(pool);
      const labels = rows[row] as Sample['labels'];
      for (let i = 0; i < poolFamilies.length; i++)
        addRow(poolFamilies[i] as Family, groups[i] as SampleGroup[], of, row, labels);
      const pause = pauses.afterLongStep();
      if (pause !== undefined) await pause;
    }
    for (let at = 0; at < others.length; at += atOnce) {
      const some = others.slice(at, at + atOnce).map((pool) => reading(pool));
      // Family by family: the same function many times in a row is what the engine makes fast.
      for (const sum of sums ?? []) sum.addAll(some);
      const pause = pauses.afterLongStep();
      if (pause !== undefined) await pause;
    }
    for (const [i, sum] of sums?.entries() ?? []) groups[i]?.push(sum.group(otherPools));
    return poolFamilies.map((family, i) => ({ ...headOnly(family), groups: groups[i] ?? [] }));
  }

  /** The pool is removed. */
  forgotten(pool: BackendPool): void {
    this.#own.delete(pool);
    if (this.#summed.delete(pool)) this.#leave(readPool(pool));
  }

  #divide(pools: Iterable<BackendPool>, most: number): Division {
    this.#lowerTo(most);
    const own: BackendPool[] = [];
    const others: BackendPool[] = [];
    // In the order of creation, so that a pool keeps its own series.
    for (const pool of pools) {
      if (this.#hasOwn(pool, most)) own.push(pool);
      else {
        this.#summed.add(pool);
        others.push(pool);
      }
    }
    this.#hasSum ||= others.length > 0;
    return { own, others, sums: this.#hasSum ? this.#sumsBefore() : undefined };
  }

  #hasOwn(pool: BackendPool, most: number): boolean {
    if (this.#own.has(pool)) return true;
    if (this.#own.size >= most) return false;
    this.#own.add(pool);
    if (this.#summed.delete(pool)) this.#leave(readPool(pool));
    return true;
  }

  /** The limit may have been lowered. What those pools have counted before is not counted by the sum. */
  #lowerTo(most: number): void {
    if (this.#own.size <= most) return;
    for (const pool of [...this.#own].slice(most)) {
      this.#own.delete(pool);
      const before = readPool(pool);
      for (const sum of this.#left) sum?.subtract(before);
    }
  }

  #leave(last: PoolReading): void {
    for (const sum of this.#left) sum?.add(last);
  }

  #sumsBefore(): FamilySums<PoolReading>[] {
    return poolFamilies.map((family, i) => {
      const sums = sumsOf(family);
      const left = this.#left[i];
      if (left !== undefined) sums.addSums(left.copy());
      return sums;
    });
  }
}

/** The values of all pools in one array, where heads are fixed: objects for each would be what takes the time. */
function groupsFor({ heads }: Family, rows: readonly Sample['labels'][]): SampleGroup[] {
  if (heads === undefined || rows.length === 0) return [];
  return [{ rows, heads, values: emptyValues(rows.length * heads.length) }];
}

function addRow(
  family: Family,
  groups: SampleGroup[],
  reading: PoolReading,
  row: number,
  labels: Sample['labels'],
): void {
  if (family.heads === undefined) groups.push(withBase(family.read(reading), family.base(reading), labels));
  else family.fill(groups[0]?.values as number[], reading, row * family.heads.length);
}

function sumsOf(family: Family): FamilySums<PoolReading> {
  return new FamilySums(family, isGreatest(family.name as keyof typeof poolMetricTable));
}

/** The greatest value of these counts, not the sum: ages and moments. */
function isGreatest(name: keyof typeof poolMetricTable): boolean {
  const { type, unit } = poolMetricTable[name];
  return type === 'gauge' && (unit === 's' || unit === 'timestamp');
}
