/** The page about observing, and the file of alerts, say what there is: every metric, label, word and log line, and no other. */
import { channel } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { PoolStats } from '../../src/core/pool-stats.js';
import { discardReasons, refillCauses } from '../../src/core/reasons.js';
import { PromisePool } from '../../src/engine.js';
import { logPool, type PoolLogger } from '../../src/logging.js';
import { metricFamilies } from '../../src/observe/exposed-pools.js';
import { leaseFamilies } from '../../src/observe/lease-metrics.js';
import { rateFamilies } from '../../src/observe/rate-metrics.js';
import { ownErrorReasons } from '../../src/pooler/clients/failure-words.js';
import type { PoolerFamily } from '../../src/pooler/metrics/family-readers.js';
import { hostFamilies } from '../../src/pooler/metrics/host-families.js';
import { poolFamilies, processFamilies } from '../../src/pooler/metrics/pooler-families.js';
import { shareFamilies } from '../../src/pooler/metrics/share-families.js';
import { exposePool } from '../../src/prometheus.js';
import { TransactionPublisher } from '../../src/runtime/transaction-channels.js';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/observability.md'), 'utf8');
const alertFile = readFileSync(join(root, 'docs/prometheus-alerts.yml'), 'utf8');

/** What a scrape of a pool with a reservoir has: each metric with the names of its labels and their values. */
const exported = new Map<string, { type: string; labels: Map<string, Set<string>> }>();
const pool = new PromisePool<object>({ connect: async () => ({}), reservoir: true, startJitter: '1h' });

beforeAll(async () => {
  const registry = new Registry();
  const exposure = exposePool(pool, { registry });
  // Series of transactions begin with the first transaction of an operation.
  const told = new TransactionPublisher(pool, pool.name);
  told.retryScheduled('transaction', 1, 'retryable', 1);
  told.committed('transaction', 1, 2);
  for (const { name, type, values } of await registry.getMetricsAsJSON()) {
    const labels = new Map<string, Set<string>>();
    for (const value of values) {
      for (const [label, word] of Object.entries(value.labels)) {
        labels.set(label, (labels.get(label) ?? new Set()).add(String(word)));
      }
    }
    exported.set(name, { type: String(type), labels });
  }
  exposure.stop();
  addPooler(processFamilies, ['job', 'instance']);
  addPooler(hostFamilies, ['job', 'instance']);
  addPooler(poolFamilies, ['job', 'instance', 'database', 'user']);
  addPooler(shareFamilies, ['job', 'instance']);
  addPooler(leaseFamilies, ['job', 'instance', 'service']);
  addPooler(rateFamilies, ['job', 'instance', 'service']);
});
afterAll(() => pool.drain());

/** The pooler's, beside the labels that those of one kind have all. */
const poolerMetrics = new Set<string>();
type NamedFamily = Pick<PoolerFamily<never>, 'name' | 'type' | 'labels' | 'words'>;
function addPooler(families: readonly NamedFamily[], common: readonly string[]): void {
  for (const { name, type, labels, words: known } of families) {
    const own = labels.map(
      (label) => [label, new Set(known ?? (label === 'reason' ? ownErrorReasons : []))] as const,
    );
    exported.set(name, {
      type,
      labels: new Map([...common.map((label) => [label, new Set<string>()] as const), ...own]),
    });
    poolerMetrics.add(name);
  }
}

const labelNames = (name: string) => [...(exported.get(name)?.labels.keys() ?? [])];
const ownLabels = (name: string) =>
  labelNames(name).filter((label) => !['service', 'pool', 'le'].includes(label));
const words = (name: string, label: string) => [...(exported.get(name)?.labels.get(label) ?? [])];

test('docs/observability.md has every metric, with its kind and its label', () => {
  const documented = [...tableOf('metric'), ...tableOf('dsql metric')].flatMap(([names, kind, by]) =>
    codes(names).map((name) => [name, kind, codes(by)]),
  );
  const families = [...exported]
    .filter(([name]) => !poolerMetrics.has(name))
    .map(([name, { type }]) => [name, type, ownLabels(name)]);
  expect(documented.sort()).toEqual(families.sort());
  expect(families.length).toBe(metricFamilies.length);
});

