/** Metrics of the fleet: leases and rate limiters per server, with the same names as in any program. */
import { leaseFamilies } from '../../observe/lease-metrics.js';
import { rateFamilies } from '../../observe/rate-metrics.js';
import { type StatsFamily, seriesOf } from '../../observe/stats-family.js';
import type { FleetStats } from '../budgets/fleet.js';
import { type FamilyReading, sampleGroup } from './family-reading.js';

/** Only series with data, which shows the process that has the leases and those that have rate limiters. */
export function fleetReadings(all: readonly FleetStats[]): FamilyReading[] {
  return [
    ...leaseFamilies.map((family) => readingOf(family, all, ({ leases }) => leases)),
    ...rateFamilies.map((family) => readingOf(family, all, ({ rate }) => rate)),
  ].filter(({ groups }) => groups.some(({ values }) => values.length > 0));
}

function readingOf<Stats>(
  family: StatsFamily<Stats>,
  all: readonly FleetStats[],
  part: (of: FleetStats) => Stats | undefined,
): FamilyReading {
  const { name, help, type } = family;
  const samples = all.flatMap((of) => {
    const stats = part(of);
    if (stats === undefined) return [];
    const { service, server } = of;
    return seriesOf(family, stats, { service, server }).map((series) => ({ suffix: '' as const, ...series }));
  });
  return { name, help, type, groups: [sampleGroup(samples)] };
}
