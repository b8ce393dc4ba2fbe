/** The spread over runs with many seeds: the least, the median and the most of what a verdict is about. */
import { count, jainText, time } from '../format.js';
import type { SimulationResult } from '../result.js';

/** Over all runs. Times are in milliseconds. */
export interface SeedBand {
  readonly name: MeasureName;
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

export interface SeedReport {
  readonly from: number;
  readonly to: number;
  /** Seeds of the runs that did not pass. */
  readonly failed: readonly number[];
  readonly bands: readonly SeedBand[];
}

interface Measure {
  readonly label: string;
  read(result: SimulationResult): number | undefined;
  write(value: number): string;
}

const measures = {
  served: { label: 'served', read: ({ samples }) => samples.workCompleted.at(-1) ?? 0, write: count },
  failed: { label: 'failed', read: ({ waits }) => waits.failed, write: count },
  waitP50Ms: { label: 'wait p50', read: ({ waits }) => waits.p50, write: time },
  waitP99Ms: { label: 'wait p99', read: ({ waits }) => waits.p99, write: time },
  opened: { label: 'opened', read: ({ server }) => server.accepted, write: count },
  jain: { label: 'Jain index', read: ({ jain }) => jain, write: jainText },
} as const satisfies Readonly<Record<string, Measure>>;

type MeasureName = keyof typeof measures;

const names = Object.keys(measures) as MeasureName[];

/** Keeps a few numbers of each run, and not the run. */
export class SeedBands {
  readonly #values = new Map<MeasureName, number[]>(names.map((name) => [name, []]));

  add(result: SimulationResult): void {
    for (const [name, values] of this.#values) {
      const value = measures[name].read(result);
      if (value !== undefined) values.push(value);
    }
  }

  /** Measures that no run has are left out. */
  get all(): SeedBand[] {
    return [...this.#values].flatMap(([name, values]) => {
      if (values.length === 0) return [];
      const sorted = [...values].sort((one, other) => one - other);
      const [min, max] = [sorted[0] as number, sorted.at(-1) as number];
      return [{ name, min, median: medianOf(sorted), max }];
    });
  }
}

/** Of two in the middle, the lower one: a value that a run had. */
function medianOf(sorted: readonly number[]): number {
  return sorted[Math.floor((sorted.length - 1) / 2)] as number;
}

export const bandColumns = ['', 'least', 'median', 'most'] as const;

export function bandRows(bands: readonly SeedBand[]): string[][] {
  return bands.map(({ name, min, median, max }) => {
    const { label, write } = measures[name];
    return [label, write(min), write(median), write(max)];
  });
}
