// The registry: each metric is declared once, in a table, and everything that exports, shows or documents metrics goes by it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { metricsPage } from '../../scripts/lib/metrics-page.mjs';
import { dsqlMetrics } from '../../src/observe/dsql-metrics.js';
import { leaseFamilies } from '../../src/observe/lease-metrics.js';
import { type MetricDeclaration, unitText } from '../../src/observe/metric-declaration.js';
import { poolMetrics } from '../../src/observe/pool-metrics.js';
import { rateFamilies } from '../../src/observe/rate-metrics.js';
import { transactionMetrics } from '../../src/observe/transaction-metrics.js';
import { allMetrics, type MetricSection, metricSections } from '../../src/pooler/metrics/all-metrics.js';
import { hostFamilies } from '../../src/pooler/metrics/host-families.js';
import { poolFamilies, processFamilies } from '../../src/pooler/metrics/pooler-families.js';
import { shareFamilies } from '../../src/pooler/metrics/share-families.js';

const exporters: Readonly<Record<keyof typeof metricSections, readonly { readonly name: string }[]>> = {
  pools: poolMetrics,
  dsql: dsqlMetrics,
  transactions: transactionMetrics,
  leases: leaseFamilies,
  rates: rateFamilies,
  process: processFamilies,
  host: hostFamilies,
  shares: shareFamilies,
  poolerPools: poolFamilies,
};
const sections = Object.entries(metricSections) as [keyof typeof metricSections, MetricSection][];
const all = Object.entries(allMetrics) as [string, MetricDeclaration][];

test.each(sections)('every metric of %s that is declared is exported, and no other', (section, { table }) => {
  expect(exporters[section].map(({ name }) => name)).toEqual(Object.keys(table));
});

test('every metric is declared once', () => {
  const names = sections.flatMap(([, { table }]) => Object.keys(table));
  expect(new Set(names).size).toBe(names.length);
  expect(all.length).toBe(names.length);
});

test('every metric says what it is, what is normal, and what to do where something is bad', () => {
  for (const [name, { help, normal, bad, action, unit, type }] of all) {
    for (const text of [help, normal, bad ?? 'none.', action ?? 'none.'])
      expect([name, text]).toEqual([name, expect.stringMatching(/^\S.*\.$/)]);
    expect([name, bad === undefined]).toEqual([name, action === undefined]);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    if (/_seconds(?:_total)?$/.test(name))
      expect([name, unit]).toEqual([name, expect.stringMatching(/^(?:s|timestamp)$/)]);
    if (/_bytes(?:_total)?$/.test(name)) expect([name, unit]).toEqual([name, 'By']);
  }
});

test('docs/metrics.md is up to date (node scripts/metrics-page.mjs)', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8');
  expect(page).toBe(metricsPage(Object.values(metricSections), unitText));
});
