// @ts-check
// docs/prometheus-alerts.yml and docs/prometheus-rules.yml as text, made of the declared alerts and metrics.
import { acrossWorkers, metricsOfWorkers, percentile } from './promql.mjs';

/**
 * @typedef {import('./metrics-page.mjs').Section} Section
 * @typedef {import('./promql.mjs').RecordedQuery} RecordedQuery
 * @typedef {{ alert: string, severity: string, for?: string, expr: string, isOfWorker?: boolean, summary: string, description: string, note?: string }} AlertRule
 * @typedef {{ name: string, note?: string, rules: readonly AlertRule[] }} AlertGroup
 */

const windows = '5m';
const percentiles = [0.5, 0.99];

/**
 * @param {readonly AlertGroup[]} groups
 * @param {Readonly<Record<string, Section>>} sections
 */
export function alertFile(groups, sections) {
  const ofWorkers = metricsOfWorkers(sections);
  const lines = groups.flatMap(({ name, note, rules }) => [
    ...commentOf(note, 2),
    `  - name: ${name}`,
    '    rules:',
    ...rules.flatMap((rule, at) => [...(at === 0 ? [] : ['']), ...linesOf(rule, ofWorkers)]),
    '',
  ]);
  return `${[
    '# Alerts for pools that are exposed with headgate/prometheus, and for the pooler (headgate serve). Load the file as a rule file of',
    '# Prometheus. Generated from the declarations in src (node scripts/alerts.mjs): to change thresholds, times or severities, change a',
    '# copy of this file. The tests of Headgate cause an incident for each alert, and hold that none fires while all is well.',
    'groups:',
    ...lines.slice(0, -1),
  ].join('\n')}\n`;
}

/** @param {AlertRule} rule @param {ReturnType<typeof metricsOfWorkers>} ofWorkers */
function linesOf({ alert, severity, for: least, expr, isOfWorker, summary, description, note }, ofWorkers) {
  return [
    ...commentOf(note, 6),
    `      - alert: ${alert}`,
    `        expr: ${yamlText(isOfWorker ? expr : acrossWorkers(expr, ofWorkers))}`,
    ...(least === undefined ? [] : [`        for: ${least}`]),
    '        labels:',
    `          severity: ${severity}`,
    '        annotations:',
    `          summary: ${yamlText(summary)}`,
    `          description: ${yamlText(description)}`,
  ];
}

/**
 * @param {{ pools: readonly RecordedQuery[], pooler: readonly RecordedQuery[] }} ratios
 * @param {Readonly<Record<string, Section>>} sections
 */
export function recordingFile({ pools, pooler }, sections) {
  const ofWorkers = metricsOfWorkers(sections);
  const ratios = [...pools, ...pooler].map(({ record, expr, help }) => ({
    record,
    expr: acrossWorkers(expr, ofWorkers),
    note: help,
  }));
  return `${[
    '# Ratios and percentiles that the dashboards show, evaluated ahead: for long ranges, for many pools, and for alerts of your own. Load the',
    '# file as a rule file of Prometheus. Generated from the declarations of the metrics: node scripts/alerts.mjs.',
    'groups:',
    '  - name: headgate-ratios',
    '    rules:',
    ...ratios.flatMap(recordLines),
    '',
    '  - name: headgate-percentiles',
    '    rules:',
    ...Object.values(sections).flatMap(percentilesOf).flatMap(recordLines),
  ].join('\n')}\n`;
}

/** @param {Section} section */
function percentilesOf({ common, table }) {
  return Object.entries(table).flatMap(([name, { type, unit, help, labels = [] }]) => {
    // A histogram in milliseconds has a twin in seconds, which is recorded.
    if (type !== 'histogram' || unit === 'ms') return [];
    const own = [...common, ...labels];
    return percentiles.map((part) => ({
      record: `${own.join('_')}:${name}:p${part * 100}_${windows}`,
      expr: percentile(part, ['job', 'instance', ...own], `${name}_bucket`, windows),
      note: help,
    }));
  });
}

/** @param {{ record: string, expr: string, note: string }} rule */
function recordLines({ record, expr, note }) {
  return [...commentOf(note, 6), `      - record: ${record}`, `        expr: ${yamlText(expr)}`];
}

/** @param {string | undefined} text @param {number} indent */
function commentOf(text, indent) {
  const lines = text?.match(/\S.{0,118}(?=\s|$)/g) ?? [];
  return lines.map((line) => `${' '.repeat(indent)}# ${line}`);
}

/** Plain where YAML allows it. @param {string} text */
function yamlText(text) {
  if (/^[a-zA-Z0-9]/.test(text) && !/: | #|:$/.test(text)) return text;
  return text.includes('"') ? `'${text.replaceAll("'", "''")}'` : `"${text}"`;
}
