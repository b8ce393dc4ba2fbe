// @ts-check
// Grafana dashboards made of the tables of metrics: a panel for each metric, with what it means as its description, and one for each
// ratio.
import { acrossWorkers, percentile, selecting } from './promql.mjs';

/**
 * @typedef {import('./promql.mjs').Family} Family
 * @typedef {import('./promql.mjs').RecordedQuery} RecordedQuery
 * @typedef {{ title: string, families?: readonly Family[], ratios?: readonly RecordedQuery[], by: readonly string[] }} Row
 */

const height = 7;
const width = 8;
const perRow = 3;

/**
 * @param {{ uid: string, title: string, variable: string, ofWorkers: ReadonlyMap<string, Family>, rows: readonly Row[] }} board
 * `variable`: the label that the dashboard is filtered by.
 */
export function dashboard({ uid, title, variable, ofWorkers, rows }) {
  /** @type {object[]} */
  const panels = [];
  let y = 0;
  for (const { title: rowTitle, families = [], ratios = [], by } of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: rowTitle,
      collapsed: false,
      gridPos: { h: 1, w: 24, x: 0, y },
    });
    y += 1;
    const contents = [
      ...ratios.map((ratio) => ratioPanel(ratio, by, variable, ofWorkers)),
      ...families.map((family) => panel(family, by, variable)),
    ];
    contents.forEach((content, at) => {
      const gridPos = {
        h: height,
        w: width,
        x: width * (at % perRow),
        y: y + height * Math.floor(at / perRow),
      };
      panels.push({ id: panels.length + 1, ...content, gridPos });
    });
    y += height * Math.ceil(contents.length / perRow);
  }
  const [first] = rows.flatMap(({ families = [] }) => families);
  return {
    uid,
    title,
    tags: ['headgate'],
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        {
          name: variable,
          type: 'query',
          datasource,
          query: `label_values(${first?.name}, ${variable})`,
          includeAll: true,
          allValue: '.*',
          multi: true,
          refresh: 2,
        },
      ],
    },
    panels,
  };
}

const datasource = { type: 'prometheus', uid: `\${datasource}` };

/**
 * @param {Family} family
 * @param {readonly string[]} by
 * @param {string} variable
 */
function panel(family, by, variable) {
  const title = family.name.replace(/^(?:headgate|dsql)_/, '').replaceAll('_', ' ');
  return timeseries(title, family, unitOf(family), targetsOf(family, by, variable));
}

/**
 * @param {RecordedQuery} ratio
 * @param {readonly string[]} by
 * @param {string} variable
 * @param {ReadonlyMap<string, Family>} ofWorkers
 */
function ratioPanel(ratio, by, variable, ofWorkers) {
  const [labels = '', metric = ''] = ratio.record.split(':');
  const own = labels.split('_').filter((label) => !by.includes(label));
  const expr = selecting(acrossWorkers(ratio.expr, ofWorkers), filterBy(variable)).replaceAll(
    '[5m]',
    '[$__rate_interval]',
  );
  const title = metric.replace(/^(?:headgate|dsql)_/, '').replaceAll('_', ' ');
  return timeseries(title, ratio, 'percentunit', [{ expr, legendFormat: legendOf([...by, ...own]) }]);
}

/**
 * @param {string} title
 * @param {Pick<Family, 'help' | 'normal' | 'bad' | 'action'>} declared
 * @param {string} unit
 * @param {readonly { expr: string, legendFormat: string }[]} targets
 */
function timeseries(title, declared, unit, targets) {
  return {
    type: 'timeseries',
    title,
    description: descriptionOf(declared),
    datasource,
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 10 } }, overrides: [] },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: targets.map((target, at) => ({ ...target, refId: 'ABC'[at] })),
  };
}

/** @param {string} variable */
function filterBy(variable) {
  return `${variable}=~"$${variable}"`;
}

/** @param {readonly string[]} labels */
function legendOf(labels) {
  return labels.map((label) => `{{${label}}}`).join(' ');
}

/**
 * Series of several processes become one as the metric declares it.
 * @param {Family} family
 * @param {readonly string[]} by
 * @param {string} variable
 */
function targetsOf({ name, type, unit, labels = [], across = 'sum' }, by, variable) {
  const chosen = `{${filterBy(variable)}}`;
  const groups = [...new Set([...by, ...labels])];
  const legendFormat = legendOf(groups);
  if (type === 'histogram')
    return [0.5, 0.99].map((part) => ({
      expr: percentile(part, groups, `${name}_bucket${chosen}`, '$__rate_interval'),
      legendFormat: `p${part * 100} ${legendFormat}`,
    }));
  const value = type === 'counter' ? `rate(${name}${chosen}[$__rate_interval])` : `${name}${chosen}`;
  const joined = `${type === 'counter' ? 'sum' : across} by (${groups.join(', ')}) (${value})`;
  // Grafana has moments in milliseconds.
  return [{ expr: unit === 'timestamp' ? `${joined} * 1000` : joined, legendFormat }];
}

/** @param {Pick<Family, 'help' | 'normal' | 'bad' | 'action'>} declared */
function descriptionOf({ help, normal, bad, action }) {
  const what = bad === undefined ? [] : [`Bad: ${bad}`, `Then: ${action}`];
  return [help, `Normal: ${normal}`, ...what].join('\n\n');
}

/** @param {Family} family */
function unitOf({ type, unit }) {
  if (type === 'counter') return unit === 'By' ? 'Bps' : unit === 's' ? 'percentunit' : 'cps';
  const known = /** @type {Record<string, string>} */ ({
    s: 's',
    ms: 'ms',
    By: 'bytes',
    timestamp: 'dateTimeFromNow',
  });
  return known[unit] ?? 'short';
}