test.each([
  ['pooler metric', [...processFamilies, ...hostFamilies] as readonly PoolerFamily<never>[]],
  ['pool metric', poolFamilies as readonly PoolerFamily<never>[]],
  ['share metric', shareFamilies as readonly PoolerFamily<never>[]],
])('docs/observability.md has every %s, with its kind, its labels and their values', (title, families) => {
  const documented = tableOf(title).flatMap(([names, kind, by]) =>
    codes(names).map((name) => [name, kind, codes(by)]),
  );
  expect(documented).toEqual(families.map(({ name, type, labels }) => [name, type, labels]));
  for (const [names, , by, meaning] of tableOf(title)) {
    const [name = ''] = codes(names);
    const known = words(name, codes(by).at(-1) ?? '');
    const hasTable = ['headgate_pooler_discards_total', 'headgate_pooler_open_failures_total'].includes(name);
    if (known.length > 0 && !hasTable) expect(codes(meaning)).toEqual(known);
  }
});

test('docs/observability.md has the labels right that all metrics of a table have', () => {
  const common = (title: string) => tableOf(title).flatMap(([names]) => codes(names));
  for (const name of common('metric')) expect(labelNames(name).slice(0, 2)).toEqual(['service', 'pool']);
  for (const name of common('dsql metric')) {
    expect(labelNames(name)[0]).toBe('service');
    expect(labelNames(name)).not.toContain('pool');
  }
});

test('docs/observability.md has every value of a label in the row of its metric, but for reasons and causes, which have tables', () => {
  for (const [names, , by, meaning] of tableOf('metric')) {
    if (codes(by)[0] !== 'state') continue;
    const [name = ''] = codes(names);
    expect(codes(meaning)).toEqual(words(name, 'state'));
  }
  expect(tableOf('cause').flatMap(([word]) => codes(word))).toEqual([...refillCauses]);
});

