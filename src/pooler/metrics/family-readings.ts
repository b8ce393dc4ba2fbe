/** Readings of all metrics at one moment: plain data that can be sent between processes and joined. */
import type { Sample } from '../../observe/metric-family.js';
import type { FamilyHead } from '../../observe/metric-text.js';
import { Pauses } from './pauses.js';
import type { PoolReading } from './pool-reading.js';
import { poolFamilies, processFamilies } from './pooler-families.js';
import type { ProcessReading } from './process-reading.js';
import { SampleSums } from './sample-sums.js';
import { type ShareReading, shareFamilies } from './share-families.js';

export interface FamilyReading extends FamilyHead {
  readonly samples: readonly Sample[];
}

/** Pools beyond `mostPools` are summed up in one series. Clients are served while the pools are read. */
export async function readFamilies(
  ofProcess: ProcessReading,
  ofPools: readonly PoolReading[],
  mostPools: number,
): Promise<FamilyReading[]> {
  const pauses = new Pauses();
  const families: FamilyReading[] = processFamilies.map(({ name, help, type, read }) => ({
    ...{ name, help, type },
    samples: read(ofProcess),
  }));
  const { own, others } = divide(ofPools, mostPools);
  for (const { name, help, type, read } of poolFamilies) {
    const samples: Sample[] = [];
    for (const reading of own) {
      const { database, user } = reading.pool;
      for (const sample of read(reading)) samples.push(withLabels(sample, { database, user }));
      await pauses.ifDue();
    }
    const sums = new SampleSums(otherPools, greatest.has(name));
    for (const reading of others) {
      sums.add(read(reading));
      await pauses.ifDue();
    }
    families.push({ name, help, type, samples: [...samples, ...sums.samples()] });
  }
  return families;
}

/** In the order of creation, so that a pool keeps its own series. */
function divide(
  all: readonly PoolReading[],
  most: number,
): { readonly own: readonly PoolReading[]; readonly others: readonly PoolReading[] } {
  return { own: all.slice(0, most), others: all.slice(most) };
}

const otherPools = { database: '(others)', user: '(others)' };
/** The greatest value counts for these, not the sum. */
const greatest: ReadonlySet<string> = new Set([
  'headgate_pooler_longest_wait_seconds',
  'headgate_pooler_last_answer_time_seconds',
]);

/** Read in the process that keeps the budgets. */
export function readShares(reading: ShareReading): FamilyReading[] {
  return shareFamilies.map(({ name, help, type, read }) => ({ name, help, type, samples: read(reading) }));
}

/** Joins several processes: each has its own series with the label `worker`. */
export function joinReadings(
  readings: readonly { readonly worker: string; readonly families: readonly FamilyReading[] }[],
): FamilyReading[] {
  const joined = new Map<string, { head: FamilyHead; samples: Sample[] }>();
  for (const { worker, families } of readings) {
    for (const { samples, ...head } of families) {
      const known = joined.get(head.name) ?? { head, samples: [] };
      joined.set(head.name, known);
      known.samples.push(...samples.map((sample) => withLabels(sample, { worker })));
    }
  }
  return Array.from(joined.values(), ({ head, samples }) => ({ ...head, samples }));
}

function withLabels(sample: Sample, labels: Readonly<Record<string, string>>): Sample {
  return { ...sample, labels: { ...labels, ...sample.labels } };
}
