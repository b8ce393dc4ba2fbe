// Evaluates the part of PromQL that the alerts use, for machines without promtool: selectors, rates, sums, arithmetic, comparisons.

export type Labels = Readonly<Record<string, string>>;

export interface Series {
  readonly name: string;
  readonly labels: Labels;
  /** One value for each interval; NaN where the series was not there. */
  readonly values: readonly number[];
}

export interface Recorded {
  readonly intervalSeconds: number;
  readonly series: readonly Series[];
}

interface Sample {
  readonly labels: Labels;
  readonly value: number;
}
interface Range {
  readonly labels: Labels;
  readonly values: readonly number[];
}
type Result = number | readonly Sample[];
type Node = (at: number, data: Recorded) => Result;
type RangeNode = (at: number, data: Recorded) => readonly Range[];

const token =
  /\s*(?:(\d+(?:\.\d+)?)(?![\w.])|([a-zA-Z_][\w:]*)|("(?:[^"\\]|\\.)*")|(\[\d+[smh]\])|(!=|=~|==|>=|<=|[-+*/<>(){},=]))/y;
const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };
const levels = [
  ['or'],
  ['and', 'unless'],
  ['>', '<', '==', '>=', '<=', '!='],
  ['+', '-'],
  ['*', '/'],
] as const;

/** Evaluates a query at the nth interval. */
export function promql(text: string): (at: number, data: Recorded) => readonly Sample[] {
  const node = new Parser(text).whole();
  return (at, data) => {
    const result = node(at, data);
    return typeof result === 'number' ? [{ labels: {}, value: result }] : result;
  };
}

class Parser {
  readonly #tokens: string[] = [];
  #next = 0;

  constructor(text: string) {
    token.lastIndex = 0;
    const end = text.trimEnd().length;
    while (token.lastIndex < end) {
      const from = token.lastIndex;
      const match = token.exec(text);
      if (match === null) throw new Error(`no PromQL at: ${text.slice(from)}`);
      this.#tokens.push(match[0].trim());
    }
  }

  whole(): Node {
    const node = this.#binary(0);
    if (this.#next < this.#tokens.length) throw new Error(`not understood: ${this.#tokens[this.#next]}`);
    return node;
  }

  #peek(): string {
    return this.#tokens[this.#next] ?? '';
  }

  #take(expected?: string): string {
    const found = this.#tokens[this.#next++] ?? '';
    if (expected !== undefined && found !== expected) throw new Error(`expected ${expected}, not ${found}`);
    return found;
  }

  #binary(level: number): Node {
    const operators: readonly string[] | undefined = levels[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    while (operators.includes(this.#peek())) {
      const operator = this.#take();
      const key = this.#matching();
      left = combine(operator, left, this.#binary(level + 1), key);
    }
    return left;
  }

  #matching(): (labels: Labels) => string {
    const word = this.#peek();
    if (word !== 'on' && word !== 'ignoring') return (labels) => keyOf(labels);
    this.#take();
    const names = this.#names();
    return (labels) => keyOf(pick(labels, (name) => names.includes(name) === (word === 'on')));
  }

  #names(): string[] {
    const names: string[] = [];
    this.#take('(');
    while (this.#peek() !== ')') {
      names.push(this.#take());
      if (this.#peek() === ',') this.#take();
    }
    this.#take(')');
    return names;
  }

  #unary(): Node {
    const first = this.#take();
    if (first === '(') {
      const inside = this.#binary(0);
      this.#take(')');
      return inside;
    }
    if (/^\d/.test(first)) return () => Number(first);
    if (first === 'sum' || first === 'max' || first === 'min' || first === 'count')
      return this.#aggregate(first);
    if (first === 'histogram_quantile') return this.#quantile();
    if (/^(?:rate|increase|min_over_time|max_over_time)$/.test(first) && this.#peek() === '(') {
      this.#take('(');
      const { range, windowSeconds } = this.#range();
      this.#take(')');
      return overTime(first, range, windowSeconds);
    }
    return this.#instant(first);
  }

  #aggregate(kind: string): Node {
    const word = this.#peek();
    let names: readonly string[] = [];
    if (word === 'by' || word === 'without') {
      this.#take();
      names = this.#names();
    }
    const inside = this.#unary();
    return (at, data) => {
      const groups = new Map<string, { labels: Labels; value: number }>();
      for (const { labels, value } of vector(inside(at, data))) {
        const own = pick(labels, (name) => names.includes(name) === (word !== 'without'));
        const group = groups.get(keyOf(own));
        const one = kind === 'count' ? 1 : value;
        if (group === undefined) groups.set(keyOf(own), { labels: own, value: one });
        else group.value = joined(kind, group.value, one);
      }
      return [...groups.values()];
    };
  }

  #quantile(): Node {
    this.#take('(');
    const part = Number(this.#take());
    this.#take(',');
    const inside = this.#binary(0);
    this.#take(')');
    return (at, data) => quantile(part, vector(inside(at, data)));
  }

  #selector(name: string): (data: Recorded) => readonly Series[] {
    const tests: ((labels: Labels) => boolean)[] = [];
    if (this.#peek() === '{') {
      this.#take();
      while (this.#peek() !== '}') {
        const label = this.#take();
        const operator = this.#take();
        const word = JSON.parse(this.#take()) as string;
        if (operator === '=~') tests.push((labels) => new RegExp(`^(?:${word})$`).test(labels[label] ?? ''));
        else tests.push((labels) => ((labels[label] ?? '') === word) === (operator === '='));
        if (this.#peek() === ',') this.#take();
      }
      this.#take('}');
    }
    return ({ series }) =>
      series.filter((one) => one.name === name && tests.every((test) => test(one.labels)));
  }

  #instant(name: string): Node {
    const select = this.#selector(name);
    return (at, data) =>
      select(data).flatMap(({ labels, values }) => {
        const value = values[at] ?? Number.NaN;
        return Number.isNaN(value) ? [] : [{ labels, value }];
      });
  }

  #range(): { range: RangeNode; windowSeconds: number } {
    const select = this.#selector(this.#take());
    const [, length = '', unit = ''] = /^\[(\d+)([smh])\]$/.exec(this.#take()) ?? [];
    const windowSeconds = Number(length) * (seconds[unit] as number);
    const range: RangeNode = (at, data) => {
      const from = at - Math.floor(windowSeconds / data.intervalSeconds);
      return select(data).flatMap(({ labels, values }) => {
        const within = values.slice(Math.max(0, from), at + 1).filter((value) => !Number.isNaN(value));
        return within.length === 0 ? [] : [{ labels, values: within }];
      });
    };
    return { range, windowSeconds };
  }
}

