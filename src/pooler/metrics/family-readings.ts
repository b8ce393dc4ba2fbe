/** Readings of all metrics at one moment, and how those of several processes are joined. */
import type { FamilyHead, SampleGroup } from '../../observe/metric-text.js';
import { type FamilyReading, readingOf } from './family-reading.js';
import { processFamilies } from './pooler-families.js';
import type { ProcessReading } from './process-reading.js';
import { type ShareReading, shareFamilies } from './share-families.js';

export function readProcessFamilies(reading: ProcessReading): FamilyReading[] {
  return processFamilies.map((family) => readingOf(family, reading));
}

/** Read in the process that keeps the budgets. */
export function readShares(reading: ShareReading): FamilyReading[] {
  return shareFamilies.map((family) => readingOf(family, reading));
}

/** Joins several processes: each has its own series with the label `worker`. */
export function joinReadings(
  readings: readonly { readonly worker: string; readonly families: readonly FamilyReading[] }[],
): FamilyReading[] {
  const joined = new Map<string, { head: FamilyHead; groups: SampleGroup[] }>();
  for (const { worker, families } of readings) {
    for (const { groups, ...head } of families) {
      const known = joined.get(head.name) ?? { head, groups: [] };
      joined.set(head.name, known);
      for (const { labels, ...group } of groups)
        known.groups.push({ labels: { worker, ...labels }, ...group });
    }
  }
  return Array.from(joined.values(), ({ head, groups }) => ({ ...head, groups }));
}
