/** Metrics of the program that runs the pooler: one series, regardless of the number of processes. */

import { FamilyReaders, type PoolerFamily } from './family-readers.js';
import { type FamilyReading, readingOf } from './family-reading.js';
import { hostMetricTable } from './process-metric-table.js';

export interface HostReading {
  readonly lostLogLines: number;
}

const ofHost = new FamilyReaders(hostMetricTable);

export const hostFamilies: readonly PoolerFamily<HostReading>[] = [
  ofHost.one('headgate_pooler_log_lines_lost_total', ({ lostLogLines }) => lostLogLines),
];

export function readHost(reading: HostReading): FamilyReading[] {
  return hostFamilies.map((family) => readingOf(family, reading));
}
