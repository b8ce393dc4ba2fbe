/** Reads the text that Prometheus reads: samples with their labels. */
import { allMetrics } from '../pooler/metrics/all-metrics.js';

export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const samplePattern = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const labelPattern = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const escapes: Readonly<Record<string, string>> = { n: '\n', '"': '"', '\\': '\\' };

/** Lines that are no samples are passed over. */
export function readSamples(text: string): MetricSample[] {
  return text.split('\n').flatMap((line) => {
    const match = line.startsWith('#') ? null : samplePattern.exec(line);
    if (match === null) return [];
    const [, name = '', inside = '', value = ''] = match;
    const labels = Array.from(inside.matchAll(labelPattern), ([, label = '', word = '']) => [
      label,
      word.replace(/\\(.)/g, (_, sign: string) => escapes[sign] ?? sign),
    ]);
    return [{ name, labels: Object.fromEntries(labels) as Record<string, string>, value: numberOf(value) }];
  });
}

function numberOf(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}

/** Two looks at the same metrics. The workers of a pooler are one: their series are joined as each metric declares it. */
export class MetricLooks {
  readonly #before: ReadonlyMap<string, number>;
  readonly #now: readonly MetricSample[];
  /** `#now`, joined. */
  readonly #joined: readonly MetricSample[];
  readonly #elapsedSeconds: number;

  constructor(before: readonly MetricSample[], now: readonly MetricSample[], elapsedMs: number) {
    this.#before = new Map(before.map((sample) => [keyOf(sample), sample.value]));
    this.#now = now;
    this.#joined = joined(now);
    this.#elapsedSeconds = elapsedMs / 1_000;
  }

  has(name: string): boolean {
    return this.#joined.some((sample) => sample.name === name);
  }

  samples(name: string): readonly MetricSample[] {
    return this.#joined.filter((sample) => sample.name === name);
  }

  /** The value of the series that has these labels, if there is one. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    return this.#joined.find((sample) => sample.name === name && hasLabels(sample, labels))?.value;
  }

  /** How much each series has grown in a second; one that has begun again counts from zero. */
  rates(name: string): readonly MetricSample[] {
    const rates = this.#now.flatMap((sample) => {
      if (sample.name !== name) return [];
      const before = this.#before.get(keyOf(sample)) ?? 0;
      const grown = sample.value >= before ? sample.value - before : sample.value;
      return [{ ...sample, value: grown / this.#elapsedSeconds }];
    });
    return joined(rates);
  }
}

/** Counters and rates are added up; of a gauge, the declaration says how. */
function joined(samples: readonly MetricSample[]): readonly MetricSample[] {
  if (!samples.some(({ labels }) => 'worker' in labels)) return samples;
  const known = new Map<string, MetricSample>();
  for (const { name, labels, value } of samples) {
    const { worker: _worker, ...own } = labels;
    const sample = { name, labels: own, value };
    const before = known.get(keyOf(sample))?.value;
    const across = allMetrics[name]?.across ?? 'sum';
    const whole =
      before === undefined ? value : across === 'sum' ? before + value : Math[across](before, value);
    known.set(keyOf(sample), { ...sample, value: whole });
  }
  return [...known.values()];
}

function hasLabels({ labels }: MetricSample, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([label, word]) => labels[label] === word);
}

function keyOf({ name, labels }: MetricSample): string {
  return JSON.stringify([name, Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);
}
