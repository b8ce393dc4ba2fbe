/** Metrics as the text that Prometheus reads, for programs that have no registry. */
import type { MetricFamily, Sample, SampleHead } from './metric-family.js';

export type FamilyHead = Pick<MetricFamily, 'name' | 'help' | 'type'>;

/** Samples with labels in common. Many groups share one list of heads, so that a sample is no more than a number. */
export interface SampleGroup {
  readonly labels: Sample['labels'];
  readonly heads: readonly SampleHead[];
  /** One for each head. */
  readonly values: readonly number[];
}

/** The content type of an HTTP answer with metrics. */
export const metricTextType = 'text/plain; version=0.0.4; charset=utf-8';

/** One family in pieces, one for each group: a line for each sample, below the family's head. None without samples. */
export function* familyTexts(
  { name, help, type }: FamilyHead,
  groups: Iterable<SampleGroup>,
): IterableIterator<string> {
  let above = `# HELP ${name} ${escaped(help, /[\\\n]/g)}\n# TYPE ${name} ${type}\n`;
  let heads: readonly SampleHead[] = [];
  let lines: readonly LineParts[] = [];
  for (const group of groups) {
    if (group.heads.length === 0) continue;
    if (group.heads !== heads) {
      heads = group.heads;
      lines = heads.map((head) => partsOf(name, head));
    }
    yield above + groupText(lines, group);
    above = '';
  }
}

/** A line without its value, and without the labels that its group has in common. */
interface LineParts {
  readonly name: string;
  /** Text behind the name where the group has no labels, and text behind the labels of the group. */
  readonly alone: string;
  readonly after: string;
}

function partsOf(name: string, { suffix, labels }: SampleHead): LineParts {
  const own = pairsOf(labels);
  return {
    name: `${name}${suffix}`,
    alone: own === '' ? ' ' : `{${own}} `,
    after: own === '' ? '} ' : `,${own}} `,
  };
}

function groupText(lines: readonly LineParts[], { labels, values }: SampleGroup): string {
  const common = knownPairsOf(labels);
  let text = '';
  let at = 0;
  for (const { name, alone, after } of lines) {
    const middle = common === '' ? alone : `{${common}${after}`;
    text += `${name}${middle}${numberText(values[at++] as number)}\n`;
  }
  return text;
}

/** Texts of labels that a pool has in common for all its metrics. */
const knownPairs = new WeakMap<Sample['labels'], string>();

function knownPairsOf(labels: Sample['labels']): string {
  const known = knownPairs.get(labels);
  if (known !== undefined) return known;
  const pairs = pairsOf(labels);
  knownPairs.set(labels, pairs);
  return pairs;
}

function pairsOf(labels: Sample['labels']): string {
  const pairs = Object.entries(labels).map(([label, word]) => `${label}="${escaped(word, /[\\\n"]/g)}"`);
  return pairs.join(',');
}

function escaped(text: string, special: RegExp): string {
  return text.replace(special, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`));
}

function numberText(value: number): string {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