test('docs/observability.md has queries for metrics that exist', () => {
  const queries = /```promql\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  expect(unknownNames(queries.replace(/#.*/g, ''))).toEqual([]);
});

test('docs/observability.md has every log line, with its level and its fields', () => {
  const documented = tableOf('line').map(([line, level, fields]) => [line, level, codes(fields)]);
  expect(documented.sort()).toEqual(everyLine().sort());
});

test('metrics of the pooler are named by the rules, once each, with a sentence about them', () => {
  const all: readonly PoolerFamily<never>[] = [
    ...processFamilies,
    ...poolFamilies,
    ...shareFamilies,
    ...hostFamilies,
  ];
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  for (const { name, type, help } of all) {
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    expect(help).toMatch(/^\S.*\.$/);
  }
});

test('metrics have every reason and every cause as a label', () => {
  expect(words('headgate_pool_discards_total', 'reason')).toEqual([...discardReasons]);
  expect(words('dsql_reservoir_discards_total', 'reason')).toEqual([...discardReasons]);
  expect(words('headgate_pool_refill_failures_total', 'cause')).toEqual([...refillCauses]);
  expect(words('dsql_reservoir_refill_failures_total', 'reason')).toEqual([...refillCauses]);
});

test('metrics are named by the rules: counters end in _total, and nothing else does', () => {
  for (const { name, type } of metricFamilies)
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
});

test('metrics have a name each, and a sentence about them', () => {
  expect(new Set(metricFamilies.map(({ name }) => name)).size).toBe(metricFamilies.length);
  for (const { help } of metricFamilies) expect(help).toMatch(/^\S.*\.$/);
});

describe('docs/prometheus-alerts.yml', () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly labels: { readonly severity: string };
    readonly annotations: { readonly summary: string; readonly description: string };
  }
  const { groups } = parse(alertFile) as { groups: { rules: Rule[] }[] };
  const rules = groups.flatMap((group) => group.rules).map((rule) => [rule.alert, rule] as const);

  test('docs/prometheus-alerts.yml has alerts, each once', () => {
    expect(rules.length).toBeGreaterThan(0);
    expect(new Set(rules.map(([name]) => name)).size).toBe(rules.length);
  });

  test.each(rules)(
    '%s asks for metrics that exist, by labels and values that they have',
    (_name, { expr }) => {
      expect(expr).toMatch(/\b(?:dsql|headgate)_/);
      expect(unknownNames(expr)).toEqual([]);
      for (const [, name = '', label = '', word = ''] of expr.matchAll(/(\w+)\{(\w+)!?="([\w.]+)"\}/g)) {
        expect(words(name, label)).toContain(word);
      }
    },
  );

  test.each(rules)('%s says how bad it is, and of whom', (_name, { labels, annotations, expr }) => {
    expect(['warning', 'critical']).toContain(labels.severity);
    expect(annotations.summary).not.toBe('');
    const mentioned = [...annotations.description.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
    const isOfAll = expr.startsWith('sum(');
    const [name = ''] = /headgate_pooler_\w+/.exec(expr) ?? [];
    if (name !== '') {
      const isOfPool = poolFamilies.some(
        (family) => family.name === name.replace(/_(?:bucket|sum|count)$/, ''),
      );
      const isOfBudget = expr.includes('headgate_pooler_budget_');
      expect(mentioned).toEqual(
        isOfPool ? ['user', 'database'] : isOfBudget ? ['budget', 'instance'] : ['instance'],
      );
      return;
    }
    expect(mentioned.includes('service')).toBe(!isOfAll);
    // Only the metrics of single pools can say which pool it is.
    if (mentioned.includes('pool')) expect(expr).not.toContain('dsql_');
  });

  test('docs/prometheus-alerts.yml has an alert for each cause', () => {
    for (const cause of refillCauses) expect(alertFile).toContain(`refill_failures_total{reason="${cause}"}`);
  });
});

/** The names in a query that no metric has. Histograms are asked for by their parts. */
function unknownNames(query: string): string[] {
  const names = [...query.matchAll(/\b(?:dsql|headgate)_\w+/g)].map(([name]) => name);
  expect(names).not.toEqual([]);
  return names.filter((name) => {
    const whole = name.replace(/_(?:bucket|sum|count)$/, '');
    const isPart = exported.get(whole)?.type === 'histogram';
    return isPart ? whole === name : !exported.has(name);
  });
}

/** All lines that a pool with a reservoir can have, and those of a warmup and a keeper. */
function everyLine(): [line: string, level: string, fields: string[]][] {
  const lines = new Map<string, [string, string, string[]]>();
  const note = (level: string) => (fields: object, line: string) =>
    void lines.set(line, [line, level, Object.keys(fields).filter((name) => name !== 'pool')]);
  const logger: PoolLogger = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
  };
  const stats: PoolStats = {
    ...pool.stats(),
    warmup: { target: 1, isOver: false },
    keeper: { target: 1, intervalMs: 1, perTick: 1 },
  };
  const all = { name: 'all', stats: () => stats };
  const { stop } = logPool(all, { logger });
  const publish = (name: string, message: object) =>
    channel(`headgate:pool:${name}`).publish({ pool: all, ...message });
  publish('opened', {});
  publish('discarded', { reason: 'broken', remainingMs: 1 });
  publish('empty', {});
  publish('timeout', { waitMs: 1 });
  publish('stuck', { waits: 'callers', waitedMs: 1, cause: 'in_use', text: '' });
  publish('leak', { heldMs: 1, takenAt: '' });
  publish('top-up', { count: 1, size: 1, target: 1 });
  const error = Object.assign(new Error('no'), { code: 'E_NO' });
  for (const cause of refillCauses) publish('refill-failed', { cause, error });
  for (const kind of ['reservoir', 'warmup']) {
    for (const phase of ['started', 'complete', 'timeout', 'given_up']) {
      publish('fill', { kind, phase, size: 1, target: 1, failed: 1, elapsedMs: 1 });
    }
  }
  stop();
  return [...lines.values()];
}

/** The cells of each row of the table whose first column has this title. */
function tableOf(title: string): string[][] {
  const table = page.match(new RegExp(`^\\| ${title} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n)+)`, 'm'))?.[1];
  expect(table, `the page has a table whose first column is "${title}"`).toBeDefined();
  const rows = (table ?? '').trimEnd().split('\n');
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function codes(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
}
