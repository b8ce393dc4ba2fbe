/** Samples of one metric at one moment: plain data that can be sent between processes. */
import type { Sample } from '../../observe/metric-family.js';
import type { FamilyHead, SampleGroup } from '../../observe/metric-text.js';
import { type PoolerFamily, sampleKey } from './family-readers.js';

export interface FamilyReading extends FamilyHead {
  readonly groups: readonly SampleGroup[];
}

const noLabels: Sample['labels'] = {};

export function readingOf<Reading>(family: PoolerFamily<Reading>, reading: Reading): FamilyReading {
  return { ...headOnly(family), groups: [groupOf(family, reading, noLabels)] };
}

/** The part of a family that can be sent to another process. */
export function headOnly({ name, help, type }: FamilyHead): FamilyHead {
  return { name, help, type };
}

/** `labels`: those in common. */
export function groupOf<Reading>(
  family: PoolerFamily<Reading>,
  reading: Reading,
  labels: Sample['labels'],
): SampleGroup {
  if (family.heads === undefined) return withBase(family.read(reading), family.base(reading), labels);
  const values: number[] = [];
  family.fill(values, reading);
  return { labels, heads: family.heads, values };
}

/** Pools where nothing has happened share their heads. */
function withBase(
  samples: readonly Sample[],
  base: readonly Sample[],
  labels: Sample['labels'],
): SampleGroup {
  if (samples.length === 0) return sampleGroup(base, labels);
  const seen = new Set(samples.map(sampleKey));
  return sampleGroup([...samples, ...base.filter((sample) => !seen.has(sampleKey(sample)))], labels);
}

export function sampleGroup(samples: readonly Sample[], labels = noLabels): SampleGroup {
  return { labels, heads: samples, values: samples.map(({ value }) => value) };
}
