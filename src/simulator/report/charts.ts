/** The charts of a run, with no more points than can be seen. No peak is lost: each point keeps its lowest and highest. */
import { type DiscardReason, discardReasons } from '../../core/reasons.js';
import type { Samples } from '../result.js';
import type { SimulationRun } from './run.js';

export interface Charts {
  /** The end of each point's span of time. */
  readonly timeMs: readonly number[];
  readonly charts: readonly Chart[];
}

export interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
  readonly marks: readonly Mark[];
}

/** Values at the times of the charts: the lowest and the highest within each point. */
export interface Line {
  readonly name: string;
  readonly low: readonly number[];
  readonly high: readonly number[];
}

/** A limit to compare lines with. */
export interface Mark {
  readonly name: string;
  readonly value: number;
}

/** The half-open range of samples behind each point. */
export type Points = readonly { readonly start: number; readonly end: number }[];

export function chartsOf({ scenario, result }: SimulationRun, mostPoints: number): Charts {
  const { samples } = result;
  const points = divide(samples.timeMs.length, mostPoints);
  const gauge = (name: string, values: readonly number[]): Line => gaugeLine(name, values, points);
  const rate = (name: string, totals: readonly number[]): Line => rateLine(name, totals, samples, points);
  return {
    timeMs: points.map(({ end }) => samples.timeMs[end - 1] as number),
    charts: [
      {
        title: 'Connections',
        unit: '',
        lines: [
          gauge('ready', samples.ready),
          gauge('in use', samples.inUse),
          gauge('opening', samples.pending),
          gauge('closing', samples.closing),
          gauge('target', samples.target),
        ],
        marks: connectionMarks({ scenario, result }),
      },
      {
        title: 'New connections',
        unit: '/s',
        lines: [gauge('new connections', samples.connectsPerSec)],
        marks: rateMarks({ scenario, result }),
      },
      { title: 'Callers in the queue', unit: '', lines: [gauge('waiting', samples.waiting)], marks: [] },
      {
        title: 'Wait, p99',
        unit: ' ms',
        lines: [gauge('wait p99', samples.waitP99Ms)],
        marks: waitMarks(scenario),
      },
      {
        title: 'Work',
        unit: '/s',
        lines: [rate('work started', samples.workStarted), rate('work completed', samples.workCompleted)],
        marks: [],
      },
      {
        title: 'Discards by reason',
        unit: '/s',
        lines: occurring(samples).map((reason) => rate(reason, samples.discards[reason])),
        marks: [],
      },
      {
        title: 'Nothing ready, not opened, held back',
        unit: '/s',
        lines: [
          rate('empty events', samples.emptyEvents),
          rate('refill failures', samples.refillFailures),
          rate('limiter denies', samples.limiterDenies),
        ],
        marks: [],
      },
    ],
  };
}

/** The reasons for which anything was discarded at all. */
export function occurring({ discards }: Samples): DiscardReason[] {
  return discardReasons.filter((reason) => (discards[reason]?.at(-1) ?? 0) > 0);
}

function connectionMarks({ scenario, result }: SimulationRun): Mark[] {
  const limits = result.services.reduce((sum, { limit }) => sum + limit, 0);
  const marks = [
    { name: 'limit of the server', value: result.server.connectionLimit },
    { name: 'limit of all pools', value: limits },
  ];
  if (scenario.coordinator !== undefined)
    marks.push({ name: 'leases', value: scenario.coordinator.leaseLimit });
  if (scenario.budget !== undefined) marks.push({ name: 'budget', value: scenario.budget.capacity });
  return marks;
}

function rateMarks({ scenario }: SimulationRun): Mark[] {
  const { perSecond } = scenario.server;
  const asserted = scenario.assertions.maxConnectsPerSec;
  const marks = [{ name: 'rate of the server', value: perSecond }];
  if (asserted !== undefined && asserted !== perSecond) marks.push({ name: 'asserted', value: asserted });
  return marks;
}

function waitMarks({ assertions }: SimulationRun['scenario']): Mark[] {
  return assertions.waits
    .filter(({ percentile }) => percentile === 0.99)
    .map(({ maxMs }) => ({ name: 'asserted', value: maxMs }));
}

export function divide(samples: number, mostPoints: number): Points {
  const count = Math.min(samples, mostPoints);
  return Array.from({ length: count }, (_, index) => ({
    start: Math.floor((index * samples) / count),
    end: Math.floor(((index + 1) * samples) / count),
  }));
}

export function gaugeLine(name: string, values: readonly number[], points: Points): Line {
  const low: number[] = [];
  const high: number[] = [];
  for (const { start, end } of points) {
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let i = start; i < end; i++) {
      // Without callers there may be no number.
      const value = round(values[i] ?? 0);
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
    low.push(least);
    high.push(most);
  }
  return { name, low, high };
}

/** From totals that go up: how many a second, sample by sample. */
function rateLine(name: string, totals: readonly number[], { timeMs }: Samples, points: Points): Line {
  const rates = totals.map((total, i) => {
    const seconds = ((timeMs[i] as number) - (timeMs[i - 1] ?? 0)) / 1_000;
    return seconds > 0 ? (total - (totals[i - 1] ?? 0)) / seconds : 0;
  });
  return gaugeLine(name, rates, points);
}

/** Three decimals are more than can be seen, and keep files small. */
export function round(value: number): number {
  return Number.isFinite(value) ? Math.round(value * 1_000) / 1_000 : 0;
}
