/** Readings of all metrics at one moment, and how those of several processes are joined. */
import type { FamilyHead, SampleGroup } from '../../observe/metric-text.js';
import type { Pauses } from '../../runtime/pauses.js';
import type { PoolerFamily } from './family-readers.js';
import { type FamilyReading, readingOf } from './family-reading.js';
import { processFamilies } from './pooler-families.js';
import type { ProcessReading } from './process-reading.js';
import { type ShareReading, shareFamilies } from './share-families.js';

/** Clients are served in between, like below. */
export function readProcessFamilies(reading: ProcessReading, pauses: Pauses): Promise<FamilyReading[]> {
  return readEach(processFamilies, reading, pauses);
}

/** Read in the process that keeps the budgets. */
export function readShares(reading: ShareReading, pauses: Pauses): Promise<FamilyReading[]> {
  return readEach(shareFamilies, reading, pauses);
}

async function readEach<Reading>(
  families: readonly PoolerFamily<Reading>[],
  reading: Reading,
  pauses: Pauses,
): Promise<FamilyReading[]> {
  const readings: FamilyReading[] = [];
  for (const family of families) {
    readings.push(readingOf(family, reading));
    const pause = pauses.afterLongStep();
    if (pause !== undefined) await pause;
  }
  return readings;
}

/** Joins several processes: each has its own series with the label `worker`. */
export function joinReadings(
  readings: readonly { readonly worker: string; readonly families: readonly FamilyReading[] }[],
): FamilyReading[] {
  const joined = new Map<string, { head: FamilyHead; groups: SampleGroup[] }>();
  for (const { worker, families } of readings) {
    const rowsWithWorker = rowsOf(worker);
    for (const { groups, ...head } of families) {
      const known = joined.get(head.name) ?? { head, groups: [] };
      joined.set(head.name, known);
      for (const { rows, ...group } of groups) known.groups.push({ rows: rowsWithWorker(rows), ...group });
    }
  }
  return Array.from(joined.values(), ({ head, groups }) => ({ ...head, groups }));
}

/** Adds the label to rows. Hundreds of metrics share the rows of pools, and share them afterwards. */
function rowsOf(worker: string): (rows: SampleGroup['rows']) => SampleGroup['rows'] {
  const known = new Map<SampleGroup['rows'], SampleGroup['rows']>();
  return (rows) => {
    let made = known.get(rows);
    if (made === undefined) {
      made = rows.map((labels) => ({ worker, ...labels }));
      known.set(rows, made);
    }
    return made;
  };
}
