// The dashboards for Grafana are made of the tables of metrics, and ask for nothing that is not there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { boards } from '../../scripts/lib/grafana-boards.mjs';
import { poolerRatios, poolRatios } from '../../src/pooler/metrics/all-alerts.js';
import { allMetrics, metricSections } from '../../src/pooler/metrics/all-metrics.js';
import { type Labels, promql, type Series } from './alerts/promql.js';

const ratios = { pools: poolRatios, pooler: poolerRatios };
const made = Object.entries(boards(metricSections, ratios));
const withRatios = [...poolRatios, ...poolerRatios].map(({ record }) => record);
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
      for (const name of names) {
        const type = all.get(name) ?? all.get(name.replace(/_bucket$/, ''));
        expect([expr, type]).toEqual([expr, expect.any(String)]);
        expect(expr.includes('rate(')).toBe(type !== 'gauge');
      }
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

/** What the panel of a metric shows, by labels, where each process of a pooler or each instance of a fleet has this series. */
function shown(name: string, processes: readonly Labels[], value: number): number[] {
  const queries = made.flatMap(([, text]) =>
    (JSON.parse(text) as Board).panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  );
  const [expr = ''] = queries.filter((each) => new RegExp(`^\\w+ by .*\\(${name}\\{`).test(each));
  const series = processes.map((labels): Series => ({ name, labels, values: [value] }));
  const query = expr.replaceAll(/"\$\w+"/g, '".*"');
  return promql(query)(0, { intervalSeconds: 60, series }).map((sample) => sample.value);
}

test('the dashboards show a figure that every instance of a fleet repeats once, and add up what each has of its own', () => {
  const instances = ['a', 'b', 'c'].map((instance) => ({ service: 'shop', instance }));
  expect(shown('dsql_distributed_conn_lease_limit', instances, 100)).toEqual([100]);
  expect(shown('headgate_lease_instances', instances, 3)).toEqual([3]);
  expect(shown('headgate_lease_held', instances, 5)).toEqual([15]);
});

test('the dashboards show a limit that every worker repeats once, for each pooler by itself', () => {
  const workers = ['a', 'b'].flatMap((instance) =>
    ['1', '2'].map((worker) => ({ instance, worker, database: 'd', user: 'u' })),
  );
  expect(shown('headgate_pooler_server_limit', workers, 10)).toEqual([10, 10]);
  expect(shown('headgate_pooler_client_limit', workers, 50)).toEqual([50, 50]);
  expect(shown('headgate_pooler_connected_clients', workers, 7)).toEqual([14, 14]);
});

test('every ratio that is recorded is on a dashboard', () => {
  const panels = made.flatMap(([, text]) => (JSON.parse(text) as { panels: { title: string }[] }).panels);
  const titles = new Set(panels.map(({ title }) => title));
  const titleOf = (record: string) =>
    (record.split(':')[1] ?? '').replace(/^(?:headgate|dsql)_/, '').replaceAll('_', ' ');
  expect(withRatios.filter((record) => !titles.has(titleOf(record)))).toEqual([]);
});
