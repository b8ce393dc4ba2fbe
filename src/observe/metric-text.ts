/** Metrics as the text that Prometheus reads, for programs that have no registry. */
import type { MetricFamily, Sample } from './metric-family.js';

export type FamilyHead = Pick<MetricFamily, 'name' | 'help' | 'type'>;

/** The content type of an HTTP answer with metrics. */
export const metricTextType = 'text/plain; version=0.0.4; charset=utf-8';

/** One family: its head, and a line for each sample; empty without samples. */
export function familyText({ name, help, type }: FamilyHead, samples: Iterable<Sample>): string {
  const lines = Array.from(samples, (sample) => sampleText(name, sample));
  if (lines.length === 0) return '';
  return `# HELP ${name} ${escaped(help, /[\\\n]/g)}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function sampleText(name: string, { suffix, labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(([label, word]) => `${label}="${escaped(word, /[\\\n"]/g)}"`);
  return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${numberText(value)}\n`;
}

function escaped(text: string, special: RegExp): string {
  return text.replace(special, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`));
}

function numberText(value: number): string {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
