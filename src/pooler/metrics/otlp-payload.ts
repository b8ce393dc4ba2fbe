/**
 * Metrics as OTLP's JSON. The processes of one pooler are one: their series are joined without the label `worker`, as each metric
 * declares it. The names are those of /metrics, so that dashboards and alerts hold for both.
 */
import type { MetricDeclaration, MetricTable } from '../../observe/metric-declaration.js';
import type { SampleGroup } from '../../observe/metric-text.js';
import type { FamilyReading } from './family-reading.js';

type Labels = Readonly<Record<string, string>>;

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string };
}

export interface OtlpMetric {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
  readonly gauge?: object;
  readonly sum?: object;
  readonly histogram?: object;
}

/** One series, with the values of all processes joined. */
interface Series {
  readonly labels: Labels;
  value: number;
  sum: number;
  /** Cumulative counts of a histogram by upper bound. */
  readonly buckets: Map<string, number>;
}

/** Since when a counter counts, which a consumer needs in order to tell a new start from a loss. */
export type StartOf = (series: string, count: number) => string;

const cumulative = 2;

/** `now`: nanoseconds since 1970. Metrics that are not declared are left out, as are those without samples. */
export function otlpMetric(
  { name, help, type, groups }: FamilyReading,
  table: MetricTable,
  now: string,
  startOf: StartOf,
): OtlpMetric | undefined {
  const declared = table[name];
  if (declared === undefined) return undefined;
  const points = joined(groups, declared).map((series) => pointOf(name, type, series, now, startOf));
  if (points.length === 0) return undefined;
  const head = { name, description: help, unit: unitOf(declared) };
  if (type === 'gauge') return { ...head, gauge: { dataPoints: points } };
  const kept = { aggregationTemporality: cumulative, dataPoints: points };
  return type === 'counter' ? { ...head, sum: { ...kept, isMonotonic: true } } : { ...head, histogram: kept };
}

function joined(groups: readonly SampleGroup[], { across = 'sum' }: MetricDeclaration): Series[] {
  const all = new Map<string, Series>();
  for (const { rows, heads, values } of groups) {
    let at = 0;
    for (const common of rows) {
      for (const { suffix, labels } of heads) {
        const value = values[at++] as number;
        const { worker: _worker, le, ...own } = { ...common, ...labels } as Record<string, string>;
        const key = JSON.stringify(Object.entries(own));
        const known = all.get(key);
        const series = known ?? { labels: own, value: 0, sum: 0, buckets: new Map() };
        all.set(key, series);
        if (le !== undefined) series.buckets.set(le, (series.buckets.get(le) ?? 0) + value);
        else if (suffix === '_sum') series.sum += value;
        else if (across === 'sum') series.value += value;
        else series.value = known === undefined ? value : Math[across](series.value, value);
      }
    }
  }
  return [...all.values()];
}

function pointOf(
  name: string,
  type: FamilyReading['type'],
  { labels, value, sum, buckets }: Series,
  now: string,
  startOf: StartOf,
): object {
  const attributes = attributesOf(labels);
  if (type === 'gauge') return { attributes, timeUnixNano: now, asDouble: value };
  const startTimeUnixNano = startOf(`${name} ${JSON.stringify(labels)}`, value);
  const point = { attributes, startTimeUnixNano, timeUnixNano: now };
  if (type === 'counter') return { ...point, asDouble: value };
  let below = 0;
  const bucketCounts = Array.from(buckets.values(), (count) => {
    const within = count - below;
    below = count;
    return String(within);
  });
  const explicitBounds = [...buckets.keys()].filter((bound) => bound !== '+Inf').map(Number);
  return { ...point, count: String(value), sum, bucketCounts, explicitBounds };
}

export function attributesOf(labels: Labels): Attribute[] {
  return Object.entries(labels).map(([key, stringValue]) => ({ key, value: { stringValue } }));
}

/** A switch has no unit: consumers that translate to Prometheus would call it a ratio. */
function unitOf({ unit }: MetricDeclaration): string {
  if (unit === 'timestamp') return 's';
  return unit === '1' ? '' : unit;
}
