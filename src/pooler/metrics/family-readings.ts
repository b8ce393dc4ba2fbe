/** What all metrics say at one moment: plain data, which can be sent from one process to another and joined there. */
import type { Sample } from '../../observe/metric-family.js';
import type { FamilyHead } from '../../observe/metric-text.js';
import type { PoolerState } from '../process/pooler-state.js';
import { readPools } from './pool-reading.js';
import { poolFamilies, processFamilies } from './pooler-families.js';
import { type LoopDelay, readProcess } from './process-reading.js';
import { type ShareReading, shareFamilies } from './share-families.js';

export interface FamilyReading extends FamilyHead {
  readonly samples: readonly Sample[];
}

export function readFamilies(pooler: PoolerState, version: string, loop: LoopDelay): FamilyReading[] {
  const ofProcess = readProcess(pooler, version, loop);
  const ofPools = readPools(pooler);
  return [
    ...processFamilies.map(({ name, help, type, read }) => ({ name, help, type, samples: read(ofProcess) })),
    ...poolFamilies.map(({ name, help, type, read }) => ({
      name,
      help,
      type,
      samples: ofPools.flatMap((reading) => {
        const { database, user } = reading.pool;
        return read(reading).map((sample) => withLabels(sample, { database, user }));
      }),
    })),
  ];
}

/** Of whoever keeps the budgets. */
export function readShares(reading: ShareReading): FamilyReading[] {
  return shareFamilies.map(({ name, help, type, read }) => ({ name, help, type, samples: read(reading) }));
}

/** Of several processes: each has its own series, told apart by the label `worker`. */
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
