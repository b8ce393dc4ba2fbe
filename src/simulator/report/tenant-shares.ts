/**
 * How tenants share the connections and the work, over time. A share is that of a point's whole span of time: within a
 * short one a single tenant has everything.
 */
import type { SimulationResult, TenantSamples } from '../result.js';
import { type Chart, divide, gaugeLine, type Line, type Points, round } from './charts.js';
import type { SimulationRun } from './run.js';

/** The amount of each tenant at each point of time. */
type Amounts = ReadonlyMap<string | undefined, readonly number[]>;

/** In all runs alike, so that they can be compared. Those beyond `mostLines` who got least are one line. */
export function shareCharts(
  runs: readonly SimulationRun[],
  mostPoints: number,
  mostLines: number,
): readonly (readonly Chart[])[] {
  const names = ranked(runs);
  const drawn = new Set(names.length > mostLines ? names.slice(0, mostLines - 1) : names);
  return runs.map(({ result }) => {
    const points = divide(result.samples.timeMs.length, mostPoints);
    const chart = (title: string, amounts: Amounts): Chart => {
      return { title, unit: ' %', lines: sharesOf(amounts, drawn), marks: [] };
    };
    return [
      chart('Shares of tenants', timeInUse(result, points)),
      chart('Shares of tenants, of the work', work(result, points)),
      ...fairChart(result, points, drawn),
    ];
  });
}

/** The fair share of each tenant in connections, where there is a budget. */
function fairChart({ tenantSamples }: SimulationResult, points: Points, drawn: ReadonlySet<string>): Chart[] {
  const lines = tenantSamples.flatMap(({ tenant, share }) =>
    share === undefined || tenant === undefined || !drawn.has(tenant)
      ? []
      : [gaugeLine(tenant, share, points)],
  );
  return lines.length === 0 ? [] : [{ title: 'Fair shares', unit: '', lines, marks: [] }];
}

/** A tenant's share of the connections in each run, none where it is not in it. */
export interface TellingShare {
  readonly label: string;
  readonly curves: readonly (readonly number[])[];
}

/** Shares of all tenants; of more than `most` only the largest and the smallest. */
export function telling(runs: readonly SimulationRun[], mostPoints: number, most: number): TellingShare[] {
  const names = ranked(runs);
  const charts = shareCharts(runs, mostPoints, Number.POSITIVE_INFINITY);
  const share = (label: string, tenant: string | undefined): TellingShare => ({
    label,
    curves: charts.map(([chart]) => chart?.lines.find(({ name }) => name === tenant)?.high ?? []),
  });
  if (names.length <= most) return names.map((name) => share(`share of ${name}`, name));
  return [
    share(`largest share, ${names[0]}`, names[0]),
    share(`smallest share, ${names.at(-1)}`, names.at(-1)),
  ];
}

/** The tenants with a series of their own, who had most of the connections first. */
function ranked(runs: readonly SimulationRun[]): string[] {
  const totals = new Map<string, number>();
  for (const { result } of runs) {
    for (const { tenant, inUse } of result.tenantSamples) {
      if (tenant === undefined) continue;
      const sum = inUse.reduce((all, value) => all + value, 0);
      totals.set(tenant, (totals.get(tenant) ?? 0) + sum);
    }
  }
  return [...totals].sort(([, a], [, b]) => b - a).map(([name]) => name);
}

function timeInUse({ tenantSamples, samples: { timeMs } }: SimulationResult, points: Points): Amounts {
  return amountsOf(tenantSamples, points, ({ inUse }, { start, end }) => {
    let sum = 0;
    for (let i = start; i < end; i++)
      sum += (inUse[i] as number) * ((timeMs[i] as number) - (timeMs[i - 1] ?? 0));
    return sum;
  });
}

function work({ tenantSamples }: SimulationResult, points: Points): Amounts {
  return amountsOf(tenantSamples, points, ({ workCompleted }, { start, end }) => {
    return (workCompleted[end - 1] as number) - (workCompleted[start - 1] ?? 0);
  });
}

function amountsOf(
  tenants: readonly TenantSamples[],
  points: Points,
  amount: (samples: TenantSamples, point: Points[number]) => number,
): Amounts {
  return new Map(tenants.map((samples) => [samples.tenant, points.map((point) => amount(samples, point))]));
}

/** In percent, in the order of the scenario. 0 for every tenant where none has anything. */
function sharesOf(amounts: Amounts, drawn: ReadonlySet<string>): Line[] {
  const sums: number[] = [];
  for (const values of amounts.values())
    for (const [i, value] of values.entries()) sums[i] = (sums[i] ?? 0) + value;
  const share = (value: number, i: number): number => {
    const all = sums[i] as number;
    return all > 0 ? round((100 * value) / all) : 0;
  };
  const lines: Line[] = [];
  let others: number[] | undefined;
  for (const [name, values] of amounts) {
    if (name === undefined || !drawn.has(name)) {
      const before = others;
      others = values.map((value, i) => value + (before?.[i] ?? 0));
    } else lines.push(steady(name, values.map(share)));
  }
  if (others !== undefined) lines.push(steady(nameOfOthers(drawn), others.map(share)));
  return lines;
}

function steady(name: string, values: readonly number[]): Line {
  return { name, low: values, high: values };
}

/** A tenant may have any name, also this one. */
function nameOfOthers(taken: ReadonlySet<string>): string {
  let name = 'others';
  while (taken.has(name)) name = `all ${name}`;
  return name;
}
