/** Metrics of the program that runs the pooler: one series, regardless of the number of processes. */
import type { FamilyReading } from './family-readings.js';
import { one, type PoolerFamily } from './pooler-families.js';

export interface HostReading {
  readonly lostLogLines: number;
}

export const hostFamilies: readonly PoolerFamily<HostReading>[] = [
  one(
    'counter',
    'log_lines_lost_total',
    'Lines of the log that could not be written, and were dropped.',
    ({ lostLogLines }) => lostLogLines,
  ),
];

export function readHost(reading: HostReading): FamilyReading[] {
  return hostFamilies.map(({ name, help, type, read }) => ({ name, help, type, samples: read(reading) }));
}
