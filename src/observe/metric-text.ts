/** Metrics as the text that Prometheus reads, for programs that have no registry. */
import type { MetricFamily, Sample, SampleHead } from './metric-family.js';

export type FamilyHead = Pick<MetricFamily, 'name' | 'help' | 'type'>;

/** Rows of samples: the heads are the same in each row, and the labels in common. A sample is no more than a number. */
export interface SampleGroup {
  /** Labels in common of each row. */
  readonly rows: readonly Sample['labels'][];
  readonly heads: readonly SampleHead[];
  /** Row by row, one for each head. */
  readonly values: readonly number[];
}

/** The content type of an HTTP answer with metrics. */
export const metricTextType = 'text/plain; version=0.0.4; charset=utf-8';

/** One family in pieces, one for each row: a line for each sample, below the family's head. None without samples. */
export function* familyTexts(
  { name, help, type }: FamilyHead,
  groups: Iterable<SampleGroup>,
): IterableIterator<string> {
  let above = `# HELP ${name} ${escaped(help, /[\\\n]/g)}\n# TYPE ${name} ${type}\n`;
  let heads: readonly SampleHead[] = [];
  let lines: readonly LineParts[] = [];
  for (const group of groups) {
    const { rows, values } = group;
    if (group.heads.length === 0) continue;
    if (group.heads !== heads) {
      heads = group.heads;
      lines = heads.map((head) => partsOf(name, head));
    }
    let at = 0;
    for (const labels of rows) {
      yield above + rowText(lines, knownPairsOf(labels), values, at);
      above = '';
      at += lines.length;
    }
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

/** `common`: the labels of the row; its values begin at `at`. */
function rowText(lines: readonly LineParts[], common: string, values: readonly number[], at: number): string {
  let text = '';
  for (let i = 0; i < lines.length; i++) {
    const { name, alone, after } = lines[i] as LineParts;
    const middle = common === '' ? alone : `{${common}${after}`;
    text += `${name}${middle}${numberText(values[at + i] as number)}\n`;
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
  // Most numbers of most pools.
  if (value === 0) return '0';
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