function overTime(kind: string, range: RangeNode, windowSeconds: number): Node {
  return (at, data) =>
    range(at, data).flatMap(({ labels, values }) => {
      if (kind === 'min_over_time') return [{ labels, value: Math.min(...values) }];
      if (kind === 'max_over_time') return [{ labels, value: Math.max(...values) }];
      if (values.length < 2) return [];
      let grown = 0;
      values.forEach((value, index) => {
        const before = values[index - 1] ?? value;
        grown += value >= before ? value - before : value;
      });
      const perSecond = grown / ((values.length - 1) * data.intervalSeconds);
      return [{ labels, value: kind === 'rate' ? perSecond : perSecond * windowSeconds }];
    });
}

function joined(kind: string, one: number, other: number): number {
  if (kind === 'max') return Math.max(one, other);
  return kind === 'min' ? Math.min(one, other) : one + other;
}

function quantile(part: number, buckets: readonly Sample[]): Sample[] {
  const groups = new Map<string, { labels: Labels; bounds: [number, number][] }>();
  for (const { labels, value } of buckets) {
    const own = pick(labels, (name) => name !== 'le');
    const group = groups.get(keyOf(own)) ?? { labels: own, bounds: [] };
    groups.set(keyOf(own), group);
    group.bounds.push([labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']), value]);
  }
  return [...groups.values()].flatMap(({ labels, bounds }) => {
    bounds.sort(([a], [b]) => a - b);
    const all = bounds.at(-1)?.[1] ?? 0;
    if (all === 0) return [];
    const index = bounds.findIndex(([, count]) => count >= part * all);
    const [bound, count] = bounds[index] as [number, number];
    const [lower, below] = bounds[index - 1] ?? [0, 0];
    if (bound === Number.POSITIVE_INFINITY) return [{ labels, value: lower }];
    return [{ labels, value: lower + ((bound - lower) * (part * all - below)) / (count - below) }];
  });
}

function combine(operator: string, left: Node, right: Node, key: (labels: Labels) => string): Node {
  return (at, data) => {
    const [a, b] = [left(at, data), right(at, data)];
    if (typeof a === 'number' && typeof b === 'number') return calculate(operator, a, b);
    if (typeof b === 'number')
      return vector(a).flatMap((each) => resultOf(operator, each, each.value, b, each.value));
    if (typeof a === 'number')
      return vector(b).flatMap((each) => resultOf(operator, each, a, each.value, each.value));
    const others = new Map(b.map((each) => [key(each.labels), each]));
    // Prometheus refuses these, and so the alert would never fire.
    const isSetOperator = ['unless', 'and', 'or'].includes(operator);
    const ofLeft = new Set(a.map(({ labels }) => key(labels)));
    if (!isSetOperator && (others.size < b.length || ofLeft.size < a.length))
      throw new Error(`${operator}: several series on one side match the same one on the other side`);
    if (operator === 'unless') return a.filter(({ labels }) => !others.has(key(labels)));
    if (operator === 'and') return a.filter(({ labels }) => others.has(key(labels)));
    if (operator === 'or') {
      const known = new Set(a.map(({ labels }) => key(labels)));
      return [...a, ...b.filter(({ labels }) => !known.has(key(labels)))];
    }
    return a.flatMap((each) => {
      const other = others.get(key(each.labels));
      return other === undefined ? [] : resultOf(operator, each, each.value, other.value, each.value);
    });
  };
}

/** A comparison keeps the value that it is about, or nothing. */
function resultOf(operator: string, { labels }: Sample, a: number, b: number, kept: number): Sample[] {
  if (/^[-+*/]$/.test(operator)) return [{ labels, value: calculate(operator, a, b) }];
  return calculate(operator, a, b) === 1 ? [{ labels, value: kept }] : [];
}

function calculate(operator: string, a: number, b: number): number {
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '>':
      return Number(a > b);
    case '<':
      return Number(a < b);
    case '>=':
      return Number(a >= b);
    case '<=':
      return Number(a <= b);
    case '==':
      return Number(a === b);
    default:
      return Number(a !== b);
  }
}

function vector(result: Result): readonly Sample[] {
  if (typeof result === 'number') throw new Error('a number where a vector must be');
  return result;
}

function pick(labels: Labels, isWanted: (name: string) => boolean): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => isWanted(name)));
}

export function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
