/** Samples of one metric at one moment: plain data that can be sent between processes. */
import type { Sample } from '../../observe/metric-family.js';
import type { FamilyHead, SampleGroup } from '../../observe/metric-text.js';
import { type PoolerFamily, sampleKey } from './family-readers.js';

export interface FamilyReading extends FamilyHead {
  readonly groups: readonly SampleGroup[];
}

const noLabels: Sample['labels'] = {};

export function readingOf<Reading>(family: PoolerFamily<Reading>, reading: Reading): FamilyReading {
  return { ...headOnly(family), groups: [groupOf(family, reading)] };
}

/** The part of a family that can be sent to another process. */
export function headOnly({ name, help, type }: FamilyHead): FamilyHead {
  return { name, help, type };
}

function groupOf<Reading>(family: PoolerFamily<Reading>, reading: Reading): SampleGroup {
  const { heads } = family;
  if (heads === undefined) return withBase(family.read(reading), family.base(reading), noLabels);
  const values = emptyValues(heads.length);
  family.fill(values, reading, 0);
  return { rows: [noLabels], heads, values };
}

/** Made in its length: an array that grows would be copied, and leave room in each of thousands. */
export function emptyValues(length: number): number[] {
  return new Array<number>(length).fill(0);
}

const knownZeros = new WeakMap<readonly Sample[], readonly number[]>();

function zerosOf(base: readonly Sample[]): readonly number[] {
  let zeros = knownZeros.get(base);
  if (zeros === undefined) {
    zeros = base.map(() => 0);
    knownZeros.set(base, zeros);
  }
  return zeros;
}

/** Pools where nothing has happened share their heads and values. */
export function withBase(
  samples: readonly Sample[],
  base: readonly Sample[],
  labels: Sample['labels'],
): SampleGroup {
  if (samples.length === 0) return { rows: [labels], heads: base, values: zerosOf(base) };
  const seen = new Set(samples.map(sampleKey));
  return sampleGroup([...samples, ...base.filter((sample) => !seen.has(sampleKey(sample)))], labels);
}

export function sampleGroup(samples: readonly Sample[], labels = noLabels): SampleGroup {
  return { rows: [labels], heads: samples, values: samples.map(({ value }) => value) };
}
