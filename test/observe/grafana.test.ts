// The dashboards for Grafana are made of the tables of metrics, and ask for nothing that is not there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { boards } from '../../scripts/lib/grafana-boards.mjs';
import { allMetrics, metricSections } from '../../src/pooler/metrics/all-metrics.js';

const made = Object.entries(boards(metricSections));
const all = new Map(Object.entries(allMetrics).map(([name, { type }]) => [name, type] as const));

interface Board {
  readonly panels: readonly { type: string; description?: string; targets?: readonly { expr: string }[] }[];
}

test.each(made)('docs/grafana/%s is up to date (node scripts/grafana.mjs)', (file, text) => {
  expect(readFileSync(join(import.meta.dirname, '../../docs/grafana', file), 'utf8')).toBe(text);
});

test.each(made)(
  'every query of docs/grafana/%s names a metric that there is, as its kind is asked for',
  (_file, text) => {
    const { panels } = JSON.parse(text) as Board;
    const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(20);
    for (const expr of queries) {
      const names = [...expr.matchAll(/\b(?:dsql|headgate)_\w+/g)].map(([name]) => name);
      expect(names).toHaveLength(1);
      const [name = ''] = names;
      const type = all.get(name) ?? all.get(name.replace(/_bucket$/, ''));
      expect([expr, type]).toEqual([expr, expect.any(String)]);
      expect(expr.includes('rate(')).toBe(type !== 'gauge');
    }
    for (const { type, description } of panels) if (type !== 'row') expect(description).toMatch(/\.$/);
  },
);

test('every label of a metric is told apart where the metric is shown', () => {
  const [text = ''] = made.map(([, board]) => board);
  expect(text).toContain('sum by (service, pool, state) (headgate_pool_connections{');
  expect(text).toContain('sum by (service, operation, attempt) (rate(dsql_tx_retry_total{');
});

test('every metric of the pooler and of pools is on a dashboard', () => {
  const text = made.map(([, board]) => board).join('');
  const missing = [...all.keys()].filter((name) => !text.includes(name) && !/^dsql_(?:pool|db)_/.test(name));
  expect(missing).toEqual([]);
});
