// The files of alerts and recording rules are made of the declarations, and ask for nothing that is not there.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { alertFile, recordingFile } from '../../scripts/lib/rule-files.mjs';
import { alertGroups, poolerRatios, poolRatios } from '../../src/pooler/metrics/all-alerts.js';
import { allMetrics, metricSections } from '../../src/pooler/metrics/all-metrics.js';

const recording = recordingFile({ pools: poolRatios, pooler: poolerRatios }, metricSections);
const files = [
  ['prometheus-alerts.yml', alertFile(alertGroups, metricSections)],
  ['prometheus-rules.yml', recording],
] as const;

test.each(files)('docs/%s is up to date (node scripts/alerts.mjs)', (file, text) => {
  expect(readFileSync(join(import.meta.dirname, '../../docs', file), 'utf8')).toBe(text);
});

const { groups } = parse(recording) as { groups: { rules: { record: string; expr: string }[] }[] };
const rules = groups.flatMap((group) => group.rules);

test('recording rules have a name each, by the rules of Prometheus, and ask for metrics that exist', () => {
  expect(rules.length).toBeGreaterThan(20);
  expect(new Set(rules.map(({ record }) => record)).size).toBe(rules.length);
  for (const { record, expr } of rules) {
    expect(record).toMatch(/^[a-z_]+:(?:dsql|headgate)_[a-z_]+:(?:ratio|ratio5m|p50_5m|p99_5m)$/);
    for (const [name] of expr.matchAll(/\b(?:dsql|headgate)_\w+/g))
      expect(allMetrics[name] ?? allMetrics[name.replace(/_bucket$/, '')], name).toBeDefined();
  }
});

test('every histogram has its percentiles recorded', () => {
  const names = Object.entries(allMetrics).filter(
    ([, { type, unit }]) => type === 'histogram' && unit !== 'ms',
  );
  const missing = names.filter(([name]) => !rules.some(({ record }) => record.includes(`:${name}:p99`)));
  expect(missing).toEqual([]);
});
